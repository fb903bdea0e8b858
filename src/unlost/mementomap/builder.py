"""Builds MementoMaps from any input, and fits the power laws of compaction to an index."""

import math
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from unlost import _core
from unlost._core import MapShape, Progress
from unlost.errors import InputError, UsageError
from unlost.index.ukvs import UkvsHeader, format_header
from unlost.mementomap.compact import NO_LIMIT, Compaction
from unlost.mementomap.map_file import (
    FORMAT_VERSION,
    UNKNOWN_CAPTURE_RANGE,
    add_provenance,
    atomic_map_file,
    capture_range,
    header_rules,
    input_digests,
    oldest_update_date,
    read_map_header,
    with_row_bytes,
)
from unlost.mementomap.readers import (
    InputOptions,
    InputReport,
    ProgressCallback,
    count_inputs,
    detect_input_kind,
    run_with_progress,
)
from unlost.text_lines import MAX_LINE_BYTES

MAP_CONTEXT = ("https://git.io/mementomap",)
"""What explains the format, as the second paper has it."""
EXCLUDABLE_PAGES = ("robots", "sitemaps")
"""Pages that can be left out: `/robots.txt`; files named `sitemap*.xml`, also gzipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOptions(InputOptions):
    """What goes into a map, and how it is made: which rows, and this.

    host_weight, path_weight: compact the map with these weights; None for no compaction.
    compaction: everything else about compacting; its weights are replaced by those two where they are given.
    by_year: one line for each year, with a second key field, `datetime`.
    urir: count URI-Rs too, and write `m/r`.
    name, id: of the archive, for the header.
    made: when the map is made, 14 digits in UTC: the header says so, and gives the digests of the inputs. With None
        it does neither, so that the same rows make the same file on every day and from any files.
    allow_empty: inputs without any rows make a map without any; otherwise they are an error.
    sorted: the inputs are promised to be sorted; one that is not is an error.

    More entries than fit into memory go to temporary files; neither that nor threads and blocks show in the result.
    """

    host_weight: float | None = None
    path_weight: float | None = None
    compaction: Compaction | None = None
    by_year: bool = False
    urir: bool = False
    name: str | None = None
    id: str | None = None
    built_at: str | None = None
    allow_empty: bool = False
    sorted: bool = False

    def effective_compaction(self) -> Compaction | None:
        """Return how the map is compacted, if it is."""
        if self.host_weight is None and self.path_weight is None:
            return self.compaction
        return (self.compaction or Compaction()).with_weights(
            NO_LIMIT if self.host_weight is None else self.host_weight,
            NO_LIMIT if self.path_weight is None else self.path_weight,
        )

    def header(self) -> UkvsHeader:
        """Return the header without what depends on the inputs."""
        compaction = self.effective_compaction()
        meta: dict[str, object] = {
            "type": "MementoMap",
            "version": FORMAT_VERSION,
            "rules": self.rules,
            **({"name": self.name} if self.name else {}),
            **{name: sorted(wanted) for name in ("status", "mime", "exclude") if (wanted := getattr(self, name))},
            **(compaction.header_meta() if compaction else {}),
        }
        keys = ("surt", "datetime") if self.by_year else ("surt",)
        return UkvsHeader(MAP_CONTEXT, {"uri": self.id} if self.id else {}, keys, ("frequency",), meta)


def create_map_builder(options: MapOptions) -> _core.MapBuilder:
    """Return what counts rows as the options have it."""
    return _core.MapBuilder(
        rules=options.rules,
        queries=options.urir,
        by_year=options.by_year,
        status=options.statuses(),
        mime=options.media_types(),
        exclude=sorted(options.exclude),
        is_sorted=options.sorted,
        line_limit=MAX_LINE_BYTES,
        threads=options.threads,
        memory=options.memory,
        block=options.block,
    )


def build_map(
    inputs: Sequence[str | PathLike[str]],
    output: str | PathLike[str],
    options: MapOptions | None = None,
    on_progress: ProgressCallback | None = None,
) -> InputReport:
    """Write the map of what the inputs hold, and return what became of their lines.

    Inputs may be of any kind that `unlost.mementomap.readers` knows, sorted or not, of any size. The map appears under
    its
    name once it is whole. Raises InputError for an input that cannot be read, is damaged (unless that is allowed), is
    empty or has too many bad lines; OSError for an output that cannot be written. Nothing is written then.
    """
    wanted = options or MapOptions()
    unknown = wanted.exclude - set(EXCLUDABLE_PAGES)
    if unknown:
        raise UsageError(f"{min(unknown)}: cannot be left out: expected {' or '.join(EXCLUDABLE_PAGES)}")
    compaction = wanted.effective_compaction()
    report = InputReport()
    counter = create_map_builder(wanted)
    header = with_row_bytes(wanted.header())
    digests = input_digests(inputs) if wanted.built_at else []
    maps: list[UkvsHeader] = []
    # The file gets its name in this thread, which sees Ctrl-C: none appears behind an interruption. It is there from
    # the beginning, so that a folder that cannot be written in is found before the work, not behind it.
    with atomic_map_file(output) as aside:

        def work(progress: Progress) -> None:
            # The final header is not known yet. Its length is, if captures have dates.
            guess = format_header(add_provenance(header, wanted.built_at, UNKNOWN_CAPTURE_RANGE, digests))
            has_begun = compaction is None and counter.begin(aside, guess, _input_bytes(inputs))
            count_inputs(
                inputs,
                counter,
                report,
                progress,
                kind=wanted.kind,
                column=wanted.column,
                host=wanted.host,
                expected_header=header,
                map_headers=maps,
                allow_partial=wanted.allow_partial,
                max_bad=wanted.max_bad,
            )
            if not wanted.allow_empty:
                report.refuse_empty(inputs)
            made = oldest_update_date(maps, wanted.built_at) if wanted.built_at else None
            head = format_header(add_provenance(header, made, capture_range(maps, counter.dates()), digests))
            if has_begun:
                counter.end(head, progress)
            else:
                report.shape = counter.write(aside, head, compaction.to_core() if compaction else None, progress)

        run_with_progress(work, on_progress)
    return report


def _input_bytes(inputs: Sequence[str | PathLike[str]]) -> int:
    """Return how many bytes there are to read, as far as that is known."""
    sizes = 0
    for name in inputs:
        # An input that is not there is reported when its turn comes.
        with suppress(OSError):
            sizes += Path(name).stat().st_size
    return sizes


_SEARCH_ROUNDS = 200


def mean_children(shape: MapShape) -> tuple[list[float], list[float]]:
    """Return how many children nodes that have any have on average: of host nodes, then of path nodes.

    From H1 and P0 on; levels below which nothing lies are left out.
    """
    means = [
        children / parents if parents else 0.0 for parents, children in zip(shape.parents, shape.children, strict=True)
    ]
    return _until_zero(means[: shape.host_levels]), _until_zero(means[shape.host_levels :])


def _until_zero(means: Sequence[float]) -> list[float]:
    return list(means[: means.index(0.0)] if 0.0 in means else means)


def fit_decay_curve(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return a and k of the curve a·x^-k that fits the points best, by unweighted least squares of y; k is not below 0.

    Raises InputError if there are fewer than two points.

    >>> a, k = fit_decay_curve([(1, 10.0), (2, 5.0), (4, 2.5)])
    >>> round(a, 6), round(k, 6)
    (10.0, 1.0)
    """
    if len(points) < 2:
        raise InputError("too few depths to fit a power law: expected nodes with children at two depths at least")
    # For a given k the best a has a closed form, so only k is searched: the golden section, which needs no slope.
    # Not below 0: cut-offs that grow with the depth would never roll up what is deep.
    low, high = 0.0, 10.0
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(_SEARCH_ROUNDS):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if _squared_error(points, left) < _squared_error(points, right):
            high = right
        else:
            low = left
    k = (low + high) / 2
    return _best_a(points, k), k


def _best_a(points: Sequence[tuple[float, float]], k: float) -> float:
    weights = [math.pow(x, -k) for x, _ in points]
    return sum(w * y for w, (_, y) in zip(weights, points, strict=True)) / sum(w * w for w in weights)


def _squared_error(points: Sequence[tuple[float, float]], k: float) -> float:
    a = _best_a(points, k)
    return sum((y - a * math.pow(x, -k)) ** 2 for x, y in points)


def _tree_options(source: str | PathLike[str], compaction: Compaction) -> MapOptions:
    """Return how to build from an index, or from a map as it was built itself: only its tree matters here."""
    if detect_input_kind(source) != "map":
        return MapOptions(compaction=compaction)
    header = read_map_header(source)
    return MapOptions(compaction=compaction, by_year="datetime" in header.keys, rules=header_rules(header))


def fit_compaction(source: str | PathLike[str], compaction: Compaction) -> Compaction:
    """Return the compaction with power laws that fit this index or map, as the second paper fitted its own.

    Of hosts, the children of second-level domains and deeper nodes are taken, since top-level domains are never rolled
    up; of paths, all. Raises InputError if the tree is too shallow for that.
    """
    nothing = replace(compaction, host_weight=NO_LIMIT, path_weight=NO_LIMIT, rollup=())
    with tempfile.TemporaryDirectory(prefix="unlost-fit-") as folder:
        shape = build_map([source], Path(folder, "map.ukvs"), _tree_options(source, nothing)).shape
    if shape is None:
        raise InputError(f"{source}: nothing to fit to")
    hosts, paths = mean_children(shape)
    # x is the depth of the parent; of paths, one more.
    host_a, host_k = fit_decay_curve([(depth, mean) for depth, mean in enumerate(hosts, 1) if depth > 1])
    path_a, path_k = fit_decay_curve(list(enumerate(paths, 1)))
    return replace(compaction, host_a=host_a, host_k=host_k, path_a=path_a, path_k=path_k)
