"""`unlost check`: estimates how much of a site could be recovered if it were lost now."""

from collections.abc import Callable
from typing import Any

import click

from unlost.cli import types
from unlost.cli.archive_options import archives_option, contact_option, delay_option, only_option
from unlost.cli.output import check_output_file
from unlost.errors import ArchiveError, UsageError

_FILE = types.AnyPath()
_COUNT = click.IntRange(min=1)

DEPTH_OPTIONS = (
    click.option(
        "--limit",
        type=_COUNT,
        default=1_000,
        show_default=True,
        metavar="N",
        help="Visit at most N addresses of the site.",
    ),
    click.option("--subdomains", is_flag=True, help="The hosts below the host, too."),
    delay_option,
    click.option(
        "--sample",
        type=_COUNT,
        default=200,
        show_default=True,
        metavar="N",
        help="Ask archives that list nothing for at most N addresses, drawn at random.",
    ),
    click.option("--all", is_flag=True, help="Ask them for every address."),
    click.option("--thorough", is_flag=True, help="Ask every archive, also for what another is known to have."),
    archives_option,
    only_option,
    contact_option,
    click.option("--proxy", is_flag=True, help="Go through the proxies that HTTP_PROXY and the like name."),
)
"""Options for how much of a site is crawled and how many requests archives get. `watch` has them, too."""


def with_options(*options: Callable[[Callable[..., None]], Callable[..., None]]) -> Callable[..., Callable[..., None]]:
    """Return a decorator that adds options to a command, in this order."""

    def given(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            command = option(command)
        return command

    return given


@click.command(name="check")
@click.argument("url", metavar="[URL]", required=False)
@click.option(
    "--warc",
    type=types.FILE_OR_FOLDER,
    metavar="FILE",
    help="The site as it is in a WARC, a WACZ or a folder of them.",
)
@click.option("--urls", type=types.READABLE_FILE, metavar="FILE", help="These addresses, one a line, and no others.")
@click.option("--sitemap", is_flag=True, help="What the site's sitemap names, and no links.")
@click.option(
    "--beside",
    type=click.IntRange(min=0),
    default=50,
    show_default=True,
    metavar="N",
    help="Look at N addresses that archives list and nothing leads to.",
)
@click.option(
    "--judge",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="Fetch copies of N pages, drawn at random, and see whether they are what they seem to be.",
)
@with_options(*DEPTH_OPTIONS)
@click.option("--anew", is_flag=True, help="Begin from the start, also if a check was interrupted.")
@click.option("--least", type=click.FloatRange(0, 100), metavar="PERCENT", help="End with 1 if less would come back.")
@click.option(
    "--save", type=_FILE, metavar="FILE", help="Write the addresses there that no archive has; nobody gets them."
)
@click.option("--html", type=_FILE, metavar="FILE", help="Write a page about it there.")
@click.option("--json", is_flag=True, help="As JSON, an object a line: one for each resource, then the summary.")
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:  # noqa: ANN401  the options, by their names
    """Say what would come back if a site were lost now.

    The site is visited politely, and archives are asked for what it has. Each resource is replicated, vulnerable,
    endangered or unrecoverable; docs/check.md explains that, and the numbers. The exit code is 4 if archives did not
    answer: the same command goes on.
    """
    from unlost.cli.check_run import CheckRun  # noqa: PLC0415  start-up

    named = [name for name in ("url", "warc", "urls") if given[name] is not None]
    if len(named) != 1:
        raise UsageError("expected one of URL, --warc and --urls: what is to be checked")
    if given["sitemap"] and given["url"] is None:
        raise UsageError("--sitemap is about the site at URL: leave it out with --warc and --urls")
    for name in ("save", "html"):
        check_output_file(given[name])
    is_whole, share = CheckRun(given).run()
    if given["least"] is not None and share is not None and share * 100 < given["least"]:
        ctx.exit(1)
    ctx.exit(0 if is_whole else ArchiveError.exit_code)
