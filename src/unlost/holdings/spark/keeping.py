"""What was read and counted, kept at an address, so that a run that ended goes on behind it."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, is_dataclass
from hashlib import blake2b
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unlost._core import VERSION
from unlost.holdings.spark.failures import explained
from unlost.holdings.spark.pieces import Files, is_address, literally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ASKED_AT_ONCE = 16


@dataclass(slots=True)
class Keeper:
    """Keeps what stages came to.

    address: a folder that all machines reach. Within it each has a name by what was read (names, sizes and dates of
    files), by what was done with it, and by the version: whatever of it changes, it is another.
    """

    session: "SparkSession"
    address: str
    _used: list[str] = field(default_factory=list)

    def kept(self, frame: "DataFrame", files: Files, work: object) -> "DataFrame":
        """Return what a frame comes to, from where it is kept; done and kept first if it is not there whole."""
        folder = self.address if is_address(self.address) else f"file:{Path(self.address).absolute()}"
        place = f"{folder.rstrip('/')}/unlost-{self._name(files, work)}"
        self._used.append(place)
        with explained():
            # Spark writes this last, when all machines are done.
            if not self._system(place).exists(self._path(f"{place}/_SUCCESS")):
                frame.write.mode("overwrite").parquet(place)
            return self.session.read.parquet(literally(place))

    def forget(self) -> None:
        """Remove what was kept for a run that is done."""
        with explained():
            for place in self._used:
                self._system(place).delete(self._path(place), True)
        self._used.clear()

    def _name(self, files: Files, work: object) -> str:
        with ThreadPoolExecutor(_ASKED_AT_ONCE) as threads:
            states = list(threads.map(self._state, files.names))
        about = [VERSION, states, files.kind, files.about, _plain(work)]
        return blake2b(dumps(about).encode(), digest_size=16).hexdigest()

    def _state(self, name: str) -> list[object]:
        jvm: Any = self.session.sparkContext._jvm  # noqa: SLF001  there is no other way to Spark's file systems
        with explained():
            status = self._system(name).getFileStatus(jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(name)))
            return [name, status.getLen(), status.getModificationTime()]

    def _path(self, place: str) -> Any:  # noqa: ANN401  Java's
        jvm: Any = self.session.sparkContext._jvm  # noqa: SLF001
        return jvm.org.apache.hadoop.fs.Path(place)

    def _system(self, place: str) -> Any:  # noqa: ANN401  Java's
        conf = self.session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
        return self._path(place).getFileSystem(conf)


def _plain(value: object) -> object:
    """Return what work is, the same in every process: sets have no order of their own."""
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, {each.name: _plain(getattr(value, each.name)) for each in fields(value)}]
    if isinstance(value, frozenset | set):
        return sorted(map(str, value))
    if isinstance(value, Mapping):
        return [[str(key), _plain(each)] for key, each in value.items()]
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(each) for each in value]
    return repr(value)
