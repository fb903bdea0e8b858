"""Where the work is done: on this machine, or on a Spark cluster."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from unlost.errors import UsageError

if TYPE_CHECKING:
    from unlost.holdings.spark.engine import SparkEngine

_Command = TypeVar("_Command", bound=Callable[..., Any])

_COLUMNS = ("key", "url", "date", "mime", "status", "length")


@dataclass(frozen=True, slots=True)
class SparkConfig:
    """Where the work is done: the master of a cluster, settings of Spark, where to keep what was read, if anywhere."""

    master: str
    conf: Mapping[str, str]
    checkpoint_url: str | None = None

    @contextmanager
    def engine(self) -> "Iterator[SparkEngine]":
        """Give the engine of the cluster while the block runs."""
        from unlost.holdings.spark.engine import SparkEngine  # noqa: PLC0415  an extra, and slow to import
        from unlost.holdings.spark.keeping import CheckpointStore  # noqa: PLC0415
        from unlost.holdings.spark.session import spark_session  # noqa: PLC0415

        with spark_session(self.master, self.conf) as session:
            keeper = None if self.checkpoint_url is None else CheckpointStore(session, self.checkpoint_url)
            yield SparkEngine(session, checkpoints=keeper)
            if keeper is not None:
                keeper.delete()


def engine_options(command: _Command) -> _Command:
    """Give a command the options that say where it works; `place` makes one thing of them."""
    options = (
        click.option(
            "--engine", type=click.Choice(["local", "spark"]), default="local", show_default=True, help="Where to work."
        ),
        click.option("--master", metavar="URL", help="With --engine spark: the cluster, such as spark://host:7077."),
        click.option(
            "--spark-conf", multiple=True, metavar="NAME=VALUE", help="With --engine spark: a setting; may be repeated."
        ),
        click.option(
            "--keep",
            metavar="ADDRESS",
            help="With --engine spark: a folder that all machines reach, for what was read, until the work is done.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


columns_option = click.option(
    "--columns",
    metavar="NAME=COLUMN,...|common-crawl",
    help=f"With --engine spark: the files are Parquet, and these their columns for {', '.join(_COLUMNS)}.",
)


def spark_config(engine: str, master: str | None, spark_conf: tuple[str, ...], keep: str | None) -> SparkConfig | None:
    """Return the cluster to work on; None for this machine. Raises UsageError if options do not go together."""
    if engine == "local":
        if master is not None or spark_conf or keep is not None:
            raise UsageError("--master, --spark-conf and --keep have a meaning only with --engine spark")
        return None
    if master is None:
        raise UsageError("--engine spark needs --master, such as spark://host:7077, yarn or local[*]")
    conf = {}
    for setting in spark_conf:
        name, found, value = setting.partition("=")
        if not found or not name.startswith("spark."):
            # What stands behind the sign may be a secret.
            raise UsageError(f"{name[:60]}: expected a setting such as spark.executor.memory=4g")
        conf[name] = value
    return SparkConfig(master, conf, keep)


def parquet_columns(text: str | None, cluster: SparkConfig | None) -> Mapping[str, str] | None:
    """Return the columns of Parquet files, by our names for them; None if they are none. Raises UsageError."""
    if text is None:
        return None
    if cluster is None:
        raise UsageError("--columns is for Parquet files, which only --engine spark reads")
    if text == "common-crawl":
        from unlost.holdings.spark.pieces import COMMON_CRAWL_COLUMNS  # noqa: PLC0415  start-up

        return COMMON_CRAWL_COLUMNS
    columns = {}
    for pair in text.split(","):
        name, found, column = pair.partition("=")
        if name not in _COLUMNS or name in columns or not found or not column:
            raise UsageError(
                f"{pair[:60]}: expected a column such as url=address, once for each of {', '.join(_COLUMNS)}"
            )
        columns[name] = column
    if "url" not in columns:
        raise UsageError("--columns has no url=…: nothing could be told from web pages")
    if len(columns) > 1 and "date" not in columns:
        raise UsageError("--columns has no date=…: name it as well, or url alone, which makes a list of addresses")
    return columns
