"""Checkpoints of the reading stage, so that an interrupted Spark job can be resumed.

Reading is nearly all of the work. It is divided into ranges of file names: Spark reports each file under one name, and
skips files outside a range before it opens them.
"""

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
"""Minimum size of the files of a checkpoint range: some hundred tasks, so that few executors are idle at its end.

Independent of the cluster, so that another cluster can resume the job.
"""

MAX_RANGES = 16

_SLASHES = r"^(\w+):/+"
"""Spark lists `file:/x` as `file:///x`; unnormalized names would all sort after the last range."""


@dataclass(frozen=True, slots=True)
class CheckpointRange:
    """A range of input files, by name, with its own checkpoint.

    Attributes:
        start: First name; None for no lower bound.
        end: First name of the next range; None for no upper bound.
        url: Folder of the checkpoint.
    """

    start: str | None
    end: str | None
    url: str

    def filter_rows(self, rows: "DataFrame") -> "DataFrame":
        """Return the rows of the files in this range. Each row is in exactly one range, whatever its file name."""
        from pyspark.sql import functions as f  # noqa: PLC0415  an extra

        name = f.regexp_replace("name", _SLASHES, "$1:/")
        if self.start is not None:
            rows = rows.where(name >= self.start)
        return rows if self.end is None else rows.where(name < self.end)


@dataclass(slots=True)
class CheckpointStore:
    """Stores the results of stages as Parquet files.

    The name of a checkpoint is a digest of the input (names, sizes and modification times of files), the work and the
    version of unlost, so that any change invalidates it.

    Attributes:
        session: Spark session.
        url: Folder that all executors can access.
        range_bytes: Minimum size of the files of a range.
    """

    session: "SparkSession"
    url: str
    range_bytes: int = RANGE_BYTES
    _used: list[str] = field(default_factory=list)

    def split_into_ranges(self, files: SparkFiles, work: object) -> list[CheckpointRange]:
        """Return the ranges of files, in the order of their names."""
        with ThreadPoolExecutor(_STAT_CONCURRENCY) as threads:
            versions = list(threads.map(self._file_version, sorted(files.names, key=_normalize_slashes)))
        range_bytes = max(self.range_bytes, sum(version.size for version in versions) // MAX_RANGES)
        groups: list[list[_FileVersion]] = [[]]
        group_bytes = 0
        for version in versions:
            if group_bytes >= range_bytes:
                groups.append([])
                group_bytes = 0
            groups[-1].append(version)
            group_bytes += version.size
        folder = self.url if has_url_scheme(self.url) else f"file:{Path(self.url).absolute()}"
        # Rows refer to files by their index among all names, so the digest covers all files. It also covers all
        # versions: if Spark escapes a name differently in rows, they fall into another range.
        job_digest = _digest(
            [VERSION, list(files.names), versions, files.kind, files.read_settings, _canonical_value(work)]
        )
        ends = [None, *(_normalize_slashes(group[0].name) for group in groups[1:]), None]
        return [
            CheckpointRange(start, end, f"{folder.rstrip('/')}/unlost-{_digest([job_digest, start, end])}")
            for start, end in pairwise(ends)
        ]

    def load_or_compute(self, frame: "DataFrame", checkpoint: CheckpointRange) -> "DataFrame":
        """Return the stored result of a frame; compute and store it first if it is absent or incomplete."""
        self._used.append(checkpoint.url)
        with translate_spark_errors():
            # Spark writes _SUCCESS last, after all tasks.
            if not self._file_system(checkpoint.url).exists(self._path(f"{checkpoint.url}/_SUCCESS")):
                frame.write.mode("overwrite").parquet(checkpoint.url)
            return self.session.read.parquet(escape_glob(checkpoint.url))

    def delete(self) -> None:
        """Delete the checkpoints that were used."""
        with translate_spark_errors():
            for url in self._used:
                self._file_system(url).delete(self._path(url), True)
        self._used.clear()

    def _file_version(self, name: str) -> "_FileVersion":
        jvm: Any = self.session.sparkContext._jvm  # noqa: SLF001  PySpark has no public API for Hadoop file systems
        with translate_spark_errors():
            status = self._file_system(name).getFileStatus(jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(name)))
            return _FileVersion(name, status.getLen(), status.getModificationTime())

    def _path(self, url: str) -> Any:  # noqa: ANN401  Java's
        jvm: Any = self.session.sparkContext._jvm  # noqa: SLF001
        return jvm.org.apache.hadoop.fs.Path(url)

    def _file_system(self, url: str) -> Any:  # noqa: ANN401  Java's
        conf = self.session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
        return self._path(url).getFileSystem(conf)


class _FileVersion(NamedTuple):
    """Identifies the content of a file."""

    name: str
    size: int
    changed: int


def _normalize_slashes(name: str) -> str:
    return re.sub(_SLASHES, r"\1:/", name)


def _digest(value: object) -> str:
    return blake2b(dumps(value).encode(), digest_size=16).hexdigest()


def _canonical_value(value: object) -> object:
    """Return a representation of the work that is the same in every process: sets are sorted."""
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
