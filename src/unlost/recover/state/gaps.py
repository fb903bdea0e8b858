"""What a recovery did not bring back, with what is known of it: for people who want to know why."""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from unlost.state_file import certain_text, text_of

FAILED = "failed"
"""The reason of what is missing since an archive failed: it may be had another time."""

_LINKS = "(SELECT count(*) FROM link WHERE target = missing.id)"
_MISSING = f"""
SELECT missing.uri, missing.reason, {_LINKS}, source.uri
FROM resource AS missing LEFT JOIN resource AS source
ON source.id = (SELECT min(source) FROM link WHERE target = missing.id)
WHERE missing.standing = 'missing' ORDER BY missing.id
"""  # noqa: S608  no text of others in it
_MOST_MISSED = f"""
SELECT id, uri, reason, {_LINKS} AS links FROM resource AS missing
WHERE standing = 'missing' AND (coalesce(reason, '') = '{FAILED}') = ? ORDER BY links DESC, id LIMIT ?
"""  # noqa: S608
_SOURCES = """
SELECT source.uri, record.data FROM link JOIN resource AS source ON source.id = link.source
LEFT JOIN record ON record.id = source.record WHERE link.target = ? ORDER BY link.source LIMIT ?
"""
_COPIES = "SELECT archive, datetime, urim FROM capture WHERE resource = ? ORDER BY datetime DESC, id LIMIT ?"


@dataclass(frozen=True, slots=True)
class Missing:
    """A resource that is missing. reason: one word, as in the event `missing` of `unlost recover`.

    links: how many resources link to it. source: the address of the first of them; None if there is none.
    """

    uri: str
    reason: str
    links: int
    source: str | None


@dataclass(frozen=True, slots=True)
class Missed:
    """The same, with some of the resources that link to it, and some captures of it that archives list.

    sources: their addresses, and those of their copies in an archive, if they are known.
    copies: archive, date (14 digits), and address there if it is known; the last first.
    """

    uri: str
    reason: str
    links: int
    sources: tuple[tuple[str, str | None], ...]
    copies: tuple[tuple[str, str, str | None], ...]


def missing(connection: sqlite3.Connection) -> Iterator[Missing]:
    """Yield all that is missing, in the order in which it was found. Raises ValueError for what is no text."""
    for uri, reason, links, source in connection.execute(_MISSING):
        yield Missing(certain_text(uri), certain_text(reason or ""), links, source and certain_text(source))


def most_missed(connection: sqlite3.Connection, limit: int, each: int, *, is_failed: bool) -> Iterator[Missed]:
    """Yield so many of the missing, those first to which most link; of links and captures `each` at most.

    is_failed: whether those are wanted that are missing since an archive failed, or all others.
    """
    for number, uri, reason, links in connection.execute(_MOST_MISSED, (is_failed, limit)):
        # A question for each, but for no more than are shown.
        sources = tuple(
            (certain_text(source), _urim(data)) for source, data in connection.execute(_SOURCES, (number, each))
        )
        copies = tuple(
            (certain_text(archive), certain_text(datetime), text_of(urim))
            for archive, datetime, urim in connection.execute(_COPIES, (number, each))
        )
        yield Missed(certain_text(uri), certain_text(reason or ""), links, sources, copies)


def listed(connection: sqlite3.Connection, limit: int = -1) -> Iterator[tuple[str, str]]:
    """Yield the URLs that archives list and that were not fetched, each with the reason. limit: -1 for all."""
    for uri, reason in connection.execute(
        "SELECT uri, coalesce(reason, '') FROM resource WHERE standing = 'listed' ORDER BY id LIMIT ?", (limit,)
    ):
        yield certain_text(uri), certain_text(reason)


def _urim(data: str | None) -> str | None:
    """Return the address of a copy in its archive, by its record; None if that has none."""
    try:
        found = None if data is None else json.loads(data)["capture"].get("urim")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return found if isinstance(found, str) else None
