"""`unlost timemap` and `unlost timegate`: all mementos of a page from all archives at once, or the closest one."""

import asyncio
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import click

from unlost import dates
from unlost.aggregate.factory import build_aggregator
from unlost.aggregate.request import parse_typed_url
from unlost.aggregate.serializers import serialize_timemap
from unlost.aggregate.urls import ServiceUrls
from unlost.cli.archive_options import (
    AggregatorOptions,
    aggregator_options,
    build_aggregator_config,
    build_routing_options,
)
from unlost.cli.inputs import parse_argument
from unlost.cli.messages import escape_untrusted, say
from unlost.cli.output import json_line, write_lines
from unlost.errors import ArchiveError
from unlost.http.connectivity import Connectivity
from unlost.uri import key

if TYPE_CHECKING:
    from unlost.aggregate.models import AggregateResult
    from unlost.aggregate.serializers import TimeMapFormat


SERVICE_URL = "http://localhost:1208"
"""Base URL of the service in printed TimeMaps: the default of `unlost serve`."""


@click.command(name="timemap")
@click.argument("uri", metavar="URI")
@click.option(
    "--format",
    type=click.Choice(["link", "json", "cdxj", "text"]),
    default="link",
    show_default=True,
    help="How the copies are listed.",
)
@aggregator_options
@click.pass_context
def command(
    ctx: click.Context,
    uri: str,
    format: str,  # noqa: A002  the flag's name
    lookup_options: AggregatorOptions,
) -> None:
    """List all copies of a page that archives have, by date.

    Archives that fail or are late are named on stderr. Exit code: 0 if copies were found, 1 if all archives
    answered and have none, 4 if archives did not answer: there may be more than is listed.
    """
    result = asyncio.run(find_mementos(uri, lookup_options))
    if len(result.mementos):
        sys.stdout.buffer.write(serialize_timemap(result, ServiceUrls(SERVICE_URL), cast("TimeMapFormat", format)))
        sys.stdout.flush()
    ctx.exit(report_exit_code(result))


async def find_mementos(url: str, lookup_options: AggregatorOptions) -> "AggregateResult":
    """Return the mementos of a page.

    Raises:
        UsageError: The URL is invalid.
        OfflineError: There is no network, and no archive responds.
    """
    page = parse_argument(url, _parse_page)
    connectivity = Connectivity()
    config = replace(build_aggregator_config(lookup_options), connectivity=connectivity)
    async with build_aggregator(config) as components:
        result = await components.aggregator.find(page, build_routing_options(lookup_options))
    if (
        not any(report.has_answered for report in result.reports)
        and (error := connectivity.offline_error()) is not None
    ):
        raise error
    return result


def _parse_page(text: str) -> str:
    """Return the URL of a page as typed. Raises UriError for an invalid one, before any request."""
    key(text)
    return parse_typed_url(text)


def report_exit_code(result: "AggregateResult") -> int:
    """Report which archives failed; return the exit code.

    Returns:
        0 if all archives responded and some have mementos, 1 if none has any, 4 if some archives failed.
    """
    for report in result.reports:
        if report.has_answered and report.message:
            say(f"{report.archive}: {report.message}", level="note", archive=report.archive)
    for report in result.failures:
        detail = f": {report.message}" if report.message else ""
        say(f"{report.archive}: {report.outcome}{detail}", level="warning", archive=report.archive)
    if not len(result.mementos):
        page, failed, total = escape_untrusted(result.uri.encode()), len(result.failures), len(result.reports)
        message = f"no mementos of {page} were found"
        if failed:
            message = (
                f"no mementos of {page} were found, but {failed} of {total} archives did not answer: try again later"
            )
        say(message, level="note")
    if result.failures:
        return ArchiveError.exit_code
    return 0 if len(result.mementos) else 1


@click.command(name="timegate")
@click.argument("uri", metavar="URI")
@click.argument("date", metavar="[DATE]", required=False)
@click.option("--json", is_flag=True, help="One JSON object: uri, datetime, archive, and the archives that failed.")
@aggregator_options
@click.pass_context
def timegate_command(
    ctx: click.Context,
    uri: str,
    date: str | None,
    json: bool,
    lookup_options: AggregatorOptions,
) -> None:
    """Print the address and the date of the copy of a page that is closest to a date.

    DATE is YYYY[MM[DD[hh[mm[ss]]]]], ISO 8601 or an HTTP date; without it, the last copy is meant. Exit code: 0 if a
    copy was found, 1 if all archives answered and have none, 4 if archives did not answer: there may be a closer one.
    """
    date_digits = None if date is None else parse_argument(date, dates.from_user_input, "DATE")
    result = asyncio.run(find_mementos(uri, lookup_options))
    index = result.closest_index(date_digits)
    memento = None if index is None else result.mementos[index]
    if json:
        fields: dict[str, object] = {"original_uri": result.uri, "mementos": len(result.mementos), "closest": None}
        if memento:
            when = dates.to_iso(memento.datetime)
            fields["closest"] = {"uri": memento.uri, "datetime": when, "archive": memento.archive}
        write_lines([json_line(**fields, archives_failed={each.archive: each.outcome for each in result.failures})])
    elif memento:
        write_lines([f"{memento.datetime}\t{escape_untrusted(memento.uri.encode('utf-8', 'surrogateescape'), None)}\n"])
    ctx.exit(report_exit_code(result))
