"""What a recovery did not bring back, with what is known of it: for people who want to know why."""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from unlost.state_file import require_text, decode_text

FAILED_REASON = "failed"
"""The reason of what is missing since an archive failed: it may be had another time."""

_LINKS = "(SELECT count(*) FROM link WHERE target = missing.id)"
_MISSING = f"""
SELECT missing.uri, missing.reason, {_LINKS}, source.uri
FROM resource AS missing LEFT JOIN resource AS source
ON source.id = (SELECT min(source) FROM link WHERE target = missing.id)
WHERE missing.standing = 'missing' ORDER BY missing.id
"""  # noqa: S608  no text of others in it
_MOST_LINKED_MISSING = f"""
SELECT id, uri, reason, {_LINKS} AS links FROM resource AS missing
WHERE standing = 'missing' AND (coalesce(reason, '') = '{FAILED_REASON}') = ? ORDER BY links DESC, id LIMIT ?
"""  # noqa: S608
_SOURCES = """
SELECT source.uri, record.data FROM link JOIN resource AS source ON source.id = link.source
LEFT JOIN record ON record.id = source.record WHERE link.target = ? ORDER BY link.source LIMIT ?
"""
_CAPTURES = "SELECT archive, datetime, urim FROM capture WHERE resource = ? ORDER BY datetime DESC, id LIMIT ?"


@dataclass(frozen=True, slots=True)
class MissingResourceRow:
    """A resource that is missing. reason: one word, as in the event `missing` of `unlost recover`.

    links: how many resources link to it. source: the address of the first of them; None if there is none.
    """

    uri: str
    reason: str
    links: int
    source: str | None


@dataclass(frozen=True, slots=True)
class MissingResourceDetails:
    """The same, with some of the resources that link to it, and some captures of it that archives list.

    sources: their addresses, and those of their copies in an archive, if they are known.
    copies: archive, date (14 digits), and address there if it is known; the last first.
    """

    uri: str
    reason: str
    links: int
    sources: tuple[tuple[str, str | None], ...]
    captures: tuple[tuple[str, str, str | None], ...]


def missing_resources(connection: sqlite3.Connection) -> Iterator[MissingResourceRow]:
    """Yield all that is missing, in the order in which it was found. Raises ValueError for what is no text."""
    for uri, reason, links, source in connection.execute(_MISSING):
        yield MissingResourceRow(require_text(uri), require_text(reason or ""), links, source and require_text(source))


def most_linked_missing(
    connection: sqlite3.Connection, limit: int, each: int, *, is_failed: bool
) -> Iterator[MissingResourceDetails]:
    """Yield so many of the missing, those first to which most link; of links and captures `each` at most.

    is_failed: whether those are wanted that are missing since an archive failed, or all others.
    """
    for number, uri, reason, links in connection.execute(_MOST_LINKED_MISSING, (is_failed, limit)):
        # A question for each, but for no more than are shown.
        sources = tuple(
            (require_text(source), _urim(data)) for source, data in connection.execute(_SOURCES, (number, each))
        )
        copies = tuple(
            (require_text(archive), require_text(datetime), decode_text(urim))
            for archive, datetime, urim in connection.execute(_CAPTURES, (number, each))
        )
        yield MissingResourceDetails(require_text(uri), require_text(reason or ""), links, sources, copies)


def skipped_urls(connection: sqlite3.Connection, limit: int = -1) -> Iterator[tuple[str, str]]:
    """Yield the URLs that archives list and that were not fetched, each with the reason. limit: -1 for all."""
    for uri, reason in connection.execute(
        "SELECT uri, coalesce(reason, '') FROM resource WHERE standing = 'listed' ORDER BY id LIMIT ?", (limit,)
    ):
        yield require_text(uri), require_text(reason)


def _urim(data: str | None) -> str | None:
    """Return the address of a copy in its archive, by its record; None if that has none."""
    try:
        found = None if data is None else json.loads(data)["capture"].get("urim")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return found if isinstance(found, str) else None
