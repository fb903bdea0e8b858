"""Resources of which it is known what became of them, with their places in the web of links."""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from unlost.recover.state.ended import IS_RECOVERED
from unlost.state_file import require_text, decode_text

_DATE = "json_extract(record.data, '$.capture.datetime')"
_LINKED = f"""
SELECT name, uri, use, hops, standing = 'missing', (SELECT count(*) FROM link WHERE target = resource.id), (
    SELECT min({_DATE}) FROM link JOIN resource AS source ON source.id = link.source
    JOIN record ON record.id = source.record WHERE link.target = resource.id
)
FROM resource WHERE standing = 'missing' OR ({IS_RECOVERED}) ORDER BY resource.id
"""  # noqa: S608  no text of others in it
_LAST_CAPTURE = f"SELECT max({_DATE}) FROM resource JOIN record ON record.id = resource.record"  # noqa: S608
_YEARS = """
WITH seen AS (SELECT DISTINCT resource, substr(datetime, 1, 4) AS year FROM capture),
born AS (SELECT resource, min(year) AS year FROM seen GROUP BY resource)
SELECT count(*), sum(seen.year = born.year) FROM seen JOIN born ON born.resource = seen.resource
GROUP BY seen.year ORDER BY seen.year
"""


@dataclass(frozen=True, slots=True)
class LinkedResource:
    """A resource that was recovered, or is missing.

    name, uri, use: as in `Ended`. hops: links from a beginning. links: how many resources of the site link to it.
    since: the date of the oldest copy that is kept and links to it, 14 digits; None if there is none.
    """

    name: str
    uri: str
    link_kind: str
    hops: int
    is_recovered: bool
    links: int
    since: str | None


def linked_resources(connection: sqlite3.Connection) -> Iterator[LinkedResource]:
    """Yield them in the order in which they were found. Raises ValueError for what is no text, sqlite3.Error."""
    for name, uri, use, hops, is_missing, links, since in connection.execute(_LINKED):
        if not isinstance(hops, int):
            raise ValueError(hops)  # noqa: TRY004  as for what is no text
        yield LinkedResource(
            require_text(name), require_text(uri), require_text(use), hops, not is_missing, links, decode_text(since)
        )


def last_capture_datetime(connection: sqlite3.Connection) -> str | None:
    """Return the date of the newest copy that was chosen, 14 digits; None if there is none."""
    found = decode_text(connection.execute(_LAST_CAPTURE).fetchone()[0])
    return found if isinstance(found, str) else None


def captures_by_year(connection: sqlite3.Connection) -> list[tuple[int, int]]:
    """Return for each year how many resources archives list, and how many of them for the first time."""
    return [(int(count), int(new or 0)) for count, new in connection.execute(_YEARS)]
