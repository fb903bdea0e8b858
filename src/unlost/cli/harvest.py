"""`unlost harvest`: revisits pages and downloads those that changed."""

from typing import Any

import click

from unlost.cli import types
from unlost.cli.archive_options import contact_option, delay_option
from unlost.cli.output import check_output_file
from unlost.errors import UsageError

_FILE = types.AnyPath()


@click.command(name="harvest")
@click.argument("url", nargs=-1)
@click.option("--urls", type=types.FILE_OR_STDIN, metavar="FILE", help="These pages, too, one a line; - to read them.")
@click.option(
    "--scheme", type=types.READABLE_FILE, metavar="FILE", help="By which to decide: of `unlost refresh learn`."
)
@click.option("-o", "--output", type=_FILE, required=True, metavar="DIR", help="Where history, log and WARCs are kept.")
@click.option(
    "--history",
    type=types.READABLE_FILE,
    multiple=True,
    metavar="FILE",
    help="An index (CDXJ, CDX) whose last captures are the history; may be repeated.",
)
@click.option(
    "--warcs", type=types.READABLE_FOLDER, metavar="DIR", help="The WARCs that --history names: for tags and dates."
)
@click.option("--cdxj", type=_FILE, metavar="FILE", help="Write what is held of each page there, as CDXJ.")
@click.option(
    "--due",
    type=click.FloatRange(0, 1),
    metavar="CHANCE",
    help="Only pages that have changed with this probability, by how often they did.",
)
@click.option(
    "--audit",
    type=click.FloatRange(0.01, 1),
    metavar="SHARE",
    help="Of skips to download nevertheless, in the place of what the scheme says.",
)
@click.option("--anew", is_flag=True, help="Begin a round, also if one was interrupted.")
@delay_option
@click.option(
    "--hosts", type=click.IntRange(1, 100), default=4, show_default=True, metavar="N", help="To visit at the same time."
)
@click.option("--keep-noarchive", is_flag=True, help="Keep also pages that ask not to be kept: if they are yours.")
@contact_option
@click.option("--proxy", is_flag=True, help="Go through the proxies that HTTP_PROXY and the like name.")
@click.option("--json", is_flag=True, help="As JSON, an object a line: one for each visit, then the summary.")
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:  # noqa: ANN401  the options, by their names
    """Visit pages again, and download what changed.

    Without a URL and --urls, all pages that DIR knows are visited. Without a scheme everything is downloaded, and what
    is the same is kept as a revisit. The log in DIR, visits.ndjson, is what `unlost refresh learn` learns from. The
    exit code is 4 if hosts are to be visited later: the same command goes on; 5 if a list or an index could not be read
    to its end. docs/harvest.md explains it.
    """
    from unlost.cli.harvest_run import HarvestRun  # noqa: PLC0415  start-up

    if given["warcs"] is not None and not given["history"]:
        raise UsageError("--warcs are those that --history names: give that, too")
    check_output_file(given["cdxj"])
    ctx.exit(HarvestRun(given).run())
