"""`unlost refresh`.

Learns from logs when ETag and Last-Modified can be trusted, and simulates webs whose changes are known.
"""

from json import dumps
from pathlib import Path

import click

from unlost.atomic import atomic_file
from unlost.cli import types
from unlost.cli.output import check_output_file, format_columns, is_standard_output
from unlost.cli.problems import EXIT_SKIPPED_INPUT
from unlost.errors import UsageError
from unlost.refresh.policy import LearningOptions
from unlost.refresh.visit import serialize_visit
from unlost.research.refresh_simulation import SimulationScore, SimulationTrial, run_trial, to_log
from unlost.research.simulated_web import MIXTURES, TRAITS, get_mixture, simulate_visits


def print_mixtures() -> None:
    """Print the mixtures that can be simulated."""
    for one in MIXTURES.values():
        click.echo(f"{one.name}: {one.description}")
        total = sum(one.shares.values())
        for trait, share in sorted(one.shares.items(), key=lambda item: -item[1]):
            click.echo(f"  {100 * share / total:6.3f} %  {trait}: {TRAITS[trait]}")


def write_log(name: str, hosts: int, visits: int, seed: int, output: Path) -> None:
    """Write the log of a simulated web, in the order of time within each page."""
    check_output_file(output)
    with atomic_file(output) as file:
        for pages in simulate_visits(get_mixture(name), hosts, visits, seed):
            for page in pages:
                file.writelines(serialize_visit(visit) for visit in to_log(page))


def print_scores(names: tuple[str, ...], hosts: int, visits: int, seed: int, reliability: float, *, json: bool) -> None:
    """Print what each method missed and cost, for each mixture."""
    for one in [get_mixture(name) for name in names or MIXTURES]:
        done = run_trial(one, hosts, visits, seed, LearningOptions(reliability))
        if json:
            for score in done.scores:
                click.echo(dumps(_score_object(done, score)))
        else:
            click.echo("\n".join([*_score_table(done), ""]))


def _score_object(done: SimulationTrial, score: SimulationScore) -> dict[str, object]:
    result: dict[str, object] = {
        "mixture": done.mixture,
        "way": score.name,
        "changed": score.changed,
        "unchanged": score.unchanged,
        "missed": score.missed,
        "unnecessary": score.unnecessary,
        "reliability": score.reliability,
        "usefulness": score.usefulness,
        "audited": score.audited,
        "bytes": score.bytes,
        "requests": score.requests,
    }
    stated = done.policy.estimate
    if score.name == "learned":
        result["stated"] = stated and [stated.reliability, stated.interval.low, stated.interval.high]
    return result


def _score_table(done: SimulationTrial) -> list[str]:
    heads = ["way to decide", "missed", "reliability %", "usefulness %", "MB", "requests", "audits"]
    rows = [
        [
            score.name,
            f"{score.missed:,}",
            f"{100 * score.reliability:.4f}",
            f"{100 * score.usefulness:.2f}",
            f"{score.bytes / 1e6:,.1f}",
            f"{score.requests:,}",
            f"{score.audited:,}" if score.audited else "",
        ]
        for score in done.scores
    ]
    first = done.scores[0]
    about = f"{done.mixture}: {first.changed + first.unchanged:,} pairs, {first.changed:,} changed"
    stated = done.policy.estimate
    promise = "The learner found nothing that is sure enough, and downloads everything."
    if stated is not None:
        low, high = 100 * stated.interval.low, 100 * stated.interval.high
        promise = f"Stated by the learner: {100 * stated.reliability:.4f} % ({low:.4f}-{high:.4f})"
    return [about, *format_columns(heads, rows), promise]


_FILE = types.AnyPath()
_SHARE = click.FloatRange(0, 1)


@click.group(name="refresh")
def command() -> None:
    """Learn from a site's own history when ETag and Last-Modified can be trusted."""


@command.command()
@click.argument("log", type=types.READABLE_FILE, nargs=-1)
@click.option("--matrix", metavar="PAIRS", help="Nine pairs changed/unchanged in the place of logs, or - to read them.")
@click.option(
    "--reliability", type=_SHARE, default=0.999, show_default=True, help="The share of changes that must not be missed."
)
@click.option("--change", type=click.Choice(["bytes", "text"]), default="bytes", help="What counts as a change.")
@click.option("--all", is_flag=True, help="Also schemes below 99 % reliability or 50 % usefulness.")
@click.option(
    "--audit",
    type=_SHARE,
    default=0.01,
    show_default=True,
    help="The share of skips to check; harvests check 1 % at the least.",
)
@click.option("--seed", type=click.IntRange(0, 2**63), default=0, show_default=True, help="Of drawing hosts anew.")
@click.option("--schedule", is_flag=True, help="Also when to look at each host again.")
@click.option("--plot", type=_FILE, metavar="FILE", help="Draw reliability against usefulness there, as SVG.")
@click.option("-o", "--output", type=_FILE, metavar="FILE", help="Write the scheme file there; - for stdout.")
@click.option("--json", is_flag=True, help="As one JSON object.")
@click.pass_context
def learn(
    ctx: click.Context,
    log: tuple[Path, ...],
    matrix: str | None,
    reliability: float,
    change: str,
    all: bool,  # noqa: A002  the option's name
    audit: float,
    seed: int,
    schedule: bool,
    plot: Path | None,
    output: Path | None,
    json: bool,
) -> None:
    """Say which headers of a log can be trusted, and write a scheme by which to decide.

    LOG is a harvest log (NDJSON or Parquet) or a WARC; any number of them is one history. The exit code is 1 if no
    scheme surely reaches the reliability, 5 if something could not be read; the rest was learned from.
    docs/refresh.md explains tables, logs and the scheme file.
    """
    from unlost.cli.refresh_learn import judge_matrix, learn_from_logs, print_json, print_report, write_files  # noqa: PLC0415

    if bool(log) == (matrix is not None):
        raise UsageError("give logs to learn from, or --matrix")
    if matrix is not None and (output is not None or schedule):
        raise UsageError("a matrix has no hosts and no times: -o and --schedule need logs")
    if output is not None and output == Path("-") and json:
        raise UsageError("-o - and --json both print: give one of them")
    for path in (output, plot):
        if path is not None and not is_standard_output(path):
            check_output_file(path)
    if matrix is not None:
        found = judge_matrix(matrix, reliability, everything=all)
    else:
        found = learn_from_logs(log, reliability, by_text=change == "text", audit=audit, seed=seed, everything=all)
    unreadable = write_files(found, output, plot)
    if json:
        print_json(found, schedule=schedule)
    elif output is None or output != Path("-"):
        print_report(found, schedule=schedule)
    ctx.exit(EXIT_SKIPPED_INPUT if unreadable else 0 if found.chosen is not None or found.policy_skips else 1)


@command.command()
@click.option("--mixture", multiple=True, metavar="NAME", help="Which web to make up; may be repeated. All by default.")
@click.option("--hosts", type=click.IntRange(20, 100_000), default=600, show_default=True, help="How many hosts.")
@click.option(
    "--visits", type=click.IntRange(4, 1000), default=16, show_default=True, help="To each page, to learn from."
)
@click.option("--seed", type=click.IntRange(0, 2**63), default=0, show_default=True, help="Another one, another web.")
@click.option("--reliability", type=_SHARE, default=0.9994, show_default=True, help="What is asked of the learner.")
@click.option(
    "--write", type=_FILE, metavar="FILE", help="Write the log of the one mixture there as NDJSON; no scores."
)
@click.option("--list", is_flag=True, help="Name the mixtures and what is in them.")
@click.option("--json", is_flag=True, help="One JSON object for each policy and mixture.")
def simulate(
    mixture: tuple[str, ...],
    hosts: int,
    visits: int,
    seed: int,
    reliability: float,
    write: Path | None,
    list: bool,  # noqa: A002  the option's name
    json: bool,
) -> None:
    """Make up a web whose changes are known, and score ways to decide on it.

    Servers misbehave in all the ways that docs/refresh.md lists. Each policy sees the same visits; the learner sees
    only what a log has.
    """
    if list:
        print_mixtures()
    elif write is not None:
        if len(mixture) != 1:
            raise UsageError("--write needs one --mixture")
        write_log(mixture[0], hosts, visits, seed, write)
    else:
        print_scores(mixture, hosts, visits, seed, reliability, json=json)
