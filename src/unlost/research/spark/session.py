"""Spark sessions, and the translation of Spark's errors."""

import os
import re
import shutil
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from unlost import errors
from unlost.errors import ClusterError, InputError, UnlostError, UsageError
from unlost.research.spark.rows import TaskReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_MAX_MESSAGE_LENGTH = 300
_PATH_NOT_FOUND = re.compile(r"\[PATH_NOT_FOUND\] Path does not exist: (\S+?)\.? ")
# The message depends on the file system: HDFS, S3A, local files, others.
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

_CONNECT_SECONDS = 5
"""Timeout for the connection to the master; Spark itself would retry for minutes."""
_EXECUTOR_SECONDS = 120
"""Timeout for the first task; clusters that start machines on demand need about a minute."""
_LOCAL_MASTER = re.compile(r"local(-cluster)?(\[.*\])?")
_CONF = {
    "spark.app.name": "unlost",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    # Limit batches by bytes: the default of 10,000 rows of about 1 MiB each would be too large.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    # A missing file is an error: a map without its captures would have false negatives.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    # Partitions must correspond to parts: adaptive execution would coalesce them.
    "spark.sql.adaptive.enabled": "false",
}


@contextmanager
def translate_spark_errors() -> Iterator[None]:
    """Convert Spark's exceptions to InputError or ClusterError."""
    from py4j.protocol import Py4JError  # noqa: PLC0415  an extra
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise _translate_error(str(error)) from error


def _translate_error(text: str) -> UnlostError:
    """Return the error for the text of a Java exception with its stack trace."""
    if match := _PATH_NOT_FOUND.search(text + " "):
        return InputError(f"{match[1]}: cannot be read: no such file")
    if match := _FILE_VANISHED.search(text):
        name = re.sub(r"^file:/+", "/", next(filter(None, match.groups())).rstrip(".,"))
        return InputError(f"{name}: vanished while it was read: begin again when it stays")
    if any(word in text for word in _EXECUTOR_LOST):
        return ClusterError(
            "the cluster lost its executors more often than it tries again, most likely for want of memory: give them "
            "more (--spark-conf spark.executor.memory=4g, spark.executor.memoryOverhead=2g) and begin again"
        )
    if read_error := _read_error(text):
        return read_error
    if match := _NO_COLUMN.search(text):
        return InputError(f"no column `{match[1] or match[2]}`: give the names of the columns as --columns")
    return (
        _no_file_system_error(text)
        if _NO_FILE_SYSTEM.search(text)
        else ClusterError(f"Spark gave up: {_root_cause(text)}")
    )


def _read_error(text: str) -> UnlostError | None:
    """Return the error if a store or a file could not be read."""
    name = f"{match[1]}: " if (match := _READ_FAILED.search(text + " ")) else ""
    if match := _CONNECTION_FAILED.search(text):
        return ClusterError(f"{name}a store cannot be reached: {_printable(match[1])}: begin again when it answers")
    return InputError(f"{name}cannot be read: {_root_cause(text)}") if name else None


def _no_file_system_error(text: str) -> ClusterError:
    return ClusterError(
        f"Spark has not what this address or setting needs: {_root_cause(text)}: --spark-conf spark.jars.packages=… or "
        "spark.jars=… brings it, for s3a: org.apache.hadoop:hadoop-aws of the same version as Spark's Hadoop"
    )


def _root_cause(text: str) -> str:
    """Return the last cause in a Java stack trace, or its first line."""
    causes = re.findall(r"^(?:Caused by)?: (?:[\w.$]+: )?(.+)", text, re.MULTILINE)
    reason = causes[-1] if causes else next((line for line in text.splitlines() if line.strip()), "no reason")
    return _printable(reason)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)[:_MAX_MESSAGE_LENGTH]


def raise_task_failures(task_reports: list[TaskReport]) -> None:
    """Raise the failure of a task, if any. The choice is deterministic."""
    failures = sorted(task_report.failure for task_report in task_reports if task_report.failure is not None)
    for name, message in failures:
        error_class = getattr(errors, name, InputError)
        raise (error_class if error_class in (errors.UsageError, InputError) else InputError)(message)


@contextmanager
def spark_session(master: str, conf: Mapping[str, str] | None = None) -> "Iterator[SparkSession]":
    """Yield a session on a cluster; it is stopped at the end.

    Args:
        master: Spark master, such as `spark://host:7077`, `yarn` or `local[*]`.
        conf: Further Spark settings.

    Raises:
        UsageError: PySpark is not installed, or the master is invalid.
        ClusterError: The cluster cannot be reached or has no executor.
    """
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415  an extra
    except ImportError:
        raise UsageError("--engine spark needs PySpark: pip install 'unlost[spark]'") from None
    _check_master(master)
    is_local = _LOCAL_MASTER.fullmatch(master) is not None
    if is_local:
        # Use the same Python for workers, and do not listen on other interfaces.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master)
    for name, value in {**_CONF, **(conf or {})}.items():
        builder = builder.config(name, value)
    with translate_spark_errors():
        try:
            session = builder.getOrCreate()
        except Exception as error:  # a missing Java raises various types
            if type(error).__name__ in ("PySparkRuntimeError", "FileNotFoundError"):
                raise ClusterError(_start_failure_message()) from error
            if "Could not parse Master URL" in str(error):
                raise UsageError(_unknown_master_message(master)) from error
            raise
    try:
        _wait_for_executor(session, master)
        yield session
    finally:
        with suppress(Exception):
            session.stop()


def _unknown_master_message(master: str) -> str:
    return f"{master[:60]}: expected a master such as spark://host:7077, yarn, k8s://… or local[*]"


def _start_failure_message() -> str:
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "Java is missing: Spark needs Java 17 or newer (Debian: apt-get install default-jre-headless)"
    return "Spark did not start: above stands what it said; it needs Java 17 or newer, and for yarn HADOOP_CONF_DIR"


def _check_master(master: str) -> None:
    """Validate the master, and try to connect to `spark://` hosts, before Java starts and reports errors on its own.

    Raises:
        UsageError: The master is invalid.
        ClusterError: None of the hosts accepts a connection.
    """
    if not (_LOCAL_MASTER.fullmatch(master) or master == "yarn" or master.startswith(("spark://", "k8s://"))):
        raise UsageError(_unknown_master_message(master))
    if not master.startswith("spark://"):
        return
    hosts = master.removeprefix("spark://").split(",")
    reasons = []
    for host in hosts:
        name, _, port = host.rpartition(":")
        if not name or not port.isdigit():
            raise UsageError(_unknown_master_message(master))
        try:
            socket.create_connection((name.strip("[]"), int(port)), _CONNECT_SECONDS).close()
        except OSError as error:
            reasons.append(f"{host}: {error.strerror or error}")
        else:
            return
    raise ClusterError(f"the master cannot be reached: {'; '.join(reasons)}")


def _wait_for_executor(session: "SparkSession", master: str) -> None:
    """Run a trivial job with a timeout: a master without workers accepts jobs and never starts them.

    Raises:
        ClusterError: The timeout has passed.
    """
    context = session.sparkContext
    failures: list[BaseException] = []

    def run_job() -> None:
        try:
            context.parallelize([0], 1).count()
        except Exception as error:  # noqa: BLE001  raised again in the thread that waits
            failures.append(error)

    thread = threading.Thread(target=run_job, name="unlost-spark-first", daemon=True)
    thread.start()
    thread.join(_EXECUTOR_SECONDS)
    if thread.is_alive():
        context.cancelAllJobs()
        raise ClusterError(
            f"{master}: no executor began to work within {_EXECUTOR_SECONDS} seconds: are there workers with enough "
            "memory and processors (spark.executor.memory, spark.executor.cores)?"
        )
    if failures:
        with translate_spark_errors():
            raise failures[0]
