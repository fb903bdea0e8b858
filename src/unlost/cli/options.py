"""Options shared by commands that read indexes and write maps, filters and profiles.

Damaged inputs, canonicalisation rules and suffix lists, `--date` and SOURCE_DATE_EPOCH, and the Spark engine.
"""

import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from unlost import uri
from unlost.cli.types import READABLE_FILE
from unlost.errors import DateError, InputError, UsageError
from unlost.mementomap.map_file import build_time
from unlost.problems import unreadable_error

if TYPE_CHECKING:
    from unlost.research.spark.engine import SparkEngine


_Command = TypeVar("_Command", bound=Callable[..., Any])


def _reject_nan(_ctx: click.Context, _param: click.Parameter, value: float | None) -> float | None:
    if value is not None and math.isnan(value):
        raise click.BadParameter("expected a number from 0 to 1, found NaN")  # every comparison with it is false
    return value


allow_partial_option = click.option(
    "--allow-partial",
    is_flag=True,
    help="Use the readable part of damaged inputs, and exit with code 5. Without this option, a damaged input is an "
    "error and nothing is written.",
)
max_bad_option = click.option(
    "--max-bad",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    callback=_reject_nan,
    help="Fail and write nothing if more than this share of the input lines is invalid, such as 0.01 for 1 %.  "
    "[default: no limit]",
)
force_option = click.option("--force", is_flag=True, help="Allow the output to replace an input file.")


def damage_options(command: _Command) -> _Command:
    """Add `--allow-partial`, `--max-bad` and `--force`."""
    return allow_partial_option(max_bad_option(force_option(command)))


_MAX_LIST_BYTES = 16 << 20  # the Public Suffix List has a third of a megabyte
rules_option = click.option(
    "--rules",
    type=click.Choice(uri.RULE_SETS),
    default=uri.DEFAULT_RULES,
    show_default=True,
    help="Canonicalise URLs by the rules of Wayback and pywb indexes, or by those of the research papers, which "
    "preserve letter case.",
)
psl_option = click.option(
    "--psl",
    type=READABLE_FILE,
    metavar="FILE",
    help="Read the Public Suffix List from FILE.  [default: the list shipped with unlost]",
)
suffixes_option = click.option(
    "--suffixes",
    type=click.Choice(["all", "icann"]),
    default="all",
    show_default=True,
    help="Sections of the Public Suffix List to use. With `all`, private suffixes count, and `foo.blogspot.com` is a "
    "registered domain.",
)


def load_suffix_list(file: Path | None, section: str) -> uri.SuffixList:
    """Return the suffix list in a file, by default the one shipped with unlost. Raises InputError if it is invalid."""
    if file is None:
        return uri.SuffixList(section=section)
    try:
        with file.open("rb") as opened:
            text = opened.read(_MAX_LIST_BYTES + 1)
    except OSError as error:
        raise unreadable_error(file, error) from error
    if len(text) > _MAX_LIST_BYTES:
        raise InputError(f"{file}: not a Public Suffix List: more than {_MAX_LIST_BYTES} bytes")
    try:
        return uri.SuffixList(text, section)
    except InputError as error:
        raise InputError(f"{file}: {error}") from error


def resolve_date(text: str | None) -> date:
    """Return the day of `--date`, else of the variable SOURCE_DATE_EPOCH, else today in UTC. Raises UsageError."""
    from unlost import dates  # noqa: PLC0415  start-up

    timestamp = resolve_timestamp(text)
    return dates.to_datetime(timestamp).date() if timestamp else datetime.now(UTC).date()


def resolve_build_time(text: str | None) -> str:
    """Return `--date`, else the variable SOURCE_DATE_EPOCH, else now, as 14 digits. Raises UsageError."""
    return resolve_timestamp(text) or build_time()


def resolve_timestamp(text: str | None) -> str | None:
    """Return `--date`, else the variable SOURCE_DATE_EPOCH, as 14 digits; None if neither is set.

    Used for file headers, so that output is reproducible: the same input gives the same file on any day.

    Raises:
        UsageError: The date is invalid.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if text is None and not epoch:
        return None
    from unlost import dates  # noqa: PLC0415  start-up

    digits: str | None
    try:
        if text is not None:
            digits = dates.pad(text) if text.isdigit() else dates.from_iso(text)
        else:
            digits = dates.from_epoch(epoch) if epoch else None
        if digits is not None:
            dates.to_datetime(digits)
    except DateError as error:
        raise UsageError(f"{'SOURCE_DATE_EPOCH' if text is None else '--date'}: {error}") from error
    return digits


_COLUMNS = ("key", "url", "date", "mime", "status", "length")


@dataclass(frozen=True, slots=True)
class SparkConfig:
    """Configuration of the cluster: master URL, Spark settings, and where to store checkpoints, if anywhere."""

    master: str
    conf: Mapping[str, str]
    checkpoint_url: str | None = None

    @contextmanager
    def engine(self) -> "Iterator[SparkEngine]":
        """Yield the engine of the cluster. Checkpoints are deleted if the block succeeds."""
        from unlost.research.spark.checkpoint import CheckpointStore  # noqa: PLC0415
        from unlost.research.spark.engine import SparkEngine  # noqa: PLC0415  an extra, and slow to import
        from unlost.research.spark.session import spark_session  # noqa: PLC0415

        with spark_session(self.master, self.conf) as session:
            checkpoints = None if self.checkpoint_url is None else CheckpointStore(session, self.checkpoint_url)
            yield SparkEngine(session, checkpoints=checkpoints)
            if checkpoints is not None:
                checkpoints.delete()


def engine_options(command: _Command) -> _Command:
    """Add the options that choose the engine, which `spark_config` turns into one object."""
    options = (
        click.option(
            "--engine",
            type=click.Choice(["local", "spark"]),
            default="local",
            show_default=True,
            help="Run on this machine or on a Spark cluster. `spark` requires --master.",
        ),
        click.option(
            "--master",
            metavar="URL",
            help="With --engine spark: connect to this cluster, such as spark://host:7077, yarn or local[*].",
        ),
        click.option(
            "--spark-conf",
            multiple=True,
            metavar="NAME=VALUE",
            help="With --engine spark: set a Spark property, such as spark.executor.memory=4g. May be repeated.",
        ),
        click.option(
            "--keep",
            metavar="URL",
            help="With --engine spark: store checkpoints in this folder, which all machines must reach, so that an "
            "interrupted run can be resumed. They are deleted when the run succeeds.  [default: no checkpoints]",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


columns_option = click.option(
    "--columns",
    metavar="NAME=COLUMN,...|common-crawl",
    help=f"With --engine spark: read Parquet files, and take {', '.join(_COLUMNS)} from these columns. `common-crawl` "
    "selects the columns of Common Crawl's index.",
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
        name, equals, value = setting.partition("=")
        if not equals or not name.startswith("spark."):
            # The value after the equals sign may be a secret.
            raise UsageError(f"{name[:60]}: expected a setting such as spark.executor.memory=4g")
        conf[name] = value
    return SparkConfig(master, conf, keep)


def parquet_columns(text: str | None, cluster: SparkConfig | None) -> Mapping[str, str] | None:
    """Return the Parquet columns by our names for them, or None if the files are not Parquet. Raises UsageError."""
    if text is None:
        return None
    if cluster is None:
        raise UsageError("--columns is for Parquet files, which only --engine spark reads")
    if text == "common-crawl":
        from unlost.research.spark.splits import COMMON_CRAWL_COLUMNS  # noqa: PLC0415  start-up

        return COMMON_CRAWL_COLUMNS
    columns = {}
    for pair in text.split(","):
        name, equals, column = pair.partition("=")
        if name not in _COLUMNS or name in columns or not equals or not column:
            raise UsageError(
                f"{pair[:60]}: expected a column such as url=address, once for each of {', '.join(_COLUMNS)}"
            )
        columns[name] = column
    if "url" not in columns:
        raise UsageError("--columns has no url=…: nothing could be told from web pages")
    if len(columns) > 1 and "date" not in columns:
        raise UsageError("--columns has no date=…: name it as well, or url alone, which makes a list of addresses")
    return columns
