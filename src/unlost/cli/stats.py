"""`unlost stats`: describes what an archive holds, from its index, or what it is queried for, from its logs."""

from collections.abc import Mapping
from importlib import import_module
from json import dumps
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import click

from unlost.cli import types
from unlost.cli.messages import say
from unlost.cli.options import (
    SparkConfig,
    allow_partial_option,
    columns_option,
    engine_options,
    max_bad_option,
    parquet_columns,
    spark_config,
)
from unlost.cli.output import format_tables, write_lines
from unlost.cli.problems import EXIT_SKIPPED_INPUT, say_problems
from unlost.cli.progress import progress, total_size
from unlost.errors import InputError, UnsortedError, UsageError
from unlost.mementomap.builder import EXCLUDABLE_PAGES
from unlost.mementomap.readers import INPUT_KINDS
from unlost.problems import Problems
from unlost.research.access_stats import (
    LOG_KINDS,
    access_stats_to_json,
    access_tables,
    collect_access_stats,
    open_request_counter,
    tabulate_holdings,
    write_access_report,
)
from unlost.research.index_counts import (
    STUDY_EXCLUDE,
    STUDY_MIME,
    STUDY_STATUS,
    IndexCountOptions,
    count_index,
    estimate_index,
)
from unlost.research.index_metrics import IndexMetrics, index_tables
from unlost.research.index_report import index_metrics_to_json, write_index_report
from unlost.uri import DEFAULT_RULES, RULE_SETS

if TYPE_CHECKING:
    from unlost.cli.progress import ProgressBar
    from unlost.mementomap.readers import InputReport
    from unlost.research.index_counts import IndexCounts


_COMMANDS = ("index", "logs")


class _Stats(click.Group):
    """Accepts `unlost stats FILE` for `unlost stats index FILE`, the most common use."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the name of the subcommand if it was omitted."""
        if args and args[0] not in (*_COMMANDS, "--help"):
            args = ["index", *args]
        rest: list[str] = super().parse_args(ctx, args)
        return rest


@click.group(name="stats", cls=_Stats)
def command() -> None:
    """Compute statistics of the captures in an index, or of the requests in access logs.

    `unlost stats INDEX...` is short for `unlost stats index INDEX...`.

    \b
    Example:
      unlost stats archive.cdxj.gz -o report
      unlost stats logs access.log
    """


_FILE = types.AnyPath()
_INDEX_KINDS = tuple(kind for kind in INPUT_KINDS if kind != "map")


@command.command()
@click.argument("files", type=types.LOCAL_OR_REMOTE, nargs=-1, required=True, metavar="INDEX...")
@click.option(
    "-o",
    "--output",
    type=_FILE,
    metavar="FOLDER",
    help="Write an HTML report, a CSV file for each table, and the statistics as JSON to FOLDER.",
)
@click.option(
    "--study",
    is_flag=True,
    help="Count what the MementoMap paper counts: HTML captures with status 200, without robots.txt and sitemaps.",
)
@click.option(
    "--status",
    multiple=True,
    metavar="CODE",
    help="Count only captures with this HTTP status, such as 200. May be repeated.  [default: all]",
)
@click.option(
    "--mime",
    multiple=True,
    metavar="TYPE",
    help="Count only captures of this media type, such as text/html. May be repeated.  [default: all]",
)
@click.option(
    "--exclude",
    metavar="KIND[,KIND]",
    help=f"Do not count these pages: {' or '.join(EXCLUDABLE_PAGES)}, or both with a comma between them."
    "  [default: none]",
)
@click.option(
    "--name", metavar="NAME", help="Name of the index in the title of the report.  [default: names of the files]"
)
@click.option(
    "--rules",
    type=click.Choice(RULE_SETS),
    default=DEFAULT_RULES,
    show_default=True,
    help="Canonicalisation of URLs: as in Wayback and pywb indexes, or as in the papers (case is preserved).",
)
@click.option(
    "--input",
    type=click.Choice(_INDEX_KINDS),
    help="Format of the inputs: index (CDX, CDXJ), zipnum, archive (WARC, ARC, WACZ), urls (list of URLs), log (access "
    "log), or mixed (index rows and URLs)."
    "  [default: detected from the content]",
)
@click.option(
    "--column",
    type=click.IntRange(min=1),
    metavar="N",
    help="Read URLs from column N of a tab-separated list; the first column is 1.",
)
@click.option(
    "--host", metavar="HOST", help="Host name of the site of an access log, if the lines of the log do not contain it."
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of threads that read the inputs.  [default: all processors]",
)
@allow_partial_option
@max_bad_option
@click.option(
    "--estimate",
    is_flag=True,
    help="Read the inputs as unsorted: estimate the numbers of URI-Rs, keys and hosts in one pass. Required for an "
    "unsorted pipe.",
)
@engine_options
@columns_option
@click.option("--json", is_flag=True, help="Print the statistics as JSON.")
@click.pass_context
def index(
    ctx: click.Context,
    files: tuple[str, ...],
    output: Path | None,
    study: bool,
    status: tuple[str, ...],
    mime: tuple[str, ...],
    exclude: str | None,
    name: str | None,
    rules: str,
    input: str | None,  # noqa: A002  options are named after their flags
    column: int | None,
    host: str | None,
    threads: int | None,
    allow_partial: bool,
    max_bad: float | None,
    estimate: bool,
    engine: str,
    master: str | None,
    spark_conf: tuple[str, ...],
    keep: str | None,
    columns: str | None,
    json: bool,
) -> None:
    """Compute statistics of the captures in an index.

    Prints tables of captures, URLs, hosts, years, media types, statuses and path depths. INDEX is a CDX, CDXJ or ZipNum
    (`.idx`) index, a WARC, ARC or WACZ file, a list of URLs or an access log; plain, gzip or zstd. `-` is standard
    input. With --engine spark, INDEX is any path or URL that Spark can read.

    Statistics of a sorted index are exact. For an unsorted one, the numbers of URI-Rs, keys and hosts are estimates
    with error bounds; with --engine spark they are exact in any order.

    The exit code is 5 if lines were skipped because they cannot be read, and 3 if a file is damaged.

    \b
    Example:
      unlost stats index archive.cdxj.gz -o report
    """
    cluster = spark_config(engine, master, spark_conf, keep)
    parquet = parquet_columns(columns, cluster)
    if cluster is not None and estimate:
        raise UsageError("--estimate: a cluster counts exactly, whatever the order: leave it out")
    if cluster is not None and (allow_partial or max_bad is not None):
        raise UsageError("--allow-partial and --max-bad are for one machine: leave out --engine spark")
    excluded = frozenset(exclude.split(",")) if exclude else frozenset()
    if unknown := excluded - set(EXCLUDABLE_PAGES):
        raise UsageError(f"{min(unknown)}: cannot be left out: expected {' or '.join(EXCLUDABLE_PAGES)}")
    if output is not None and output.exists() and not output.is_dir():
        raise InputError(f"{output}: cannot be written: it is no folder")
    options = IndexCountOptions(
        status=frozenset(status) | ({STUDY_STATUS} if study else set()),
        mime=frozenset(mime) | ({STUDY_MIME} if study else set()),
        exclude=excluded | (set(STUDY_EXCLUDE) if study else set()),
        rules=rules,
        kind=next((kind for kind in INPUT_KINDS if kind == input), None),
        column=column,
        host=host,
        threads=threads,
        allow_partial=allow_partial,
        max_bad=max_bad,
    )
    paths = tuple(Path(file) for file in files)
    if output is not None:
        # Loading the page writer takes as long as counting 100,000 rows: it runs in parallel.
        Thread(target=import_module, args=("unlost.research.index_report",)).start()
    if cluster is not None:
        counts, report = _gather_on_cluster(cluster, files, options, parquet)
    else:
        with progress("counting", total_size(paths)) as bar:
            counts, report = _gather(paths, options, bar, is_estimate=estimate)
    metrics = IndexMetrics(counts)
    if json:
        click.echo(dumps(index_metrics_to_json(metrics)))
    else:
        write_lines([f"{line}\n" for line in format_tables(index_tables(metrics).values())])
    if output is not None:
        written = write_index_report(metrics, output, report_name(name, paths))
        say(f"{len(written)} files in {output}; open {output / 'index.html'}", level="info")
    say_problems(report.problems)
    ctx.exit(EXIT_SKIPPED_INPUT if report.problems.total else 0)


def _gather_on_cluster(
    cluster: SparkConfig, files: tuple[str, ...], options: "IndexCountOptions", columns: Mapping[str, str] | None
) -> "tuple[IndexCounts, InputReport]":
    from unlost.research.spark import statistics  # noqa: PLC0415  start-up

    with cluster.engine() as engine:
        return statistics.count_index(engine, files, options, columns)


def report_name(name: str | None, files: tuple[Path, ...]) -> str:
    """Return the title for the files of a report."""
    return name or ", ".join(file.name for file in files[:3]) + (" …" if len(files) > 3 else "")


def _gather(
    files: tuple[Path, ...], options: "IndexCountOptions", bar: "ProgressBar", *, is_estimate: bool
) -> "tuple[IndexCounts, InputReport]":
    """Return exact counts if the order allows it, else estimates.

    Raises:
        InputError: The files are unsorted, and include a pipe, which cannot be read a second time.
    """
    if not is_estimate:
        try:
            return count_index(files, options, bar.update)
        except UnsortedError as error:
            if not all(file.is_file() for file in files):
                raise InputError(f"{error}: give --estimate, since a pipe cannot be read twice") from error
            say(f"{error}: what is told of URI-Rs, keys and hosts is estimated", level="info")
    return estimate_index(files, options, bar.update)


_LOG_KINDS = ("access", "upstream", "memgator")


@command.command()
@click.argument("files", type=types.READABLE_FILE, nargs=-1, required=True, metavar="LOG...")
@click.option(
    "-o",
    "--output",
    type=_FILE,
    metavar="FOLDER",
    help="Write an HTML report, a CSV file for each table, and the statistics as JSON to FOLDER.",
)
@click.option(
    "--index",
    type=types.READABLE_FILE,
    multiple=True,
    metavar="INDEX",
    help="Compare the requested pages with the pages in this index of the archive. May be repeated.",
)
@click.option(
    "--input",
    type=click.Choice(_LOG_KINDS),
    help="Format of the logs: access (common or combined log format), upstream (log of upstream responses) or "
    "memgator."
    "  [default: detected from the content]",
)
@click.option(
    "--name", metavar="NAME", help="Name of the logs in the title of the report.  [default: names of the files]"
)
@click.option("--json", is_flag=True, help="Print the statistics as JSON.")
@click.pass_context
def logs(
    ctx: click.Context,
    files: tuple[Path, ...],
    output: Path | None,
    index: tuple[Path, ...],
    input: str | None,  # noqa: A002  options are named after their flags
    name: str | None,
    json: bool,
) -> None:
    """Compute statistics of the requests in access logs.

    Prints the requests, hits, misses and errors of each archive, and the pages that were requested most often and not
    found. LOG is the access log of an archive (common or combined log format), the log of upstream responses of `unlost
    serve`, or a log of MemGator; plain, gzip or zstd.

    The exit code is 5 if lines were skipped because they cannot be read.

    \b
    Example:
      unlost stats logs access.log.gz --index archive.cdxj.gz
    """
    problems = Problems()
    kind = next((each for each in LOG_KINDS if each == input), None)
    matrix = None
    with progress("reading logs") as bar:
        if index:
            with open_request_counter() as requests:
                accesses = collect_access_stats(
                    files, problems, kind=kind, on_request=requests.add, wrap_urls=bar.lines
                )
                matrix = tabulate_holdings(index, problems, requests.cross_tabulate)
        else:
            accesses = collect_access_stats(files, problems, kind=kind, wrap_urls=bar.lines)
    if json:
        click.echo(dumps(access_stats_to_json(accesses, matrix)))
    else:
        write_lines([f"{line}\n" for line in format_tables(access_tables(accesses, matrix).values())])
    if output is not None:
        written = write_access_report(accesses, matrix, output, report_name(name, files))
        say(f"{len(written)} files in {output}; open {output / 'index.html'}", level="info")
    say_problems(problems)
    ctx.exit(EXIT_SKIPPED_INPUT if problems.total else 0)
