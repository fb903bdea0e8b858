"""Builds MementoMaps from any input, and fits the decay curves of compaction to an index.

The Rust core counts keys in sorted runs, so that sorted and unsorted inputs of any size take bounded memory. Without
compaction, rows of sorted inputs are written to the output while they are counted.
"""

import math
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from unlost import _core
from unlost._core import CompactionStats, Progress
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
"""URL of the format's documentation, as in the MementoMap paper."""
EXCLUDABLE_PAGES = ("robots", "sitemaps")
"""Kinds of pages that can be excluded: `/robots.txt`; files named `sitemap*.xml`, also gzipped.

The study of the MementoMap paper excludes both."""

_SEARCH_ROUNDS = 200  # each shrinks the interval by 0.618, so it ends at the precision of floats


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOptions(InputOptions):
    """Rows that go into a map, and how it is built.

    More entries than fit into memory are spilled to temporary files. Neither that nor threads and blocks affect the
    result.

    Attributes:
        host_weight: Compact the map with this host weight; None for no compaction.
        path_weight: The same for paths.
        compaction: Other parameters of compaction. Its weights apply where the two above are None.
        by_year: Write one line per key and year, with a second key field, `datetime`.
        urir: Count URI-Rs as well as URI-Ms, and write frequencies as `m/r`.
        name: Name of the archive, for the header.
        id: URL of the archive, for the header.
        built_at: Build time, 14 digits in UTC, for the header, which then also contains digests of the inputs. None for
            neither, so that equal rows yield equal files.
        allow_empty: Accept inputs without rows; otherwise they are an error.
        sorted: The inputs are sorted; an unsorted one is an error.
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
        """Return the compaction with the weights applied; None for no compaction."""
        if self.host_weight is None and self.path_weight is None:
            return self.compaction
        return (self.compaction or Compaction()).with_weights(
            NO_LIMIT if self.host_weight is None else self.host_weight,
            NO_LIMIT if self.path_weight is None else self.path_weight,
        )

    def header(self) -> UkvsHeader:
        """Return the header, without the parts that depend on the inputs."""
        compaction = self.effective_compaction()
        meta: dict[str, object] = {
            "type": "MementoMap",
            "version": FORMAT_VERSION,
            "rules": self.rules,
            **({"name": self.name} if self.name else {}),
            **{name: sorted(values) for name in ("status", "mime", "exclude") if (values := getattr(self, name))},
            **(compaction.header_meta() if compaction else {}),
        }
        keys = ("surt", "datetime") if self.by_year else ("surt",)
        return UkvsHeader(MAP_CONTEXT, {"uri": self.id} if self.id else {}, keys, ("frequency",), meta)


def create_map_builder(options: MapOptions) -> _core.MapBuilder:
    """Return a row counter of the Rust core with these options."""
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
    """Write the map of the inputs' rows, and return the counts of their lines.

    Inputs may be of any kind that `unlost.mementomap.readers` detects, of any size, sorted or not. The map is written
    atomically.

    Raises:
        InputError: An input cannot be read, is damaged (unless that is allowed), is empty or has too many bad lines.
        OSError: The output cannot be written.
    """
    opts = options or MapOptions()
    unknown = opts.exclude - set(EXCLUDABLE_PAGES)
    if unknown:
        raise UsageError(f"{min(unknown)}: cannot be left out: expected {' or '.join(EXCLUDABLE_PAGES)}")
    compaction = opts.effective_compaction()
    report = InputReport()
    builder = create_map_builder(opts)
    header = with_row_bytes(opts.header())
    digests = input_digests(inputs) if opts.built_at else []
    map_headers: list[UkvsHeader] = []
    # The file is renamed in this thread, which receives Ctrl-C, so that an interrupted build leaves none. It is created
    # first, so that an unwritable directory is reported before the work.
    with atomic_map_file(output) as path:

        def work(progress: Progress) -> None:
            # The range of capture dates is known last, but the header's length is known now: all ranges are equally
            # long. If the final header has another length, the map is written again.
            provisional_head = format_header(add_provenance(header, opts.built_at, UNKNOWN_CAPTURE_RANGE, digests))
            has_begun = compaction is None and builder.start_streaming(path, provisional_head, _input_bytes(inputs))
            count_inputs(
                inputs,
                builder,
                report,
                progress,
                kind=opts.kind,
                column=opts.column,
                host=opts.host,
                expected_header=header,
                map_headers=map_headers,
                allow_partial=opts.allow_partial,
                max_bad=opts.max_bad,
            )
            if not opts.allow_empty:
                report.refuse_empty(inputs)
            updated_at = oldest_update_date(map_headers, opts.built_at) if opts.built_at else None
            head = format_header(
                add_provenance(header, updated_at, capture_range(map_headers, builder.dates()), digests)
            )
            if has_begun:
                builder.finish_streaming(head, progress)
            else:
                report.shape = builder.write(path, head, compaction.to_core() if compaction else None, progress)

        run_with_progress(work, on_progress)
    return report


def _input_bytes(inputs: Sequence[str | PathLike[str]]) -> int:
    """Return the total size of the inputs, without those whose size is unknown."""
    total = 0
    for name in inputs:
        # A missing input is reported when it is read.
        with suppress(OSError):
            total += Path(name).stat().st_size
    return total


def mean_children(shape: CompactionStats) -> tuple[list[float], list[float]]:
    """Return the mean number of children of the nodes that have children, by level: of host nodes and of path nodes.

    Host levels begin at H1, path levels at P0. Empty levels at the end are omitted.
    """
    means = [
        children / parents if parents else 0.0 for parents, children in zip(shape.parents, shape.children, strict=True)
    ]
    return _until_zero(means[: shape.host_levels]), _until_zero(means[shape.host_levels :])


def _until_zero(means: Sequence[float]) -> list[float]:
    return list(means[: means.index(0.0)] if 0.0 in means else means)


def fit_decay_curve(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return a and k of the curve a·x^-k that fits the points best, by unweighted least squares of y, with k ≥ 0.

    The parameters in the MementoMap paper are such a fit of its Table 8. Raises InputError for fewer than two points.

    >>> a, k = fit_decay_curve([(1, 10.0), (2, 5.0), (4, 2.5)])
    >>> round(a, 6), round(k, 6)
    (10.0, 1.0)
    """
    if len(points) < 2:
        raise InputError("too few depths to fit a power law: expected nodes with children at two depths at least")
    # For a given k the best a has a closed form, so only k is searched, by golden-section search. It is not below 0,
    # because cut-offs that grow with the depth would never roll up deep nodes.
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
    """Return options that build the same tree from an index or from a map. Other options do not affect the fit."""
    if detect_input_kind(source) != "map":
        return MapOptions(compaction=compaction)
    header = read_map_header(source)
    return MapOptions(compaction=compaction, by_year="datetime" in header.keys, rules=header_rules(header))


def fit_compaction(source: str | PathLike[str], compaction: Compaction) -> Compaction:
    """Return the compaction with decay curves fitted to an index or map, by the method of the MementoMap paper.

    Host nodes are included from second-level domains on, because top-level domains are never rolled up; path nodes are
    all included. Raises InputError if the tree is too shallow.
    """
    no_compaction = replace(compaction, host_weight=NO_LIMIT, path_weight=NO_LIMIT, rollup=())
    with tempfile.TemporaryDirectory(prefix="unlost-fit-") as folder:
        shape = build_map([source], Path(folder, "map.ukvs"), _tree_options(source, no_compaction)).shape
    if shape is None:
        raise InputError(f"{source}: nothing to fit to")
    hosts, paths = mean_children(shape)
    # x is the depth of the parent (H1 is 1); for paths, one more (P0 is 1).
    host_a, host_k = fit_decay_curve([(depth, mean) for depth, mean in enumerate(hosts, 1) if depth > 1])
    path_a, path_k = fit_decay_curve(list(enumerate(paths, 1)))
    return replace(compaction, host_a=host_a, host_k=host_k, path_a=path_a, path_k=path_k)
