"""What Spark says when it fails, for people."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from unlost import errors
from unlost.errors import ClusterError, InputError, UnlostError
from unlost.holdings.spark.rows import Note

_LONGEST = 300

_MISSING = re.compile(r"\[PATH_NOT_FOUND\] Path does not exist: (\S+?)\.? ")
# Each file system has words of its own for it: HDFS, S3A, files of a machine, all others.
_VANISHED = re.compile(
    r"\b(?:FileNotFoundException|NoSuchFileException|NotFoundException): "
    r"(?:File does not exist: (.+)|No such file(?: or directory)?: (.+)|File (.+?) does not exist|(\S+))"
)
_UNREACHED = re.compile(
    r"\b(?:ConnectException|ConnectTimeoutException|NoRouteToHostException|SocketTimeoutException"
    r"|UnknownHostException): (.+)"
)
_UNREADABLE = re.compile(
    r"\[FAILED_READ_FILE\.\w+\] (?:Encountered error|Error) while reading (?:the )?file (\S+?)\.? "
)
_LOST = (
    "OutOfMemoryError",
    "ExecutorLostFailure",
    "exit code 137",
    "exit code 52",
    "Container killed",
    "MemoryError",
    "Python worker exited unexpectedly",
)
_NO_SYSTEM = re.compile(
    r"No FileSystem for scheme|org\.apache\.hadoop\.fs\.\S+ not found|ClassNotFoundException|NoClassDefFound"
)
_COLUMN = re.compile(r"column[^`]*`([^`]+)`(?:`| )? ?cannot be resolved|with name `([^`]+)` cannot be resolved")


@contextmanager
def explained() -> Iterator[None]:
    """Turn what Spark raises within the block into an InputError or a ClusterError."""
    from py4j.protocol import Py4JError  # noqa: PLC0415  an extra
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise _told(str(error)) from error


def _told(text: str) -> UnlostError:
    """Return what went wrong. The text is that of Java, many lines with where it happened."""
    if found := _MISSING.search(text + " "):
        return InputError(f"{found[1]}: cannot be read: no such file")
    if found := _VANISHED.search(text):
        name = re.sub(r"^file:/+", "/", next(filter(None, found.groups())).rstrip(".,"))
        return InputError(f"{name}: vanished while it was read: begin again when it stays")
    if any(word in text for word in _LOST):
        return ClusterError(
            "the cluster lost its executors more often than it tries again, most likely for want of memory: give them "
            "more (--spark-conf spark.executor.memory=4g, spark.executor.memoryOverhead=2g) and begin again"
        )
    if unread := _unread(text):
        return unread
    if found := _COLUMN.search(text):
        return InputError(f"no column `{found[1] or found[2]}`: give the names of the columns as --columns")
    return _without_system(text) if _NO_SYSTEM.search(text) else ClusterError(f"Spark gave up: {_reason(text)}")


def _unread(text: str) -> UnlostError | None:
    """Return what went wrong if it was a store or a file."""
    name = f"{found[1]}: " if (found := _UNREADABLE.search(text + " ")) else ""
    if found := _UNREACHED.search(text):
        return ClusterError(f"{name}a store cannot be reached: {_shown(found[1])}: begin again when it answers")
    return InputError(f"{name}cannot be read: {_reason(text)}") if name else None


def _without_system(text: str) -> ClusterError:
    return ClusterError(
        f"Spark has not what this address or setting needs: {_reason(text)}: --spark-conf spark.jars.packages=… or "
        "spark.jars=… brings it, for s3a: org.apache.hadoop:hadoop-aws of the same version as Spark's Hadoop"
    )


def _reason(text: str) -> str:
    """Return the last cause that Java names, or its first line."""
    causes = re.findall(r"^(?:Caused by)?: (?:[\w.$]+: )?(.+)", text, re.MULTILINE)
    reason = causes[-1] if causes else next((line for line in text.splitlines() if line.strip()), "no reason")
    return _shown(reason)


def _shown(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)[:_LONGEST]


def raise_failures(notes: list[Note]) -> None:
    """Raise what a task found wrong with the input, if any did: always the same, whichever task was first."""
    found = sorted(note.failure for note in notes if note.failure is not None)
    for name, message in found:
        kind = getattr(errors, name, InputError)
        raise (kind if kind in (errors.UsageError, InputError) else InputError)(message)
