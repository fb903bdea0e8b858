"""`unlost map exclude`: turns logged misses into exclusions that expire."""

from dataclasses import fields
from datetime import date as day
from json import dumps
from pathlib import Path

import click

from unlost.cli import types
from unlost.cli.messages import say
from unlost.cli.options import force_option, resolve_date
from unlost.cli.output import is_standard_output, open_output, reject_in_place
from unlost.cli.problems import EXIT_SKIPPED_INPUT, say_problems
from unlost.cli.progress import progress
from unlost.errors import UsageError
from unlost.mementomap.exclude import (
    DEFAULT_EXPIRY_DAYS,
    DEFAULT_MIN_PAGES,
    ExclusionOptions,
    ExclusionReport,
    exclude_map,
)
from unlost.mementomap.query_logs import MISS_LOG_KINDS

_FILE = types.AnyPath()
_MAX_DAYS_DIGITS = 5  # a longer value is a date


@click.command()
@click.argument("file", type=types.READABLE_FILE, metavar="MAP")
@click.option(
    "--misses", type=types.READABLE_FILE, multiple=True, metavar="FILE", help="What was asked for; may be repeated."
)
@click.option(
    "--index", type=types.READABLE_FILE, multiple=True, help="What the archive holds, all of it; may be repeated."
)
@click.option("-o", "--output", type=_FILE, required=True, help="The map to write; `-` is standard output.")
@click.option(
    "--expires",
    metavar="DAYS|DATE",
    default=str(DEFAULT_EXPIRY_DAYS),
    show_default=True,
    help="When they are not believed any more.",
)
@click.option("--date", metavar="DATE", help="The day that it is; today if not given. SOURCE_DATE_EPOCH too.")
@click.option(
    "--pages",
    type=click.IntRange(min=1),
    default=DEFAULT_MIN_PAGES,
    show_default=True,
    help="How many pages of a folder must be missed before all of it is excluded.",
)
@click.option("--archive", metavar="ID", help="Whose answers count, in a log of upstream answers.")
@click.option("--input", type=click.Choice(MISS_LOG_KINDS), help="What the logs are, if looking at them does not tell.")
@click.option("--column", type=click.IntRange(min=1), help="The column of the addresses in a table with tabs.")
@click.option("--host", help="Whose access log it is, if its lines do not tell.")
@click.option("--replay", is_flag=True, help="The access log is an archive's: the pages are those in its addresses.")
@force_option
@click.option("--json", is_flag=True, help="The result as JSON.")
@click.pass_context
def exclude(
    ctx: click.Context,
    file: Path,
    misses: tuple[Path, ...],
    index: tuple[Path, ...],
    output: Path,
    expires: str,
    date: str | None,
    pages: int,
    archive: str | None,
    input: str | None,  # noqa: A002  options are named after their flags
    column: int | None,
    host: str | None,
    replay: bool,
    force: bool,
    json: bool,
) -> None:
    """Make a map say no to what was asked for and not found, until that expires.

    FILE is a log of upstream answers (only misses count, no failures), an access log (404) or a list of addresses.
    Pages with a row of their own in the map, or that were found as well as missed, are never excluded. With --index,
    whole subtrees are excluded of which nothing is held, and nothing that is held. Exclusions that have expired are
    dropped, without --misses too.
    """
    reject_in_place([output], [file, *misses, *index], force=force)
    if json and is_standard_output(output):
        raise UsageError("--json and -o - would both be written to standard output: give the map a name")
    options = ExclusionOptions(
        today=resolve_date(date),
        expires=_parse_expiry(expires),
        pages=pages,
        archive=archive,
        kind=next((kind for kind in MISS_LOG_KINDS if kind == input), None),
        column=column,
        host=host,
        replay=replay,
    )
    with open_output(output) as target, progress("excluding") as bar:
        report = exclude_map(file, target, options, misses, index, bar.update)
    if json:
        counts = {each.name: getattr(report, each.name) for each in fields(report) if each.name != "problems"}
        click.echo(dumps({**counts, "problems": report.problems.counts}))
    else:
        say(_format_report(report), level="info")
    say_problems(report.problems)
    ctx.exit(EXIT_SKIPPED_INPUT if report.problems.total else 0)


def _parse_expiry(text: str) -> day | int:
    if text.isascii() and text.isdigit() and len(text) <= _MAX_DAYS_DIGITS:
        return int(text)
    try:
        return day.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--expires: expected days, or a date such as 2026-12-31, found `{text[:40]}`") from None


def _format_report(report: ExclusionReport) -> str:
    added = (
        f"{report.missed} pages missed: {report.added} excluded, {report.wildcards} subtrees, {report.renewed} renewed"
    )
    kept = f"{report.held} held, {report.denied} denied before, {report.queries} asked for only with queries"
    return f"{added}, {kept}; {report.expired} exclusions expired, {report.outweighed} outweighed"
