"""Rows exchanged between Spark tasks, task reports, and temporary files of tasks."""

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
    from unlost._core import LineStats


ROW_SCHEMA = "part int, source int, place long, data binary"
"""Schema of all frames but those read from files."""
REPORT_PART = -1
"""Part number of rows that contain a task report."""
PLACES_PER_TASK = 1 << 32
"""Upper bound for the number of rows of a task."""
CHUNK_BYTES = 1 << 20
"""Approximate size of the data of a row."""
_BATCH_BYTES = 4 << 20
"""Approximate size of an Arrow batch."""
_INVALID_REPORT = "what was kept (--keep) is not ours, or damaged: name another folder, and begin again"

MAX_TASK_SAMPLES = 64
"""Number of keys sampled by a task."""


class PartialRow(NamedTuple):
    """A chunk of a partial result.

    Attributes:
        part: Part of the result; `REPORT_PART` for a task report.
        source: Input file or other subdivision of the part, if it matters.
        place: Position; increases within a part and source.
        data: Complete lines, or hashes.
    """

    part: int
    source: int
    place: int
    data: bytes


class SplitEdges(NamedTuple):
    """Offset of a split, and its first and last key, to verify that the splits of a file are sorted."""

    source: int
    start: int
    first: bytes
    last: bytes


@dataclass(slots=True)
class TaskReport:
    """Report of a task.

    Attributes:
        tallies: For each split its source, offset, prefix bytes, prefix lines, and line counts.
        samples: Evenly spaced keys with the bytes that each represents.
        edges: Edges of the splits, where order matters.
        stated: Total lines (`*`) of maps, by source.
        summed: Totals computed from the lines, by source.
        shared_lines: Lines that every part needs, by source.
        counts: Further counts, by name.
        dates: Dates of the first and the last capture.
        maps: `!meta` of the maps that were read, as JSON.
        failure: Class name and message of an error in the input, which a retry cannot fix.
    """

    tallies: "list[tuple[int, int, int, int, LineStats]]" = field(default_factory=list)
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
        """Return the report as a row."""
        return PartialRow(REPORT_PART, 0, 0, pickle.dumps(self))

    @staticmethod
    def from_bytes(data: bytes) -> "TaskReport":
        """Parse a report from a row.

        Checkpoint folders are untrusted, so the unpickler creates no other objects.

        Raises:
            InputError: The data is not a report.
        """
        try:
            report = _TaskReportUnpickler(BytesIO(data)).load()
        except Exception as error:  # damaged pickles raise many types
            raise InputError(_INVALID_REPORT) from error
        if not isinstance(report, TaskReport):
            raise InputError(_INVALID_REPORT)
        return report


class _TaskReportUnpickler(pickle.Unpickler):
    """Unpickles only reports and their edges."""

    def find_class(self, module: str, name: str) -> object:
        """Return one of the two classes.

        Raises:
            TypeError: The pickle refers to anything else.
        """
        if (module, name) in ((TaskReport.__module__, "TaskReport"), (TaskReport.__module__, "SplitEdges")):
            return {"TaskReport": TaskReport, "SplitEdges": SplitEdges}[name]
        raise TypeError("expected a note")


RowTransform = Callable[[Iterator[PartialRow]], Iterator[PartialRow]]
"""Work of a task. It must be deterministic, because Spark may repeat it."""


def report_errors(rows: Iterator[PartialRow]) -> Iterator[PartialRow]:
    """Yield rows; convert an error of the input to a report, so that Spark does not retry the task."""
    try:
        yield from rows
    except UnlostError as error:
        yield TaskReport(failure=(type(error).__name__, str(error))).to_row()


def read_arrow_batches(batches: Iterable[Any]) -> Iterator[PartialRow]:
    """Yield the rows of Arrow batches in `ROW_SCHEMA`."""
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in PartialRow._fields]
        yield from map(PartialRow._make, zip(*columns, strict=True))


def write_batches(rows: Iterable[PartialRow]) -> Iterator[Any]:
    """Yield Arrow batches of about `_BATCH_BYTES`."""
    import pyarrow as pa  # noqa: PLC0415  an extra

    schema = pa.schema([("part", pa.int32()), ("source", pa.int32()), ("place", pa.int64()), ("data", pa.binary())])

    def batch(buffer: list[PartialRow]) -> Any:  # noqa: ANN401  pyarrow has no types
        columns = [
            pa.array(list(column), kind) for column, kind in zip(zip(*buffer, strict=True), schema.types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    buffer: list[PartialRow] = []
    size = 0
    for row in rows:
        buffer.append(row)
        size += len(row.data)
        if size >= _BATCH_BYTES:
            yield batch(buffer)
            buffer, size = [], 0
    if buffer:
        yield batch(buffer)


@contextmanager
def task_directory() -> Iterator[Path]:
    """Yield a temporary folder in the executor's TMPDIR."""
    path = Path(tempfile.mkdtemp(prefix="unlost-spark-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def create_empty_file(path: Path) -> Path:
    """Create an empty file: the core opens only existing files for writing."""
    path.write_bytes(b"")
    return path


def read_line_chunks(path: Path, start: int = 0) -> Iterator[bytes]:
    """Yield the lines of a file from an offset on, in chunks of complete lines."""
    with path.open("rb") as file:
        file.seek(start)
        while chunk := file.read(CHUNK_BYTES):
            if not chunk.endswith(b"\n"):
                chunk += file.readline()
            yield chunk


def sample_keys(path: Path, max_samples: int = MAX_TASK_SAMPLES) -> list[tuple[bytes, int]]:
    """Return evenly spaced keys of a file, each with the bytes that it represents."""
    size = path.stat().st_size
    count = min(max_samples, size // 1024 + 1)
    samples: list[tuple[bytes, int]] = []
    with path.open("rb") as file:
        for number in range(count):
            file.seek(size * number // count)
            if number:
                file.readline()
            line = file.readline()
            if line:
                samples.append((line.split(b" ", 1)[0], size // count))
    return samples


def insert_totals(totals: bytes, texts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield sorted lines with the total lines (`*`) inserted at their sorted position."""
    for text in texts:
        remaining = text
        while totals and remaining:
            line, end, tail = remaining.partition(b"\n")
            if line > b"*":
                yield totals
                totals = b""
                break
            yield line + end
            remaining = tail
        yield remaining
    yield totals


def split_totals(path: Path) -> tuple[bytes, Iterator[bytes]]:
    """Return the total lines (`*`) of a map without header, and an iterator over chunks of the other lines.

    The totals nearly always come first: few keys sort before `*`.
    """
    before, totals = [], []
    with path.open("rb") as file:
        offset = 0
        for line in file:
            if line.startswith(b"* "):
                totals.append(line)
            elif line < b"*":
                before.append(line)
            else:
                break
            offset += len(line)

    def other_lines() -> Iterator[bytes]:
        if before:
            yield b"".join(before)
        yield from read_line_chunks(path, offset)

    return b"".join(totals), other_lines()
