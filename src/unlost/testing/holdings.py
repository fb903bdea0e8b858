"""What a fake archive holds: copies of pages, found by address and date as archives find them."""

import base64
import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

from unlost import dates, uri

CDX_FIELDS = ("urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length")
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


class FakeCapture(NamedTuple):
    """One copy as the archive has it. key: of the page, a SURT. moment: 14 digits."""

    key: str
    timestamp: str
    original: str
    body: bytes
    mime: str
    status: int
    location: str | None

    def cdx_row(self) -> list[str]:
        """Return it as the index has it."""
        digest = base64.b32encode(hashlib.sha1(self.body, usedforsecurity=False).digest()).decode()
        mime = self.mime.partition(";")[0].strip()
        return [self.key, self.timestamp, self.original, mime, str(self.status), digest, str(len(self.body))]


class FakeHoldings:
    """All copies, by key and date. Addresses that are spelled differently and mean the same page are one."""

    def __init__(self, held: Held) -> None:
        found = [_make_capture(url, Copy(*each)) for url, copies in held.items() for each in copies]
        self._stored = sorted(found, key=lambda each: (each.key, each.timestamp))

    def __iter__(self) -> Iterator[FakeCapture]:
        """Return all of them."""
        return iter(self._stored)

    def merged_with(self, held: Held) -> "FakeHoldings":
        """Return these and others."""
        more = FakeHoldings(held)
        more._stored = sorted([*self._stored, *more._stored], key=lambda each: (each.key, each.timestamp))
        return more

    def captures_of(self, url: str) -> list[FakeCapture]:
        """Return the copies of a page, by date. Raises UriError."""
        key = uri.surt(url)
        return [each for each in self._stored if each.key == key]

    def closest_to(self, url: str, timestamp: str) -> FakeCapture | None:
        """Return the copy of a page that is closest to a date of 1 to 14 digits; None if there is none.

        Raises UriError, DateError.
        """
        copies = self.captures_of(url)
        if not copies:
            return None
        wanted = dates.to_datetime(dates.pad(timestamp))
        return min(copies, key=lambda each: abs(dates.to_datetime(each.timestamp) - wanted))

    def list_captures(self, url: str, match: str, first: str, last: str) -> list[FakeCapture]:
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
            and dates.pad(first) <= each.timestamp <= dates.pad(last, round_up=True)
        ]


def to_timestamp(when: datetime | str) -> str:
    """Return a date as 14 digits. Raises DateError.

    >>> moment_of("2014"), moment_of(datetime(2014, 2, 10))
    ('20140101000000', '20140210000000')
    """
    if isinstance(when, str):
        return dates.from_user_input(when)
    return dates.from_datetime(when if when.tzinfo else when.replace(tzinfo=UTC))


def _make_capture(url: str, copy: Copy) -> FakeCapture:
    body = copy.body.encode() if isinstance(copy.body, str) else copy.body
    return FakeCapture(uri.surt(url), to_timestamp(copy.datetime), url, body, copy.mime, copy.status, copy.location)
