"""`unlost timegate`: finds the memento of a page that is closest to a date, in all archives at once."""

import asyncio

import click

from unlost import dates
from unlost.cli.archive_options import AggregatorOptions, aggregator_options, build_service_options
from unlost.cli.inputs import parse_argument
from unlost.cli.messages import escape_untrusted
from unlost.cli.output import json_line, write_lines
from unlost.cli.timemap import find_mementos, report_exit_code


@click.command(name="timegate")
@click.argument("uri", metavar="URI")
@click.argument("date", metavar="[DATE]", required=False)
@click.option("--json", is_flag=True, help="One JSON object: uri, datetime, archive, and the archives that failed.")
@aggregator_options
@click.pass_context
def command(
    ctx: click.Context,
    uri: str,
    date: str | None,
    json: bool,
    asking: AggregatorOptions,
) -> None:
    """Print the address and the date of the copy of a page that is closest to a date.

    DATE is YYYY[MM[DD[hh[mm[ss]]]]], ISO 8601 or an HTTP date; without it, the last copy is meant. Exit code: 0 if a
    copy was found, 1 if all archives answered and have none, 4 if archives did not answer: there may be a closer one.
    """
    moment = None if date is None else parse_argument(date, dates.from_user_input, "DATE")
    found = asyncio.run(find_mementos(uri, build_service_options(asking, stays=False)))
    place = found.closest_index(moment)
    memento = None if place is None else found.mementos[place]
    if json:
        fields: dict[str, object] = {"original_uri": found.uri, "mementos": len(found.mementos), "closest": None}
        if memento:
            when = dates.to_iso(memento.datetime)
            fields["closest"] = {"uri": memento.uri, "datetime": when, "archive": memento.archive}
        write_lines([json_line(**fields, archives_failed={each.archive: each.outcome for each in found.failures})])
    elif memento:
        write_lines([f"{memento.datetime}\t{escape_untrusted(memento.uri.encode('utf-8', 'surrogateescape'), None)}\n"])
    ctx.exit(report_exit_code(found))
