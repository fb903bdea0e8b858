"""Stores what was read and counted, so that an interrupted Spark job resumes."""

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, is_dataclass
from hashlib import blake2b
from itertools import pairwise
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from unlost._core import VERSION
from unlost.research.spark.session import translate_spark_errors
from unlost.research.spark.splits import SparkFiles, escape_glob, has_url_scheme

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STAT_CONCURRENCY = 16

RANGE_BYTES = 64 << 30
"""Of files, at least: some hundred tasks, so that few machines wait for the last of a leg. It does not depend on the
cluster, or another one could not go on."""

MAX_RANGES = 16

_SLASHES = r"^(\w+):/+"
"""Rows know a file as `file:/x` that Spark lists as `file:///x`: all would be behind the last range."""


@dataclass(frozen=True, slots=True)
class CheckpointRange:
    """A part of the reading that is kept by itself: all files whose names are in a range.

    least, below: where the range begins and where the next does; None where it has no end. place: where it is kept.
    """

    start: str | None
    end: str | None
    url: str

    def filter_rows(self, rows: "DataFrame") -> "DataFrame":
        """Return the rows of its files. Every row is of one leg, whatever names look like."""
        from pyspark.sql import functions as f  # noqa: PLC0415  an extra

        name = f.regexp_replace("name", _SLASHES, "$1:/")
        if self.start is not None:
            rows = rows.where(name >= self.start)
        return rows if self.end is None else rows.where(name < self.end)


@dataclass(slots=True)
class CheckpointStore:
    """Keeps what stages came to.

    address: a folder that all machines reach. Within it each leg has a name by what was read (names, sizes and dates of
    files), by what was done with it, and by the version: whatever of it changes, it is another.
    leg_bytes: of the files of a leg, at least.
    """

    session: "SparkSession"
    url: str
    range_bytes: int = RANGE_BYTES
    _used: list[str] = field(default_factory=list)

    def split_into_ranges(self, files: SparkFiles, work: object) -> list[CheckpointRange]:
        """Return the legs in which files are read, in the order of their names."""
        with ThreadPoolExecutor(_STAT_CONCURRENCY) as threads:
            states = list(threads.map(self._file_version, sorted(files.names, key=_normalize_slashes)))
        size = max(self.range_bytes, sum(state.size for state in states) // MAX_RANGES)
        groups: list[list[_FileVersion]] = [[]]
        taken = 0
        for state in states:
            if taken >= size:
                groups.append([])
                taken = 0
            groups[-1].append(state)
            taken += state.size
        folder = self.url if has_url_scheme(self.url) else f"file:{Path(self.url).absolute()}"
        # Rows know their files by their places among all names. All states count for all legs: should Spark escape a
        # name otherwise in rows, they are of another leg, which must not outlive a change of the file either.
        whole = _digest([VERSION, list(files.names), states, files.kind, files.read_settings, _canonical_value(work)])
        ends = [None, *(_normalize_slashes(group[0].name) for group in groups[1:]), None]
        return [
            CheckpointRange(least, below, f"{folder.rstrip('/')}/unlost-{_digest([whole, least, below])}")
            for least, below in pairwise(ends)
        ]

    def load_or_compute(self, frame: "DataFrame", checkpoint: CheckpointRange) -> "DataFrame":
        """Return what a frame comes to, from where it is kept; done and kept first if it is not there whole."""
        self._used.append(checkpoint.url)
        with translate_spark_errors():
            # Spark writes this last, when all machines are done.
            if not self._file_system(checkpoint.url).exists(self._path(f"{checkpoint.url}/_SUCCESS")):
                frame.write.mode("overwrite").parquet(checkpoint.url)
            return self.session.read.parquet(escape_glob(checkpoint.url))

    def delete(self) -> None:
        """Remove what was kept for a run that is done."""
        with translate_spark_errors():
            for place in self._used:
                self._file_system(place).delete(self._path(place), True)
        self._used.clear()

    def _file_version(self, name: str) -> "_FileVersion":
        jvm: Any = self.session.sparkContext._jvm  # noqa: SLF001  there is no other way to Spark's file systems
        with translate_spark_errors():
            status = self._file_system(name).getFileStatus(jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(name)))
            return _FileVersion(name, status.getLen(), status.getModificationTime())

    def _path(self, place: str) -> Any:  # noqa: ANN401  Java's
        jvm: Any = self.session.sparkContext._jvm  # noqa: SLF001
        return jvm.org.apache.hadoop.fs.Path(place)

    def _file_system(self, place: str) -> Any:  # noqa: ANN401  Java's
        conf = self.session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
        return self._path(place).getFileSystem(conf)


class _FileVersion(NamedTuple):
    """By what a file is known."""

    name: str
    size: int
    changed: int


def _normalize_slashes(name: str) -> str:
    return re.sub(_SLASHES, r"\1:/", name)


def _digest(about: object) -> str:
    return blake2b(dumps(about).encode(), digest_size=16).hexdigest()


def _canonical_value(value: object) -> object:
    """Return what work is, the same in every process: sets have no order of their own."""
    if is_dataclass(value) and not isinstance(value, type):
        return [
            type(value).__name__,
            {each.name: _canonical_value(getattr(value, each.name)) for each in fields(value)},
        ]
    if isinstance(value, frozenset | set):
        return sorted(map(str, value))
    if isinstance(value, Mapping):
        return [[str(key), _canonical_value(each)] for key, each in value.items()]
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_canonical_value(each) for each in value]
    return repr(value)
