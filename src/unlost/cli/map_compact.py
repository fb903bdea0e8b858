"""`unlost map compact`: compacts a map by weights or to a budget."""

from collections.abc import Sequence
from dataclasses import asdict
from json import dumps
from pathlib import Path

import click
from click.core import ParameterSource

from unlost._core import CompactionStats
from unlost.atomic import atomic_file
from unlost.cli import types
from unlost.cli.messages import say
from unlost.cli.options import SparkConfig, engine_options, force_option, resolve_build_time, spark_config
from unlost.cli.output import is_standard_output, open_output, reject_in_place, reject_stdout_conflict
from unlost.cli.problems import EXIT_SKIPPED_INPUT, say_problems
from unlost.cli.progress import progress, total_size
from unlost.errors import UsageError
from unlost.mementomap.budget import BudgetOptions, BudgetReport, MapBudget, compact_to_budget
from unlost.mementomap.builder import fit_compaction
from unlost.mementomap.compact import NO_LIMIT, Compaction, compact_map
from unlost.mementomap.query_logs import QueryLogOptions
from unlost.mementomap.readers import QUERY_KINDS, QueryKind


def write_trace(trace: Path | None, shape: CompactionStats) -> None:
    """Write lines read against lines left as CSV, if a file is given."""
    if trace is not None:
        with atomic_file(trace) as curve:
            rows = [("lines_in", "lines_out"), *shape.trace]
            curve.write("".join(f"{a},{b}\n" for a, b in rows).encode())


def rollups_by_level(rollups: Sequence[int], host_levels: int) -> dict[str, int]:
    """Return how many nodes were rolled up at each depth, named as in the papers: H2, P0 and so on."""
    names = [f"H{level + 1}" if level < host_levels else f"P{level - host_levels}" for level in range(len(rollups))]
    return {name: count for name, count in zip(names, rollups, strict=True) if count}


def format_compaction(shape: CompactionStats) -> str:
    """Return a summary of the compaction as text."""
    rollups_text = ", ".join(
        f"{name} {count}" for name, count in rollups_by_level(shape.rollups, shape.host_levels).items()
    )
    return f"{shape.lines_in} lines became {shape.lines_out}; rolled up by depth: {rollups_text or 'none'}"


def run_budget_compaction(
    file: Path,
    output: Path,
    size: str,
    *,
    queries: tuple[Path, ...],
    query_kind: QueryKind | None,
    query_column: int | None,
    query_host: str | None,
    protect_suffixes: bool,
    rollup: tuple[str, ...],
    host_depth: int,
    path_depth: int,
    with_filter: Path | None,
    date: str | None,
    trace: Path | None,
    json: bool,
) -> int:
    """Compact to a budget, print the result, and return the exit code. The parameters are the command's options."""
    options = BudgetOptions(
        queries=queries,
        query_options=QueryLogOptions(kind=query_kind, column=query_column, host=query_host),
        protect_suffixes=protect_suffixes,
        rollup=rollup,
        host_depth=host_depth,
        path_depth=path_depth,
        with_filter=with_filter,
        built_at=resolve_build_time(date),
    )
    budget = MapBudget.parse(size)
    filter_path = options.with_filter
    if filter_path is not None and is_standard_output(Path(filter_path)):
        raise UsageError("--with-filter -: standard output is for the map: give the filter a name")
    with open_output(output) as target, progress("weighing", total_size([file])) as bar:
        report = compact_to_budget(file, target, budget, options, bar.update)
    if report.shape is not None:
        write_trace(trace, report.shape)
        if json:
            click.echo(dumps(_budget_object(budget, options, report, report.shape)))
        else:
            say(format_compaction(report.shape), level="info")
            say(_format_budget(budget, report), level="info")
    if filter_path is not None and not report.filter_bits:
        # A filter of another map would deny pages that this one lists.
        hint = f"; what is there, {filter_path}, is of another map" if Path(filter_path).exists() else ""
        say(f"no filter is worth its bytes, so none was written{hint}", level="warning")
    say_problems(report.problems)
    say_problems(report.query_report.problems)
    return EXIT_SKIPPED_INPUT if report.problems.total or report.query_report.problems.total else 0


def _format_budget(budget: MapBudget, report: BudgetReport) -> str:
    filter_text = (
        f", {report.filter_bytes:,} of a filter of {report.filter_bits} bits a key" if report.filter_bits else ""
    )
    learned = f", learned from {report.query_count:,} questions" if report.query_count else ""
    return (
        f"{report.size:,} of {budget}{filter_text}; of the pages asked for that are not held, "
        f"{report.expected_error_rate:.1%} are "
        f"expected to be taken for held{learned}"
    )


def _budget_object(
    budget: MapBudget, options: BudgetOptions, report: BudgetReport, shape: CompactionStats
) -> dict[str, object]:
    return {
        "lines_in": shape.lines_in,
        "lines_out": shape.lines_out,
        "rollups": rollups_by_level(shape.rollups, shape.host_levels),
        "budget": {
            budget.unit: budget.size,
            "used": report.size + report.filter_bytes,
            "protect_suffixes": options.protect_suffixes,
        },
        "expected_wrong": report.expected_error_rate,
        "asked": report.query_count,
        "missed": report.miss_count,
        "questions_unreadable": report.query_report.problems.counts,
        "filter_bits": report.filter_bits,
        "filter_bytes": report.filter_bytes,
    }


_FILE = types.AnyPath()
_WEIGHT = click.FloatRange(min=0)
_NOT_WITH_BUDGET = (
    "host_weight",
    "path_weight",
    "no_hosts",
    "no_paths",
    "host_a",
    "host_k",
    "path_a",
    "path_k",
    "fit",
)
_ONLY_WITH_BUDGET = ("queries", "query_input", "query_column", "query_host", "protect_suffixes", "with_filter", "date")


@click.command()
@click.argument("file", type=types.LOCAL_OR_REMOTE, metavar="MAP")
@click.option(
    "-o", "--output", type=_FILE, required=True, metavar="FILE", help="Write the map to FILE; `-` is standard output."
)
@click.option(
    "--host-weight",
    type=_WEIGHT,
    default=1.0,
    show_default=True,
    metavar="WEIGHT",
    help="Weight of the compaction of hosts. A smaller weight gives a smaller map.",
)
@click.option(
    "--path-weight",
    type=_WEIGHT,
    default=1.0,
    show_default=True,
    metavar="WEIGHT",
    help="Weight of the compaction of paths. A smaller weight gives a smaller map.",
)
@click.option("--no-hosts", is_flag=True, help="Do not compact hosts.")
@click.option("--no-paths", is_flag=True, help="Do not compact paths.")
@click.option(
    "--host-a",
    type=_WEIGHT,
    default=Compaction().host_a,
    show_default=True,
    metavar="A",
    help="Factor a of hosts: a domain of x labels is rolled up if it has more than a * x^-k * weight children.",
)
@click.option(
    "--host-k",
    type=_WEIGHT,
    default=Compaction().host_k,
    show_default=True,
    metavar="K",
    help="Exponent k of hosts: a domain of x labels is rolled up if it has more than a * x^-k * weight children.",
)
@click.option(
    "--path-a",
    type=_WEIGHT,
    default=Compaction().path_a,
    show_default=True,
    metavar="A",
    help="Factor a of paths: a folder of x - 1 segments is rolled up if it has more than a * x^-k * weight children.",
)
@click.option(
    "--path-k",
    type=_WEIGHT,
    default=Compaction().path_k,
    show_default=True,
    metavar="K",
    help="Exponent k of paths: a folder of x - 1 segments is rolled up if it has more than a * x^-k * weight children.",
)
@click.option(
    "--host-depth",
    type=click.IntRange(1, 64),
    default=8,
    show_default=True,
    metavar="N",
    help="Number of levels of hosts; deeper labels count as one.",
)
@click.option(
    "--path-depth",
    type=click.IntRange(1, 64),
    default=9,
    show_default=True,
    metavar="N",
    help="Number of levels of paths, including the root; deeper segments count as one.",
)
@click.option(
    "--fit",
    type=types.READABLE_FILE,
    metavar="INDEX",
    help="Compute a and k of hosts and paths from this index or map, and print them.",
)
@click.option(
    "--rollup",
    multiple=True,
    metavar="KEY",
    help="Always roll up this wildcard, such as com,example,*. May be repeated.",
)
@click.option(
    "--budget",
    metavar="SIZE",
    help="Make the most accurate map of at most this size: a number of lines (100000), or bytes of the map compressed "
    "by gzip (50MB).",
)
@click.option(
    "--queries",
    type=types.READABLE_FILE,
    multiple=True,
    metavar="FILE",
    help="With --budget: learn from the past queries in this list of URLs or log. May be repeated.",
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
@click.option(
    "--protect-suffixes/--no-protect-suffixes",
    default=True,
    show_default=True,
    help="With --budget: never roll up a public suffix of a registry, such as uk,co.",
)
@click.option(
    "--with-filter",
    type=_FILE,
    metavar="FILE",
    help="With --budget: also write a filter to FILE, and divide the budget between the map and the filter.",
)
@click.option(
    "--date",
    metavar="DATE",
    help="With --budget: build date in the header of the filter, such as 2026-12-31."
    "  [default: SOURCE_DATE_EPOCH, or now]",
)
@click.option(
    "--trace", type=_FILE, metavar="FILE", help="Write the number of output lines by number of input lines, as CSV."
)
@force_option
@engine_options
@click.option("--json", is_flag=True, help="Print the result as JSON.")
@click.pass_context
def compact(
    ctx: click.Context,
    file: str,
    output: Path,
    host_weight: float,
    path_weight: float,
    no_hosts: bool,
    no_paths: bool,
    host_a: float,
    host_k: float,
    path_a: float,
    path_k: float,
    host_depth: int,
    path_depth: int,
    fit: Path | None,
    rollup: tuple[str, ...],
    budget: str | None,
    queries: tuple[Path, ...],
    query_input: str | None,
    query_column: int | None,
    query_host: str | None,
    protect_suffixes: bool,
    with_filter: Path | None,
    date: str | None,
    trace: Path | None,
    force: bool,
    engine: str,
    master: str | None,
    spark_conf: tuple[str, ...],
    keep: str | None,
    json: bool,
) -> None:
    """Compact a map: replace subtrees by wildcards.

    A host or folder with many children is rolled up into one wildcard, such as com,example)/images/*, with the sum of
    their frequencies. The map still covers every page, but it may also say yes for pages that the archive does not
    hold. Weights set how many children are too many. With --budget, the command chooses the wildcards so that the map
    has at most the given size and gives as few wrong answers as possible.

    The exit code is 5 if the map or a --queries file has lines that cannot be read.

    \b
    Example:
      unlost map compact archive.ukvs --budget 50MB -o small.ukvs
    """
    reject_stdout_conflict(output, json)
    reject_in_place([each for each in (output, with_filter, trace) if each], [file], force=force)
    reject_conflicting_options(
        ctx, _ONLY_WITH_BUDGET if budget is None else _NOT_WITH_BUDGET, is_budget=budget is not None
    )
    cluster = spark_config(engine, master, spark_conf, keep)
    if cluster is not None and (budget is not None or trace is not None):
        raise UsageError("--budget and --trace look at a map as a whole: leave out --engine spark")
    if budget is not None:
        code = run_budget_compaction(
            Path(file),
            output,
            budget,
            queries=queries,
            query_kind=next((kind for kind in QUERY_KINDS if kind == query_input), None),
            query_column=query_column,
            query_host=query_host,
            protect_suffixes=protect_suffixes,
            rollup=rollup,
            host_depth=host_depth,
            path_depth=path_depth,
            with_filter=with_filter,
            date=date,
            trace=trace,
            json=json,
        )
        ctx.exit(code)
    compaction = Compaction(
        NO_LIMIT if no_hosts else host_weight,
        NO_LIMIT if no_paths else path_weight,
        host_a,
        host_k,
        path_a,
        path_k,
        host_depth,
        path_depth,
        rollup,
    )
    if fit is not None:
        compaction = fit_compaction(fit, compaction)
        host_law = f"hosts {compaction.host_a:.3f} x^-{compaction.host_k:.3f}"
        path_law = f"paths {compaction.path_a:.3f} x^-{compaction.path_k:.3f}"
        say(f"fitted: {host_law}, {path_law}", level="info")
    if cluster is not None:
        ctx.exit(_compact_on_cluster(cluster, file, output, compaction, json))
    with open_output(output) as target, progress("compacting", total_size([Path(file)])) as bar:
        report = compact_map(file, target, compaction, bar.update)
    stats = report.shape
    if stats is not None:
        write_trace(trace, stats)
        if json:
            sizes = {"lines_in": stats.lines_in, "lines_out": stats.lines_out}
            rollups = rollups_by_level(stats.rollups, stats.host_levels)
            click.echo(dumps({**sizes, "rollups": rollups, "compaction": asdict(compaction)}))
        else:
            say(format_compaction(stats), level="info")
    say_problems(report.problems)
    ctx.exit(EXIT_SKIPPED_INPUT if report.problems.total else 0)


def _compact_on_cluster(cluster: SparkConfig, file: str, output: Path, compaction: Compaction, json: bool) -> int:
    """Compact a map on a cluster; return the exit code. Roll-ups per depth are not known there."""
    from unlost.research.spark import maps  # noqa: PLC0415  start-up

    with open_output(output) as target, cluster.engine() as engine:
        report = maps.compact_map(engine, file, target, compaction)
    if json:
        click.echo(
            dumps({"lines_in": report.lines_in, "lines_out": report.lines_out, "compaction": asdict(compaction)})
        )
    else:
        say(f"{report.lines_in} lines became {report.lines_out}", level="info")
    say_problems(report.problems)
    return EXIT_SKIPPED_INPUT if report.problems.total else 0


def reject_conflicting_options(ctx: click.Context, options: Sequence[str], *, is_budget: bool) -> None:
    """Raise UsageError if an option was given that is only valid with a budget, or only without one."""
    for name in options:
        if ctx.get_parameter_source(name) not in (None, ParameterSource.DEFAULT):
            flag = name.replace("_", "-")
            if is_budget:
                raise UsageError(f"--{flag} says what to roll up, and so does --budget: leave out one of them")
            raise UsageError(f"--{flag} has a meaning only with --budget")
