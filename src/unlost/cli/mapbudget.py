"""`unlost map compact --budget`: what it does, apart from what needs no budget."""

from json import dumps
from pathlib import Path

import click

from unlost._core import MapShape
from unlost.cli.mapresult import became, levels, write_trace
from unlost.cli.messages import say
from unlost.cli.problems import SKIPPED_INPUT, say_problems
from unlost.cli.progress import progress, size_of
from unlost.cli.target import is_standard_output, writable
from unlost.cli.today import the_build_time
from unlost.errors import UsageError
from unlost.holdings.budget import Budget, BudgetOptions, BudgetReport, compact_to_budget
from unlost.holdings.queries import QueryOptions
from unlost.holdings.query_kinds import QueryKind


def compact_within(
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
        query_options=QueryOptions(kind=query_kind, column=query_column, host=query_host),
        protect_suffixes=protect_suffixes,
        rollup=rollup,
        host_depth=host_depth,
        path_depth=path_depth,
        with_filter=with_filter,
        made=the_build_time(date),
    )
    budget = Budget.parse(size)
    beside = options.with_filter
    if beside is not None and is_standard_output(Path(beside)):
        raise UsageError("--with-filter -: standard output is for the map: give the filter a name")
    with writable(output) as target, progress("weighing", size_of([file])) as bar:
        report = compact_to_budget(file, target, budget, options, bar.at)
    if report.shape is not None:
        write_trace(trace, report.shape)
        if json:
            click.echo(dumps(_result(budget, options, report, report.shape)))
        else:
            say(became(report.shape), level="info")
            say(_fits(budget, report), level="info")
    if beside is not None and not report.bits:
        # Of another map, it would deny what this one holds.
        old = f"; what is there, {beside}, is of another map" if Path(beside).exists() else ""
        say(f"no filter is worth its bytes, so none was written{old}", level="warning")
    say_problems(report.problems)
    say_problems(report.questions.problems)
    return SKIPPED_INPUT if report.problems.total or report.questions.problems.total else 0


def _fits(budget: Budget, report: BudgetReport) -> str:
    beside = f", {report.filter_bytes:,} of a filter of {report.bits} bits a key" if report.bits else ""
    learned = f", learned from {report.asked:,} questions" if report.asked else ""
    return (
        f"{report.size:,} of {budget}{beside}; of the pages asked for that are not held, {report.expected:.1%} are "
        f"expected to be taken for held{learned}"
    )


def _result(budget: Budget, options: BudgetOptions, report: BudgetReport, shape: MapShape) -> dict[str, object]:
    return {
        "lines_in": shape.lines_in,
        "lines_out": shape.lines_out,
        "rollups": levels(shape.rollups, shape.host_levels),
        "budget": {
            budget.unit: budget.size,
            "used": report.size + report.filter_bytes,
            "protect_suffixes": options.protect_suffixes,
        },
        "expected_wrong": report.expected,
        "asked": report.asked,
        "missed": report.missed,
        "questions_unreadable": report.questions.problems.counts,
        "filter_bits": report.bits,
        "filter_bytes": report.filter_bytes,
    }
