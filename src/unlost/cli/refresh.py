"""`unlost refresh`: what changed since the last visit, and when to trust headers about it."""

from pathlib import Path

import click

from unlost.cli import readable
from unlost.cli.problems import EXIT_SKIPPED_INPUT
from unlost.cli.target import check_output_file, is_standard_output
from unlost.errors import UsageError

_FILE = readable.AnyPath()
_SHARE = click.FloatRange(0, 1)


@click.group(name="refresh")
def command() -> None:
    """Learn from a site's own history when ETag and Last-Modified can be trusted."""


@command.command()
@click.argument("log", type=readable.READABLE_FILE, nargs=-1)
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
    all: bool,  # noqa: A002  as the option is called
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
    from unlost.cli.refreshlearn import learn_from_logs, judge_matrix, print_json, print_report, write_files  # noqa: PLC0415

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
    list: bool,  # noqa: A002  as the option is called
    json: bool,
) -> None:
    """Make up a web whose changes are known, and score ways to decide on it.

    Servers misbehave in all the ways that docs/refresh.md lists. Each policy sees the same visits; the learner sees
    only what a log has.
    """
    from unlost.cli.refreshsimulate import print_mixtures, print_scores, write_log  # noqa: PLC0415  start-up

    if list:
        print_mixtures()
    elif write is not None:
        if len(mixture) != 1:
            raise UsageError("--write needs one --mixture")
        write_log(mixture[0], hosts, visits, seed, write)
    else:
        print_scores(mixture, hosts, visits, seed, reliability, json=json)
