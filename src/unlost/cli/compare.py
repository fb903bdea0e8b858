"""`unlost compare`: measures how much of a site was recovered."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from unlost.cli import types as cli_types
from unlost.cli.output import check_output_file
from unlost.cli.problems import EXIT_SKIPPED_INPUT
from unlost.errors import UsageError

if TYPE_CHECKING:
    from unlost.comparison.difference import PenaltyRules

NOTHING_IN_COMMON = 1
"""Exit code if no resource of the original is in the other site."""

_FILE = cli_types.AnyPath()


@click.command(name="compare")
@click.argument("original", type=cli_types.FILE_OR_FOLDER)
@click.argument("recovered", type=cli_types.FILE_OR_FOLDER)
@click.option("--base", metavar="URL", help="The address of a folder of files, if there is none for each host in it.")
@click.option("--original-base", metavar="URL", help="The same, for ORIGINAL alone.")
@click.option("--recovered-base", metavar="URL", help="The same, for RECOVERED alone.")
@click.option("--ignore-case", is_flag=True, help="Addresses that differ in letter case only are one page.")
@click.option("--penalties", metavar="C,M,A", help="How much changed, missing and added are minded, from 0 to 1.")
@click.option("--type-penalties", multiple=True, metavar="TYPE=C,M,A", help="The same for one type: `image/*=0.2,1,0`.")
@click.option(
    "--uri-penalties",
    multiple=True,
    metavar="REGEX=C,M,A",
    help="The same for addresses in which this is found; it wins over --type-penalties.",
)
@click.option(
    "--similar",
    type=click.FloatRange(0, 100),
    default=75,
    show_default=True,
    metavar="PERCENT",
    help="From which share of the text on a changed text is almost identical.",
)
@click.option(
    "--list",
    multiple=True,
    type=click.Choice(["identical", "changed", "missing", "added", "all"]),
    help="Name these resources, one a line, in the place of numbers; may be repeated.",
)
@click.option("--html", type=_FILE, metavar="FILE", help="Write a page about it there, with the diagram.")
@click.option("--json", is_flag=True, help="As JSON, an object a line: one for each resource, then the summary.")
@click.pass_context
def command(
    ctx: click.Context,
    original: Path,
    recovered: Path,
    base: str | None,
    original_base: str | None,
    recovered_base: str | None,
    ignore_case: bool,
    penalties: str | None,
    type_penalties: tuple[str, ...],
    uri_penalties: tuple[str, ...],
    similar: float,
    list: tuple[str, ...],  # noqa: A002  as the option is called
    html: Path | None,
    json: bool,
) -> None:
    """Say how much of a site came back: what is identical, changed, missing and added.

    ORIGINAL and RECOVERED are each a WARC, a WACZ, a folder of files, the folder of a recovery, or what `unlost export`
    wrote: a folder, a zip or a tar file. The exit code is 1 if the two have nothing in common, 5 if something in them
    could not be read; the rest was compared. docs/compare.md explains the numbers.
    """
    from unlost.cli.compare_run import (  # noqa: PLC0415  start-up  # noqa: PLC0415
        compare_paths,
        print_json,
        print_list,
        print_report,
        resolve_bases,
        say_next_step,
        say_unread,
        write_page,
    )

    rules = _penalty_rules(penalties, type_penalties, uri_penalties)
    if list and json:
        raise UsageError("--list and --json say different things: give one of them")
    _check_paths(original, recovered, html)
    paths = (original, recovered)
    bases = resolve_bases(paths, (original_base, recovered_base), base)
    both = compare_paths(paths, bases, similar / 100, ignore_case=ignore_case)
    weighed = both.comparison.weigh(rules) if rules is not None else None
    if html is not None:
        write_page(html, both, weighed)
    if json:
        print_json(both, weighed)
    elif list:
        print_list(both.comparison, list)
    else:
        print_report(both.comparison, weighed)
    is_damaged = bool(say_unread(both))
    if not json and not list:
        say_next_step(both)
    if is_damaged:
        ctx.exit(EXIT_SKIPPED_INPUT)
    ctx.exit(0 if both.comparison.counts.back else NOTHING_IN_COMMON)


def _penalty_rules(penalties: str | None, types: tuple[str, ...], uris: tuple[str, ...]) -> "PenaltyRules | None":
    """Return the penalties to weigh differences with, or None if none were given. Raises UsageError."""
    if penalties is None and not types and not uris:
        return None
    from unlost.comparison.difference import (  # noqa: PLC0415
        Penalties,
        PenaltyRules,
    )

    rules = PenaltyRules(Penalties.parse(penalties) if penalties is not None else Penalties())
    for text in types:
        rules = rules.with_type_rule(text)
    for text in uris:
        rules = rules.with_uri_rule(text)
    return rules


def _check_paths(original: Path, recovered: Path, html: Path | None) -> None:
    """Raise an error before any work if the paths cannot be compared or the HTML page cannot be written."""
    if original.samefile(recovered):
        raise UsageError(f"{original} and {recovered} are the same: name the original and what was recovered")
    check_output_file(html)
    for path in (original, recovered):
        if html is not None and _is_part_of(html, path):
            raise UsageError(f"{html}: belongs to {path}, which is compared: write the page to another place")


def _is_part_of(page: Path, site: Path) -> bool:
    """Return whether writing `page` would overwrite a part of a site or add one.

    A new page at the top level of a recovery folder is allowed, unless its name begins with that of the state file.
    """
    from unlost.comparison.site import SiteKind, detect_site_kind  # noqa: PLC0415  start-up
    from unlost.sqlite import STATE_FILE_NAME  # noqa: PLC0415

    place, top = page.resolve(), site.resolve()
    if place == top or (page.exists() and page.samefile(site)):
        return True
    if top not in place.parents:
        return False
    return (
        place.parent != top
        or place.name.startswith(STATE_FILE_NAME)
        or detect_site_kind(site)[0] is not SiteKind.RECOVERY
    )
