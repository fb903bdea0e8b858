"""Statistics on a cluster: exact, whatever the order of the rows, since those of a host are brought together.

rows ─► counts of rows, and URI-Rs with what is known of their captures ─► cut at hosts: trees of paths
     ─► one line a host ─► cut at domains: tree of hosts ─► everything added up
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from unlost import _core
from unlost.errors import InputError
from unlost.formats.lines import MAX_LINE_BYTES
from unlost.holdings.report import Report
from unlost.holdings.spark.bounds import Level
from unlost.holdings.spark.counting import count_rows, hint_is_foreign, read_inputs
from unlost.holdings.spark.engine import CutLines, Engine, Stage, add_tallies
from unlost.holdings.spark.files import chunks, empty, folder, samples
from unlost.holdings.spark.pieces import HINT_SCHEME, Piece
from unlost.holdings.spark.rows import PLACES, Note, Row
from unlost.holdings.statistics.gathering import GatherOptions, exact_partial
from unlost.holdings.statistics.partial import Partial, merged

_LINES, _COUNTED = 0, 1
"""Sources of rows: lines that are brought together, and what was counted already."""


def _part(options: GatherOptions) -> "_core.StatisticsPart":
    return _core.StatisticsPart(
        rules=options.rules,
        line_limit=MAX_LINE_BYTES,
        status=options.statuses(),
        mime=options.media_types(),
        exclude=sorted(options.exclude),
        memory=options.memory,
    )


def _counted(part: int, place: int, found: Mapping[str, Any], **other: object) -> Row:
    """Return what was counted as what travels."""
    counted = replace(exact_partial(dict(found)), **other)  # type: ignore[arg-type]
    return Row(part, _COUNTED, place, counted.to_json().encode())


@dataclass(frozen=True, slots=True)
class CountRows:
    """Counts the rows of pieces: partial results are URI-Rs in order, each with what is known of its captures."""

    options: GatherOptions

    def __call__(self, pieces: Iterator[Piece], task: int) -> Iterator[Row]:
        """Yield lines of URI-Rs, what was counted by row, and a note."""
        note = Note()
        part = _part(self.options)
        added = hints = 0
        for piece in pieces:
            if piece.kind == "map":
                raise InputError(f"{piece.name}: a map, not an index: `unlost map check` says what is in it")
            tally = count_rows(piece, part, self.options)
            note.tallies.append((piece.source, piece.start, piece.added, piece.added_lines, tally))
            added += piece.added
            hints += piece.has_hint and hint_is_foreign(self.options)
        with folder() as place:
            path = empty(Path(place, "uris"))
            found = part.write(path)
            note.samples = samples(path)
            for number, text in enumerate(chunks(path)):
                yield Row(0, _LINES, task * PLACES + number, text)
        foreign = {scheme: count - hints * (scheme == HINT_SCHEME) for scheme, count in found["schemes"]}
        found["schemes"] = [(scheme, count) for scheme, count in foreign.items() if count]
        yield _counted(0, task * PLACES, found, text_bytes=found["text_bytes"] - added)
        yield note.row()


@dataclass(frozen=True, slots=True)
class GatherHosts:
    """Counts what is told of the paths of hosts, all of whose URI-Rs are here."""

    options: GatherOptions

    def __call__(self, part: int, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield a line for each host, what was counted, and a note."""
        counter = _part(self.options)
        for row in rows:
            counter.add_runs(row.data)
        with folder() as place:
            path = empty(Path(place, "hosts"))
            found = counter.gather(path)
            note = Note(samples=samples(path))
            for number, text in enumerate(chunks(path)):
                # Parts follow each other where they are cut again.
                yield Row(part, _LINES, part * PLACES + number, text)
        yield _counted(part, part * PLACES, found)
        yield note.row()


@dataclass(frozen=True, slots=True)
class CountHosts:
    """Counts what is told of the hosts of domains, all of which are here."""

    def __call__(self, part: int, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield what was counted, and a note."""
        counter = _core.StatisticsHosts()
        for row in rows:
            counter.add_hosts(row.data)
        yield _counted(part, 0, counter.finish())
        yield Note().row()


@dataclass(frozen=True, slots=True)
class _CutOnlyLines:
    """Cuts lines, and leaves out what was counted already."""

    cut: CutLines

    def __call__(self, row: Row) -> Iterator[Row]:
        return self.cut(row) if row.source == _LINES else iter(())


def gather(
    engine: Engine,
    inputs: Sequence[str | PathLike[str]],
    options: GatherOptions | None = None,
    columns: Mapping[str, str] | None = None,
) -> tuple[Partial, Report]:
    """Return what the inputs hold, in numbers, and what became of their lines.

    The numbers are those of `unlost.holdings.statistics.gathering.gather` of the same files in order. Only a host whose
    URI-Rs take more memory than `options` allow is counted in parts, as there, and perhaps in others.
    Raises InputError for an input that cannot be read, ClusterError if the cluster gives up.
    """
    wanted = options or GatherOptions()
    report = Report()
    files = read_inputs(engine, inputs, wanted.kind, columns)
    read = engine.read(files, CountRows(wanted))
    add_tallies(read.notes, files, report)
    hosts = _brought_together(engine, read, "host", GatherHosts(wanted))
    total = merged(_partials(read))
    read.forget()
    ends = _brought_together(engine, hosts, "domain", CountHosts())
    for stage in (hosts, ends):
        total = merged([total, *_partials(stage)])
        stage.forget()
    about = Partial(
        files=len(files.names),
        lines=report.lines,
        filtered=report.filtered,
        problems=dict(report.problems.counts),
    )
    return total.merge(about).in_order(), report


def _brought_together(engine: Engine, stage: Stage, level: Level, work: "GatherHosts | CountHosts") -> Stage:
    bounds = stage.bounds(engine.parts, engine.at_once, level)
    return engine.merge(stage, _CutOnlyLines(CutLines(bounds)), len(bounds) + 1, work)


def _partials(stage: Stage) -> Iterator[Partial]:
    """Yield what was counted, one after the other, so that memory is that of one."""
    return (Partial.from_json(row.data.decode()) for row in stage.rows(_COUNTED))
