"""`unlost evaluate`: how well maps, budgets and filters of an index route."""

import io
from csv import DictWriter
from json import dumps
from pathlib import Path

import click

from unlost.cli.messages import say
from unlost.cli.problems import say_problems
from unlost.errors import InputError, UsageError
from unlost.holdings.budget import Budget
from unlost.holdings.compaction import NO_LIMIT
from unlost.holdings.division import MOST_BITS
from unlost.holdings.queries import QueryOptions
from unlost.holdings.query_kinds import QUERY_KINDS
from unlost.measure.intervals import Share
from unlost.measure.routing import Result, configurations, evaluate

_FILE = click.Path(path_type=Path)
_WANTING = 1


@click.command(name="evaluate")
@click.option("--index", type=_FILE, multiple=True, required=True, help="What the archive holds; may be repeated.")
@click.option("--queries", type=_FILE, multiple=True, required=True, help="What is asked: a list, or a log.")
@click.option("--weights", metavar="H,P[;H,P]", help="Maps by these weights; `x` for no roll-up: `4,1;x,0`.")
@click.option("--bits", metavar="B[,B]", help="Filters of so many bits a key beside a map of hosts: `1,4,8`.")
@click.option("--budgets", metavar="S[,S]", help="Maps of these sizes, in lines or bytes: `100000,50MB`.")
@click.option("--with-filter", is_flag=True, help="Divide the bytes of budgets between map and filter.")
@click.option("--learn", type=_FILE, multiple=True, help="Other questions, for budgets to learn from.")
@click.option("--query-input", type=click.Choice(QUERY_KINDS), help="What --queries is, if looking does not tell.")
@click.option("--query-column", type=click.IntRange(min=1), help="The column of its addresses in a table with tabs.")
@click.option("--query-host", metavar="HOST", help="Whose access log it is, if its lines do not tell.")
@click.option("--json", is_flag=True, help="One JSON object for each configuration.")
@click.option("--csv", is_flag=True, help="As CSV.")
@click.pass_context
def command(
    ctx: click.Context,
    index: tuple[Path, ...],
    queries: tuple[Path, ...],
    weights: str | None,
    bits: str | None,
    budgets: str | None,
    with_filter: bool,
    learn: tuple[Path, ...],
    query_input: str | None,
    query_column: int | None,
    query_host: str | None,
    json: bool,
    csv: bool,
) -> None:
    """Say how well maps, budgets and filters of an index tell which pages it holds.

    Each is made from the index and asked every question: how many it takes for held (predicted), how many of those are
    (present), precision, accuracy and recall with their 95 % intervals, and what it costs. A recall below 1 means that
    a page that is held was denied: the first is named, and the exit code is 1. docs/budget.md explains the columns.
    """
    tried = configurations(_weights(weights), _bits(bits), _budgets(budgets), with_filter=with_filter)
    kind = next((kind for kind in QUERY_KINDS if kind == query_input), None)
    options = QueryOptions(kind=kind, column=query_column, host=query_host)
    found = evaluate(index, queries, tried, query_options=options, learned=learn)
    rows = [_row(result) for result in found.results]
    if json:
        for row in rows:
            click.echo(dumps(row))
    elif csv:
        text = io.StringIO()
        writer = DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        click.echo(text.getvalue(), nl=False)
    else:
        click.echo("\n".join(_table(found.results)))
    for name, key in found.missed:
        say(f"{name}: denied {key}, which is held: recall is not 1")
    say_problems(found.index.problems)
    say_problems(found.questions.problems)
    unreadable = found.index.problems.total or found.questions.problems.total
    ctx.exit(_WANTING if found.missed else InputError.exit_code if unreadable else 0)


def _weights(text: str | None) -> list[tuple[float, float]]:
    pairs = []
    for pair in (text or "").split(";") if text else []:
        try:
            host, path = (NO_LIMIT if one.strip() == "x" else float(one) for one in pair.split(","))
        except ValueError:
            raise UsageError(f"{pair[:40]}: expected a pair of weights such as 4,1") from None
        pairs.append((host, path))
    return pairs


def _bits(text: str | None) -> list[int]:
    found = [one.strip() for one in text.split(",")] if text else []
    for one in found:
        if not (one.isascii() and one.isdigit() and 1 <= int(one) <= MOST_BITS):
            raise UsageError(f"{one[:40]}: expected bits a key from 1 to {MOST_BITS}")
    return [int(one) for one in found]


def _budgets(text: str | None) -> list[Budget]:
    return [Budget.parse(one) for one in text.split(",")] if text else []


def _row(result: Result) -> dict[str, object]:
    shares = {"precision": result.precision, "accuracy": result.accuracy, "recall": result.recall}
    row: dict[str, object] = {
        "configuration": result.configuration.name,
        "keys": result.keys,
        "lines": result.lines,
        "bytes": result.bytes,
        "compressed": result.compressed,
        "filter_bits": result.bits,
        "relative_cost": result.cost,
        "questions": result.questions,
        "held": result.held,
        "predicted": result.predicted,
        "present": result.present,
    }
    for name, share in shares.items():
        low, high = share.interval()
        row |= {name: share.value, f"{name}_count": share.count, f"{name}_of": share.of}
        row |= {f"{name}_low": low, f"{name}_high": high}
    return row


_HEADS = (
    "configuration",
    "lines",
    "bytes",
    "compressed",
    "cost",
    "predicted",
    "present",
    "precision",
    "accuracy",
    "recall",
)


def _table(results: list[Result]) -> list[str]:
    rows = [
        (
            result.configuration.name,
            f"{result.lines}",
            f"{result.bytes}",
            f"{result.compressed}",
            f"{result.cost:.4f}",
            f"{result.predicted}",
            f"{result.present}",
            _shown(result.precision),
            _shown(result.accuracy),
            _shown(result.recall),
        )
        for result in results
    ]
    widths = [max(len(row[at]) for row in [_HEADS, *rows]) for at in range(len(_HEADS))]
    return [
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [_HEADS, *rows]
    ]


def _shown(share: Share) -> str:
    if share.value is None:
        return "-"
    low, high = share.interval()
    return f"{share.value:.1%} ({low:.1%} to {high:.1%})"
