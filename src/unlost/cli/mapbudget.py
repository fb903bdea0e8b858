"""`unlost map compact --budget`: what it does, apart from what needs no budget."""

from json import dumps
from pathlib import Path

import click

from unlost._core import MapShape
from unlost.cli.mapresult import format_compaction, rollups_by_level, write_trace
from unlost.cli.messages import say
from unlost.cli.problems import EXIT_SKIPPED_INPUT, say_problems
from unlost.cli.progress import progress, total_size
from unlost.cli.target import is_standard_output, open_output
from unlost.cli.today import resolve_build_time
from unlost.errors import UsageError
from unlost.holdings.budget import MapBudget, BudgetOptions, BudgetReport, compact_to_budget
from unlost.holdings.queries import QueryLogOptions
from unlost.holdings.query_kinds import QueryKind


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
    """Compact to a budget, say what came of it, and return the exit code. The options are those of the command."""
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
    beside = options.with_filter
    if beside is not None and is_standard_output(Path(beside)):
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
    if beside is not None and not report.filter_bits:
        # Of another map, it would deny what this one holds.
        old = f"; what is there, {beside}, is of another map" if Path(beside).exists() else ""
        say(f"no filter is worth its bytes, so none was written{old}", level="warning")
    say_problems(report.problems)
    say_problems(report.query_report.problems)
    return EXIT_SKIPPED_INPUT if report.problems.total or report.query_report.problems.total else 0


def _format_budget(budget: MapBudget, report: BudgetReport) -> str:
    beside = f", {report.filter_bytes:,} of a filter of {report.filter_bits} bits a key" if report.filter_bits else ""
    learned = f", learned from {report.query_count:,} questions" if report.query_count else ""
    return (
        f"{report.size:,} of {budget}{beside}; of the pages asked for that are not held, {report.expected_error_rate:.1%} are "
        f"expected to be taken for held{learned}"
    )


def _budget_object(
    budget: MapBudget, options: BudgetOptions, report: BudgetReport, shape: MapShape
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
