"""`unlost evaluate`: measures how well profiles, maps, budgets and filters of an index route queries."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from json import dumps
from pathlib import Path
from typing import get_args

import click

from unlost.cli import types
from unlost.cli.messages import say
from unlost.cli.options import SparkConfig, columns_option, engine_options, parquet_columns, spark_config
from unlost.cli.output import format_columns, format_tables
from unlost.cli.problems import EXIT_SKIPPED_INPUT, say_problems
from unlost.errors import UsageError
from unlost.mementomap.budget import MAX_FILTER_BITS, MapBudget
from unlost.mementomap.compact import NO_LIMIT
from unlost.mementomap.query_logs import QueryLogOptions
from unlost.mementomap.readers import QUERY_KINDS
from unlost.research.growth import IndexGrowth, measure_growth
from unlost.research.routing_evaluation import LOCAL_BUILDERS, GroundTruth, IndexBuilders, evaluate_archives
from unlost.research.routing_report import (
    RESULT_COLUMNS,
    growth_table,
    result_cells,
    result_rows,
    rows_to_csv,
    upstream_table,
    write_evaluation_report,
)
from unlost.research.routing_results import WEIGHT_PAIRS, ArchiveEvaluation, list_configurations, upstream_loads
from unlost.uri import POLICIES, policy_name

_FILE = types.AnyPath()
_EXIT_FAILED_CHECK = 1
_PROBABILITY = re.compile(r"\d?\.?\d{1,9}", re.ASCII)
_TRUTHS: tuple[GroundTruth, ...] = get_args(GroundTruth)


@click.command(name="evaluate")
@click.option(
    "--index",
    type=types.LOCAL_OR_REMOTE,
    multiple=True,
    metavar="INDEX",
    help="Index of the archive. May be repeated, for an index of several files.",
)
@click.option(
    "--archive",
    multiple=True,
    metavar="NAME=FILE",
    help="Evaluate several archives: FILE is an index of the archive NAME. May be repeated. Cannot be combined with "
    "--index.",
)
@click.option(
    "--queries",
    type=types.READABLE_FILE,
    multiple=True,
    metavar="FILE",
    help="Look up the URLs in this list or log. May be repeated. Required unless --slices or --by is given.",
)
@click.option(
    "--policies",
    metavar="NAME[,NAME...]|all",
    help="Evaluate profiles with these URI-Key policies, such as H3P1,DDom, or with `all` 23 policies of the paper.",
)
@click.option(
    "--weights",
    metavar="HOST,PATH[;HOST,PATH...]|all",
    help="Evaluate maps with these pairs of host and path weights, such as 4,1;x,0. `x` rolls nothing up; `all` is the "
    "36 pairs of the paper.",
)
@click.option(
    "--bits",
    metavar="N[,N...]",
    help="Evaluate filters with N bits per key, combined with a map of the hosts. Example: 1,4,8.",
)
@click.option(
    "--budgets",
    metavar="SIZE[,SIZE...]",
    help="Evaluate maps of these sizes, in lines or in bytes compressed by gzip. Example: 100000,50MB.",
)
@click.option("--with-filter", is_flag=True, help="Divide the bytes of each budget between a map and a filter.")
@click.option(
    "--learn",
    type=types.READABLE_FILE,
    multiple=True,
    metavar="FILE",
    help="Build the maps of --budgets with the past queries in this list or log. May be repeated.",
)
@click.option(
    "--min-probability",
    metavar="P[,P...]",
    help="Evaluate profiles and maps again, where an archive counts as holding a page only if the probability, "
    "estimated from frequencies, is at least P. Recall may then be below 1.",
)
@click.option(
    "--truth",
    type=click.Choice(_TRUTHS),
    help="Count a query as held if the index has its page, with any query string (page), or its whole URL (address)."
    "  [default: page; with --policies, address]",
)
@click.option(
    "--slices",
    type=click.IntRange(min=1),
    metavar="N",
    help="Measure growth: split the index into N parts by date, and build all profiles and maps for each part.",
)
@click.option(
    "--by",
    type=click.Choice(["year"]),
    help="Measure growth: split the index by year, and build all profiles and maps for each year.",
)
@click.option(
    "--query-input",
    type=click.Choice(QUERY_KINDS),
    help="Format of the --queries files: urls (list of URLs), log (access log) or upstream (log of upstream "
    "responses)."
    "  [default: detected from the content]",
)
@click.option(
    "--query-column",
    type=click.IntRange(min=1),
    metavar="N",
    help="Read the URLs of --queries from column N of a tab-separated list; the first column is 1.",
)
@click.option(
    "--query-host",
    metavar="HOST",
    help="Host name of the site of the access log in --queries, if the lines of the log do not contain it.",
)
@engine_options
@columns_option
@click.option(
    "-o", "--output", type=_FILE, metavar="FOLDER", help="Write a report as HTML with charts, JSON and CSV to FOLDER."
)
@click.option("--json", is_flag=True, help="Print one JSON object per configuration.")
@click.option("--csv", is_flag=True, help="Print the results as CSV.")
@click.pass_context
def command(
    ctx: click.Context,
    index: tuple[str, ...],
    archive: tuple[str, ...],
    queries: tuple[Path, ...],
    policies: str | None,
    weights: str | None,
    bits: str | None,
    budgets: str | None,
    with_filter: bool,
    learn: tuple[Path, ...],
    min_probability: str | None,
    truth: GroundTruth | None,
    slices: int | None,
    by: str | None,
    query_input: str | None,
    query_column: int | None,
    query_host: str | None,
    engine: str,
    master: str | None,
    spark_conf: tuple[str, ...],
    keep: str | None,
    columns: str | None,
    output: Path | None,
    json: bool,
    csv: bool,
) -> None:
    """Measure how well profiles, maps and filters predict which pages an archive holds.

    Builds each configuration from the index, looks up every query in it and compares the results with the index. Prints
    the size, the number of queries that are predicted to be held (predicted), how many of these are held (present), and
    precision, accuracy and recall with 95 % confidence intervals. With --engine spark, an index is any path or URL that
    Spark can read.

    The exit code is 1 if the recall of a configuration is below 1, which means that a page of the index was denied, and
    5 if lines were skipped because they cannot be read. Configurations of --min-probability may have a lower recall.

    \b
    Example:
      unlost evaluate --index archive.cdxj.gz --queries urls.txt --weights "4,1;1,1"
    """
    cluster = spark_config(engine, master, spark_conf, keep)
    parquet = parquet_columns(columns, cluster)
    measures_growth = slices is not None or by is not None
    archives = _archives(index, archive)
    if cluster is not None and measures_growth:
        raise UsageError("--slices and --by: how long one machine takes is part of growth: leave --engine spark out")
    if slices is not None and by is not None:
        raise UsageError("--slices and --by: one cuts into equal parts, the other by years: give one of them")
    if not queries and not measures_growth:
        raise UsageError("nothing to ask: give --queries, or --slices or --by for growth alone")
    if output is not None and output.exists() and not output.is_dir():
        raise UsageError(f"{output}: a report is a folder, and this is a file: give another name")
    configurations = list_configurations(
        _weights(weights),
        _bits(bits),
        _budgets(budgets),
        with_filter=with_filter,
        policies=_policies(policies),
        min_probabilities=_probabilities(min_probability),
    )
    kind = next((kind for kind in QUERY_KINDS if kind == query_input), None)
    options = QueryLogOptions(kind=kind, column=query_column, host=query_host)
    evaluations: list[ArchiveEvaluation] = []
    if queries:
        with _index_builders(cluster, parquet) as builders:
            evaluations = evaluate_archives(
                archives,
                queries,
                configurations,
                query_options=options,
                training_queries=learn,
                truth=truth,
                builders=builders,
            )
    growth = None
    if measures_growth:
        if len(archives) > 1:
            raise UsageError("growth is that of one archive: give --index, not several archives")
        (files,) = archives.values()
        growth = measure_growth(files, configurations, parts=slices)
    if output is not None:
        write_evaluation_report(output, evaluations, growth)
    _print(evaluations, growth, as_json=json, as_table=not csv)
    ctx.exit(_say_problems(evaluations, growth))


@contextmanager
def _index_builders(cluster: SparkConfig | None, columns: Mapping[str, str] | None) -> Iterator[IndexBuilders]:
    """Yield the functions that build profiles and maps, on this machine or on a cluster."""
    if cluster is None:
        yield LOCAL_BUILDERS
        return
    from unlost.research.spark import maps, profiles  # noqa: PLC0415  start-up

    with cluster.engine() as spark_engine:
        yield IndexBuilders(
            partial(maps.build_map, spark_engine, columns=columns),
            partial(profiles.build_profiles, spark_engine, columns=columns),
        )


def _archives(index: Sequence[str], archive: Sequence[str]) -> dict[str, list[str]]:
    """Return the index files of each archive by name; with --index, of one archive with an empty name."""
    if bool(index) == bool(archive):
        raise UsageError("give what is held: --index for one archive, or --archive NAME=FILE for each of several")
    if index:
        return {"": list(index)}
    archives: dict[str, list[str]] = {}
    for text in archive:
        name, sign, file = text.partition("=")
        if not (name and sign and file):
            raise UsageError(f"{text[:60]}: expected NAME=FILE")
        archives.setdefault(name, []).append(file)
    return archives


def _policies(text: str | None) -> list[str]:
    if text is None:
        return []
    return list(POLICIES) if text.strip() == "all" else [policy_name(one.strip()) for one in text.split(",")]


def _weights(text: str | None) -> list[tuple[float, float]]:
    if text is not None and text.strip() == "all":
        return list(WEIGHT_PAIRS)
    pairs = []
    for pair in (text or "").split(";") if text else []:
        try:
            host, path = (NO_LIMIT if one.strip() == "x" else float(one) for one in pair.split(","))
        except ValueError:
            raise UsageError(f"{pair[:40]}: expected a pair of weights such as 4,1") from None
        pairs.append((host, path))
    return pairs


def _bits(text: str | None) -> list[int]:
    values = [one.strip() for one in text.split(",")] if text else []
    for one in values:
        if not (one.isascii() and one.isdigit() and 1 <= int(one) <= MAX_FILTER_BITS):
            raise UsageError(f"{one[:40]}: expected bits a key from 1 to {MAX_FILTER_BITS}")
    return [int(one) for one in values]


def _budgets(text: str | None) -> list[MapBudget]:
    return [MapBudget.parse(one) for one in text.split(",")] if text else []


def _probabilities(text: str | None) -> list[float]:
    values = [one.strip() for one in text.split(",")] if text else []
    for one in values:
        if not _PROBABILITY.fullmatch(one) or not 0 < float(one) <= 1:
            raise UsageError(f"{one[:40]}: expected a probability above 0, at most 1, such as 0.05")
    return [float(one) for one in values]


def _print(
    evaluations: Sequence[ArchiveEvaluation], growth: IndexGrowth | None, *, as_json: bool, as_table: bool
) -> None:
    if as_json:
        rows = result_rows(evaluations)
        if len(evaluations) > 1:
            rows += [{"upstream": each.to_row()} for each in upstream_loads(evaluations)]
        if growth is not None:
            rows += [{"growth": each.to_row()} for each in growth.points]
        for row in rows:
            click.echo(dumps(row))
        return
    if not as_table:
        rows = (
            result_rows(evaluations)
            if evaluations
            else [each.to_row() for each in growth.points]
            if growth is not None
            else []
        )
        click.echo(rows_to_csv(rows), nl=False)
        return
    lines = []
    for each in evaluations:
        lines += [*(["", each.archive] if each.archive else [])]
        lines += format_columns(RESULT_COLUMNS, [result_cells(one) for one in each.results])
    tables = [upstream_table(evaluations)] if len(evaluations) > 1 else []
    lines += format_tables([*tables, *([growth_table(growth)] if growth is not None else [])])
    click.echo("\n".join(lines).lstrip("\n"))


def _say_problems(evaluations: Sequence[ArchiveEvaluation], growth: IndexGrowth | None) -> int:
    """Print false negatives and unreadable input, and return the exit code."""
    problems = [each.index_report.problems for each in evaluations] + [
        each.query_report.problems for each in evaluations[:1]
    ]
    if growth is not None:
        problems.append(growth.problems)
    for each in evaluations:
        for name, key in each.false_negatives:
            say(f"{name}: denied {key}, which is held: recall is not 1")
    for each_problems in problems:
        say_problems(each_problems)
    if any(each.false_negatives for each in evaluations):
        return _EXIT_FAILED_CHECK
    return EXIT_SKIPPED_INPUT if any(each.total for each in problems) else 0
