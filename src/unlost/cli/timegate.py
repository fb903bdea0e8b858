"""`unlost timegate`: the copy of a page that is closest to a date, from all archives at once."""

import asyncio

import click

from unlost import dates
from unlost.cli.addresses import json_line, meant, write
from unlost.cli.messages import shown
from unlost.cli.service_options import Asking, asking_options, options_of
from unlost.cli.timemap import exit_code, find


@click.command(name="timegate")
@click.argument("uri", metavar="URI")
@click.argument("date", metavar="[DATE]", required=False)
@click.option("--json", is_flag=True, help="One JSON object: uri, datetime, archive, and the archives that failed.")
@asking_options
@click.pass_context
def command(
    ctx: click.Context,
    uri: str,
    date: str | None,
    json: bool,
    asking: Asking,
) -> None:
    """Print the address and the date of the copy of a page that is closest to a date.

    DATE is YYYY[MM[DD[hh[mm[ss]]]]], ISO 8601 or an HTTP date; without it, the last copy is meant. Exit code: 0 if a
    copy was found, 1 if all archives answered and have none, 4 if archives did not answer: there may be a closer one.
    """
    moment = None if date is None else meant(date, dates.from_people, "DATE")
    found = asyncio.run(find(uri, options_of(asking, stays=False)))
    place = found.closest(moment)
    memento = None if place is None else found.mementos[place]
    if json:
        fields: dict[str, object] = {"original_uri": found.uri, "mementos": len(found.mementos), "closest": None}
        if memento:
            when = dates.to_iso(memento.datetime)
            fields["closest"] = {"uri": memento.uri, "datetime": when, "archive": memento.archive}
        write([json_line(**fields, archives_failed={each.archive: each.outcome for each in found.failures})])
    elif memento:
        write([f"{memento.datetime}\t{shown(memento.uri.encode('utf-8', 'surrogateescape'), None)}\n"])
    ctx.exit(exit_code(found))
