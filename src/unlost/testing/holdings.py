"""What a fake archive holds: copies of pages, found by address and date as archives find them."""

import base64
import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

from unlost import dates, uri

FIELDS = ("urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length")
"""Of a row, as the Wayback Machine's index has them."""


class Copy(NamedTuple):
    """One copy, as a test says it; of a shorter tuple, the rest is as here.

    datetime: when it was captured: a datetime, or text such as `2014`, `20140210000001` or `2014-02-10`. One without a
        time zone is in UTC.
    body: bytes, or text, which is kept as UTF-8. mime: its Content-Type. status: what the site answered with; of a
        redirect, `location` says where it leads.
    """

    datetime: datetime | str
    body: bytes | str = b""
    mime: str = "text/html"
    status: int = 200
    location: str | None = None


Held: TypeAlias = Mapping[str, Iterable[Copy | tuple[object, ...]]]
"""Addresses of pages with their copies: `{url: [(datetime, body, mime, status), …]}`."""


class Stored(NamedTuple):
    """One copy as the archive has it. key: of the page, a SURT. moment: 14 digits."""

    key: str
    moment: str
    original: str
    body: bytes
    mime: str
    status: int
    location: str | None

    def row(self) -> list[str]:
        """Return it as the index has it."""
        digest = base64.b32encode(hashlib.sha1(self.body, usedforsecurity=False).digest()).decode()
        mime = self.mime.partition(";")[0].strip()
        return [self.key, self.moment, self.original, mime, str(self.status), digest, str(len(self.body))]


class Holdings:
    """All copies, by key and date. Addresses that are spelled differently and mean the same page are one."""

    def __init__(self, held: Held) -> None:
        found = [_stored(url, Copy(*each)) for url, copies in held.items() for each in copies]
        self._stored = sorted(found, key=lambda each: (each.key, each.moment))

    def __iter__(self) -> Iterator[Stored]:
        """Return all of them."""
        return iter(self._stored)

    def with_more(self, held: Held) -> "Holdings":
        """Return these and others."""
        more = Holdings(held)
        more._stored = sorted([*self._stored, *more._stored], key=lambda each: (each.key, each.moment))
        return more

    def of(self, url: str) -> list[Stored]:
        """Return the copies of a page, by date. Raises UriError."""
        key = uri.surt(url)
        return [each for each in self._stored if each.key == key]

    def closest(self, url: str, moment: str) -> Stored | None:
        """Return the copy of a page that is closest to a date of 1 to 14 digits; None if there is none.

        Raises UriError, DateError.
        """
        copies = self.of(url)
        if not copies:
            return None
        wanted = dates.to_datetime(dates.pad(moment))
        return min(copies, key=lambda each: abs(dates.to_datetime(each.moment) - wanted))

    def listed(self, url: str, match: str, first: str, last: str) -> list[Stored]:
        """Return what a query of the index gives. match: `exact`, `prefix`, `host` or `domain`. Raises UriError."""
        key = uri.surt(url)
        host = key.partition(")")[0]
        begins = {"exact": (key,), "host": (f"{host})",), "domain": (f"{host})", f"{host},")}.get(match, (key,))
        rows = self._stored[bisect_left(self._stored, (host,)) :]  # a domain's keys begin as its host's do
        return [
            each
            for each in rows
            if each.key.startswith(begins)
            and (match != "exact" or each.key == key)
            and dates.pad(first) <= each.moment <= dates.pad(last, up=True)
        ]


def moment_of(when: datetime | str) -> str:
    """Return a date as 14 digits. Raises DateError.

    >>> moment_of("2014"), moment_of(datetime(2014, 2, 10))
    ('20140101000000', '20140210000000')
    """
    if isinstance(when, str):
        return dates.from_people(when)
    return dates.from_datetime(when if when.tzinfo else when.replace(tzinfo=UTC))


def _stored(url: str, copy: Copy) -> Stored:
    body = copy.body.encode() if isinstance(copy.body, str) else copy.body
    return Stored(uri.surt(url), moment_of(copy.datetime), url, body, copy.mime, copy.status, copy.location)
