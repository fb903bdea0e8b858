"""`unlost watch`: visits sites repeatedly, and detects when one is lost."""

from typing import Any

import click

from unlost.cli.check import DEPTH_OPTIONS, with_options
from unlost.cli.output import check_output_file
from unlost.cli.types import AnyPath, DurationType
from unlost.errors import ArchiveError, UsageError

_FILE = AnyPath(readable=False)


@click.command(name="watch")
@click.argument("site", metavar="URL|FILE")
@click.option(
    "--every",
    type=DurationType(600, 366 * 86_400),
    default="1d",
    show_default=True,
    metavar="SPAN",
    help="How much time lies between two visits of a site: 12h, 1d, 1w.",
)
@click.option(
    "--once", is_flag=True, help="Make one visit of each site, or go on with one that was interrupted, and end."
)
@click.option("--history", type=_FILE, metavar="FILE", help="Where visits are kept.  [default: HOST.watch.sqlite]")
@click.option(
    "--on-loss", metavar="COMMAND", help="Run this when a site is lost, with its address and the kind of loss."
)
@click.option("--dry-run", is_flag=True, help="Visit nobody, and say how many questions a day it would ask.")
@click.option("--report", is_flag=True, help="Visit nobody, and say what the visits so far have shown.")
@click.option("--html", type=_FILE, metavar="FILE", help="Write a page with the report there.")
@click.option("--plot", type=_FILE, metavar="FILE", help="Draw the states as PNG, PDF or SVG; needs unlost[plots].")
@with_options(*DEPTH_OPTIONS)
@click.option("--json", is_flag=True, help="As JSON, an object a line.")
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:  # noqa: ANN401  the options, by their names
    """Check sites again and again: how long resources live in archives, and whether a site is lost.

    FILE has the addresses of sites, one a line. What was seen is kept; the same command goes on. With --once, for cron,
    the exit code is 1 if a site is lost, and 4 if archives did not answer. docs/watch.md explains the numbers.
    """
    from unlost.cli.watch_run import WatchRun  # noqa: PLC0415  start-up
    from unlost.research.plots import validate_plot_path  # noqa: PLC0415  start-up

    if sum(map(bool, (given["once"], given["dry_run"], given["report"]))) > 1:
        raise UsageError("--once, --dry-run and --report are three different things: give one of them")
    for name in ("html", "plot"):
        check_output_file(given[name])
    validate_plot_path(given["plot"])
    run = WatchRun(given)
    if given["dry_run"]:
        run.estimate()
    elif given["report"]:
        run.report()
    elif given["once"]:
        is_lost, is_whole = run.once()
        ctx.exit(1 if is_lost else 0 if is_whole else ArchiveError.exit_code)
    else:
        run.forever()
