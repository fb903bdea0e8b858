"""Rows that travel between Spark tasks, the report of a task, and its temporary files."""

import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from unlost.errors import InputError, UnlostError

if TYPE_CHECKING:
    from unlost._core import Tally


ROW_SCHEMA = "part int, source int, place long, data binary"
"""Of every frame but those that are read from files."""
REPORT_PART = -1
"""The part of rows that are about the work."""
PLACES_PER_TASK = 1 << 32
"""More rows than a task can make."""
CHUNK_BYTES = 1 << 20
"""Bytes of a row, about."""
_BATCH_BYTES = 4 << 20
"""Bytes of a batch, about."""
_INVALID_REPORT = "what was kept (--keep) is not ours, or damaged: name another folder, and begin again"


class PartialRow(NamedTuple):
    """Some bytes of a result.

    part: which part of the result they belong to; `REPORT` for what is about the work.
    source: which of the files they come from, where that matters.
    place: grows within a part and a source.
    data: whole lines, or hashes.
    """

    part: int
    source: int
    place: int
    data: bytes


class SplitEdges(NamedTuple):
    """Where a piece of a file begins, and its first and last key: whether pieces follow each other in order."""

    source: int
    start: int
    first: bytes
    last: bytes


@dataclass(slots=True)
class TaskReport:
    """What one task says about its work.

    tallies: for each piece of a file its source, where it begins, how many lines and bytes were put before it, and what
        became of its lines.
    samples: keys at even distances, each with the bytes that it stands for.
    edges: of pieces, where order matters.
    totals: `*` lines: by source what files state, and what their lines come to.
    apart: lines that every part has to know, by source.
    counts: numbers, by name.
    dates: of the first and the last capture.
    maps: the headers' `!meta` of maps that were read, as JSON.
    failure: what a user is told, and the name of its class, if the input is at fault. Trying again would not help.
    """

    tallies: "list[tuple[int, int, int, int, Tally]]" = field(default_factory=list)
    samples: list[tuple[bytes, int]] = field(default_factory=list)
    edges: list[SplitEdges] = field(default_factory=list)
    stated: dict[int, bytes] = field(default_factory=dict)
    summed: dict[int, bytes] = field(default_factory=dict)
    shared_lines: dict[int, bytes] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    dates: tuple[str, str] | None = None
    maps: list[str] = field(default_factory=list)
    failure: tuple[str, str] | None = None

    def to_row(self) -> PartialRow:
        """Return it as what travels."""
        return PartialRow(REPORT_PART, 0, 0, pickle.dumps(self))

    @staticmethod
    def from_bytes(data: bytes) -> "TaskReport":
        """Return what a row has. Raises InputError for what is no note.

        Whoever can write to where it was kept could have written it, so nothing is run.
        """
        try:
            note = _TaskReportUnpickler(BytesIO(data)).load()
        except Exception as error:  # whatever reading rubbish comes to
            raise InputError(_INVALID_REPORT) from error
        if not isinstance(note, TaskReport):
            raise InputError(_INVALID_REPORT)
        return note


class _TaskReportUnpickler(pickle.Unpickler):
    """Makes notes and edges, and nothing else."""

    def find_class(self, module: str, name: str) -> object:
        """Return one of the two classes. Raises TypeError for whatever else."""
        if (module, name) in ((TaskReport.__module__, "TaskReport"), (TaskReport.__module__, "SplitEdges")):
            return {"TaskReport": TaskReport, "SplitEdges": SplitEdges}[name]
        raise TypeError("expected a note")


RowTransform = Callable[[Iterator[PartialRow]], Iterator[PartialRow]]
"""What a task does. It must give the same rows whenever it is done again."""


def report_errors(rows: Iterator[PartialRow]) -> Iterator[PartialRow]:
    """Yield rows; what is wrong with the input becomes a note, so that Spark does not try it again."""
    try:
        yield from rows
    except UnlostError as error:
        yield TaskReport(failure=(type(error).__name__, str(error))).to_row()


def read_batches(batches: Iterable[Any]) -> Iterator[PartialRow]:
    """Yield the rows of Arrow batches of `SCHEMA`."""
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in PartialRow._fields]
        yield from map(PartialRow._make, zip(*columns, strict=True))


def write_batches(rows: Iterable[PartialRow]) -> Iterator[Any]:
    """Yield Arrow batches of rows, none of which is much larger than it must be."""
    import pyarrow as pa  # noqa: PLC0415  an extra

    schema = pa.schema([("part", pa.int32()), ("source", pa.int32()), ("place", pa.int64()), ("data", pa.binary())])

    def batch(some: list[PartialRow]) -> Any:  # noqa: ANN401  pyarrow has no types
        columns = [
            pa.array(list(column), kind) for column, kind in zip(zip(*some, strict=True), schema.types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    some: list[PartialRow] = []
    size = 0
    for row in rows:
        some.append(row)
        size += len(row.data)
        if size >= _BATCH_BYTES:
            yield batch(some)
            some, size = [], 0
    if some:
        yield batch(some)


MAX_TASK_SAMPLES = 64
"""Keys that a task tells of what it counted."""


@contextmanager
def task_directory() -> Iterator[Path]:
    """Give a folder that goes with its contents, in TMPDIR of the machine that works."""
    path = Path(tempfile.mkdtemp(prefix="unlost-spark-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def create_empty_file(path: Path) -> Path:
    """Make an empty file and return it: the core writes into files that are there."""
    path.write_bytes(b"")
    return path


def read_line_chunks(path: Path, start: int = 0) -> Iterator[bytes]:
    """Yield a file's text from a place on, in whole lines."""
    with path.open("rb") as file:
        file.seek(start)
        while text := file.read(CHUNK_BYTES):
            if not text.endswith(b"\n"):
                text += file.readline()
            yield text


def sample_keys(path: Path, max_samples: int = MAX_TASK_SAMPLES) -> list[tuple[bytes, int]]:
    """Return keys at even distances in a file of lines, each with how many bytes it stands for."""
    size = path.stat().st_size
    count = min(max_samples, size // 1024 + 1)
    found: list[tuple[bytes, int]] = []
    with path.open("rb") as file:
        for number in range(count):
            file.seek(size * number // count)
            if number:
                file.readline()
            line = file.readline()
            if line:
                found.append((line.split(b" ", 1)[0], size // count))
    return found


def insert_totals(totals: bytes, texts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield texts of lines in order, with the `*` lines where they sort."""
    for text in texts:
        rest = text
        while totals and rest:
            line, end, behind = rest.partition(b"\n")
            if line > b"*":
                yield totals
                totals = b""
                break
            yield line + end
            rest = behind
        yield rest
    yield totals


def split_totals(path: Path) -> tuple[bytes, Iterator[bytes]]:
    """Return the `*` lines of a map without header, and all its others in chunks.

    Nearly always they come first; keys that sort before `*` are few.
    """
    before, totals = [], []
    with path.open("rb") as file:
        place = 0
        for line in file:
            if line.startswith(b"* "):
                totals.append(line)
            elif line < b"*":
                before.append(line)
            else:
                break
            place += len(line)

    def others() -> Iterator[bytes]:
        if before:
            yield b"".join(before)
        yield from read_line_chunks(path, place)

    return b"".join(totals), others()
