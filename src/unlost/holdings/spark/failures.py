"""What Spark says when it fails, for people."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from unlost import errors
from unlost.errors import ClusterError, InputError, UnlostError
from unlost.holdings.spark.rows import TaskReport

_MAX_MESSAGE_LENGTH = 300

_PATH_NOT_FOUND = re.compile(r"\[PATH_NOT_FOUND\] Path does not exist: (\S+?)\.? ")
# Each file system has words of its own for it: HDFS, S3A, files of a machine, all others.
_FILE_VANISHED = re.compile(
    r"\b(?:FileNotFoundException|NoSuchFileException|NotFoundException): "
    r"(?:File does not exist: (.+)|No such file(?: or directory)?: (.+)|File (.+?) does not exist|(\S+))"
)
_CONNECTION_FAILED = re.compile(
    r"\b(?:ConnectException|ConnectTimeoutException|NoRouteToHostException|SocketTimeoutException"
    r"|UnknownHostException): (.+)"
)
_READ_FAILED = re.compile(
    r"\[FAILED_READ_FILE\.\w+\] (?:Encountered error|Error) while reading (?:the )?file (\S+?)\.? "
)
_EXECUTOR_LOST = (
    "OutOfMemoryError",
    "ExecutorLostFailure",
    "exit code 137",
    "exit code 52",
    "Container killed",
    "MemoryError",
    "Python worker exited unexpectedly",
)
_NO_FILE_SYSTEM = re.compile(
    r"No FileSystem for scheme|org\.apache\.hadoop\.fs\.\S+ not found|ClassNotFoundException|NoClassDefFound"
)
_NO_COLUMN = re.compile(r"column[^`]*`([^`]+)`(?:`| )? ?cannot be resolved|with name `([^`]+)` cannot be resolved")


@contextmanager
def translate_spark_errors() -> Iterator[None]:
    """Turn what Spark raises within the block into an InputError or a ClusterError."""
    from py4j.protocol import Py4JError  # noqa: PLC0415  an extra
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise _translate_error(str(error)) from error


def _translate_error(text: str) -> UnlostError:
    """Return what went wrong. The text is that of Java, many lines with where it happened."""
    if found := _PATH_NOT_FOUND.search(text + " "):
        return InputError(f"{found[1]}: cannot be read: no such file")
    if found := _FILE_VANISHED.search(text):
        name = re.sub(r"^file:/+", "/", next(filter(None, found.groups())).rstrip(".,"))
        return InputError(f"{name}: vanished while it was read: begin again when it stays")
    if any(word in text for word in _EXECUTOR_LOST):
        return ClusterError(
            "the cluster lost its executors more often than it tries again, most likely for want of memory: give them "
            "more (--spark-conf spark.executor.memory=4g, spark.executor.memoryOverhead=2g) and begin again"
        )
    if unread := _read_error(text):
        return unread
    if found := _NO_COLUMN.search(text):
        return InputError(f"no column `{found[1] or found[2]}`: give the names of the columns as --columns")
    return (
        _no_file_system_error(text)
        if _NO_FILE_SYSTEM.search(text)
        else ClusterError(f"Spark gave up: {_root_cause(text)}")
    )


def _read_error(text: str) -> UnlostError | None:
    """Return what went wrong if it was a store or a file."""
    name = f"{found[1]}: " if (found := _READ_FAILED.search(text + " ")) else ""
    if found := _CONNECTION_FAILED.search(text):
        return ClusterError(f"{name}a store cannot be reached: {_printable(found[1])}: begin again when it answers")
    return InputError(f"{name}cannot be read: {_root_cause(text)}") if name else None


def _no_file_system_error(text: str) -> ClusterError:
    return ClusterError(
        f"Spark has not what this address or setting needs: {_root_cause(text)}: --spark-conf spark.jars.packages=… or "
        "spark.jars=… brings it, for s3a: org.apache.hadoop:hadoop-aws of the same version as Spark's Hadoop"
    )


def _root_cause(text: str) -> str:
    """Return the last cause that Java names, or its first line."""
    causes = re.findall(r"^(?:Caused by)?: (?:[\w.$]+: )?(.+)", text, re.MULTILINE)
    reason = causes[-1] if causes else next((line for line in text.splitlines() if line.strip()), "no reason")
    return _printable(reason)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)[:_MAX_MESSAGE_LENGTH]


def raise_task_failures(notes: list[TaskReport]) -> None:
    """Raise what a task found wrong with the input, if any did: always the same, whichever task was first."""
    found = sorted(note.failure for note in notes if note.failure is not None)
    for name, message in found:
        kind = getattr(errors, name, InputError)
        raise (kind if kind in (errors.UsageError, InputError) else InputError)(message)
