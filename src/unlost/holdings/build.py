"""Building MementoMaps from whatever lists what an archive holds."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from unlost import _core
from unlost._core import Progress
from unlost.errors import UsageError
from unlost.formats.lines import MAX_LINE_BYTES
from unlost.formats.ukvs import UkvsHeader, format_header
from unlost.holdings.compaction import NO_LIMIT, Compaction
from unlost.holdings.inputs import count_inputs
from unlost.holdings.map_file import FORMAT_VERSION, atomic_map_file, with_row_bytes
from unlost.holdings.provenance import (
    UNKNOWN_CAPTURE_RANGE,
    add_provenance,
    capture_range,
    input_digests,
    oldest_update_date,
)
from unlost.holdings.report import InputReport
from unlost.holdings.rows import InputOptions
from unlost.holdings.work import ProgressCallback, run_with_progress

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

    Inputs may be of any kind that `unlost.holdings.inputs` knows, sorted or not, of any size. The map appears under its
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
