"""Responses of a fake archive: its captures, found by URL and date, and what it returns for each path.

TimeMaps, TimeGate, replay and a CDX server, without any sockets.
"""

import base64
import hashlib
import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Literal, NamedTuple, TypeAlias
from urllib.parse import parse_qs, urljoin

from unlost import dates, uri
from unlost.errors import InputError

Asked = Literal["timemap", "timegate", "replay", "cdx", "other"]
"""What a request is for; `other` is what no archive is asked."""


class Request(NamedTuple):
    """One request. kind: what for. path: with the query, as it came. headers: with their names in lower case."""

    kind: Asked
    path: str
    headers: dict[str, str]


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

    >>> to_timestamp("2014"), to_timestamp(datetime(2014, 2, 10))
    ('20140101000000', '20140210000000')
    """
    if isinstance(when, str):
        return dates.from_user_input(when)
    return dates.from_datetime(when if when.tzinfo else when.replace(tzinfo=UTC))


def _make_capture(url: str, copy: Copy) -> FakeCapture:
    body = copy.body.encode() if isinstance(copy.body, str) else copy.body
    return FakeCapture(uri.surt(url), to_timestamp(copy.datetime), url, body, copy.mime, copy.status, copy.location)


TIMEMAP_PATH, TIMEGATE_PATH, CDX_PATH, REPLAY_PATH = "/timemap/", "/timegate/", "/cdx/search/cdx", "/web/"
"""Where each question goes."""
_REPLAY_URL = re.compile(r"/web/(\d{1,14})(?:[a-z]{2}_)?/(.+)", re.DOTALL)
_MAX_ROWS = 100_000  # rows of one answer of the index, where nobody asks for fewer
_FIRST, _LAST = "0001", "9999"  # years: all dates


@dataclass(frozen=True, slots=True)
class FakeResponse:
    """What is sent: a status, headers, a body."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


def request_kind(path: str) -> Asked:
    """Return what a request is for.

    >>> request_kind("/timemap/link/http://a.example/"), request_kind("/web/2014id_/http://a.example/"), request_kind("/")
    ('timemap', 'replay', 'other')
    """
    kinds: dict[str, Asked] = {
        TIMEMAP_PATH: "timemap",
        TIMEGATE_PATH: "timegate",
        CDX_PATH: "cdx",
        REPLAY_PATH: "replay",
    }
    return next((kind for begin, kind in kinds.items() if path.startswith(begin)), "other")


@dataclass(frozen=True, slots=True)
class FakeResponder:
    """Answers as an archive that holds something. base: its own address, without a slash at the end."""

    holdings: FakeHoldings
    base: str

    def respond(self, path: str, headers: Mapping[str, str]) -> FakeResponse:
        """Return what is said to a request. headers: with their names in lower case."""
        try:
            match request_kind(path):
                case "timemap":
                    return self._timemap(path.removeprefix(TIMEMAP_PATH))
                case "timegate":
                    return self._timegate(path.removeprefix(TIMEGATE_PATH), headers.get("accept-datetime"))
                case "replay":
                    return self._replay(path)
                case "cdx":
                    return self._index({name: values[-1] for name, values in parse_qs(path.partition("?")[2]).items()})
        except (InputError, ValueError, KeyError) as error:
            return _text_response(HTTPStatus.BAD_REQUEST, str(error))
        return _text_response(HTTPStatus.NOT_FOUND, "no such place")

    def memento_url(self, copy: FakeCapture, flag: str = "") -> str:
        """Return the address of a copy. flag: `id_` for the raw one."""
        return f"{self.base}{REPLAY_PATH}{copy.timestamp}{flag}/{copy.original}"

    def _timemap(self, rest: str) -> FakeResponse:
        form, _, url = rest.partition("/")
        copies = self.holdings.captures_of(url)
        if form not in ("link", "json"):
            return _text_response(HTTPStatus.NOT_FOUND, "expected link or json")
        if not copies:
            return _text_response(HTTPStatus.NOT_FOUND, "not archived")
        if form == "json":
            return self._json(url, copies)
        entries = [
            f'<{url}>; rel="original"',
            f'<{self.base}{TIMEMAP_PATH}link/{url}>; rel="self"; type="application/link-format"',
            f'<{self.base}{TIMEGATE_PATH}{url}>; rel="timegate"',
            *(self._link(copy, _memento_rel(copies, copy)) for copy in copies),
        ]
        return FakeResponse(200, {"Content-Type": "application/link-format"}, (",\n".join(entries) + "\n").encode())

    def _json(self, url: str, copies: list[FakeCapture]) -> FakeResponse:
        listed = [{"datetime": dates.to_iso(copy.timestamp), "uri": self.memento_url(copy)} for copy in copies]
        found = {
            "original_uri": url,
            "self": f"{self.base}{TIMEMAP_PATH}json/{url}",
            "mementos": {"list": listed, "first": listed[0], "last": listed[-1]},
            "timemap_uri": {f"{form}_format": f"{self.base}{TIMEMAP_PATH}{form}/{url}" for form in ("link", "json")},
            "timegate_uri": f"{self.base}{TIMEGATE_PATH}{url}",
        }
        return FakeResponse(200, {"Content-Type": "application/json"}, json.dumps(found, indent=2).encode() + b"\n")

    def _timegate(self, url: str, wanted: str | None) -> FakeResponse:
        copies = self.holdings.captures_of(url)
        copy = None
        if copies:
            copy = copies[-1] if wanted is None else self.holdings.closest_to(url, dates.from_http(wanted))
        if copy is None:
            return _text_response(HTTPStatus.NOT_FOUND, "not archived")
        headers = {"Vary": "accept-datetime", "Location": self.memento_url(copy), "Link": self._links(url, copy)}
        return FakeResponse(HTTPStatus.FOUND, headers)

    def _replay(self, path: str) -> FakeResponse:
        found = _REPLAY_URL.fullmatch(path)
        if found is None:
            return _text_response(HTTPStatus.NOT_FOUND, "expected a date and an address")
        wanted, url = found.groups()
        copy = self.holdings.closest_to(url, wanted)
        if copy is None:
            return _text_response(HTTPStatus.NOT_FOUND, "not archived")
        flag = "id_" if path.startswith(f"{REPLAY_PATH}{wanted}id_/") else ""
        if copy.timestamp != wanted:
            return FakeResponse(HTTPStatus.FOUND, {"Location": self.memento_url(copy, flag)})
        headers = {
            "Content-Type": copy.mime,
            "X-Archive-Orig-Content-Type": copy.mime,
            "Memento-Datetime": dates.to_http(copy.timestamp),
            "Link": self._links(copy.original, copy),
        }
        if copy.location is not None:
            target = urljoin(copy.original, copy.location)
            headers["Location"] = f"{self.base}{REPLAY_PATH}{copy.timestamp}{flag}/{target}"
        return FakeResponse(copy.status, headers, copy.body)

    def _index(self, query: Mapping[str, str]) -> FakeResponse:
        match = query.get("matchType", "exact")
        rows = self.holdings.list_captures(query["url"], match, query.get("from", _FIRST), query.get("to", _LAST))
        limit = int(query.get("limit", _MAX_ROWS))
        start = int(query.get("resumeKey", "0"))
        if limit < 0:
            rows, limit = rows[limit:], -limit
        page = rows[start : start + limit]
        has_more = start + limit < len(rows) and query.get("showResumeKey") == "true"
        if query.get("output") != "json":
            lines = [" ".join(row.cdx_row()) for row in page] + (["", str(start + limit)] if has_more else [])
            return _text_response(200, "".join(f"{line}\n" for line in lines))
        listed: list[list[str]] = [list(CDX_FIELDS), *(row.cdx_row() for row in page)] if page else []
        listed += [[], [str(start + limit)]] if has_more else []
        text = "[" + ",\n".join(map(json.dumps, listed)) + "]\n"
        return FakeResponse(200, {"Content-Type": "application/json"}, text.encode())

    def _links(self, url: str, copy: FakeCapture) -> str:
        others = (
            f'<{url}>; rel="original"',
            f'<{self.base}{TIMEGATE_PATH}{url}>; rel="timegate"',
            f'<{self.base}{TIMEMAP_PATH}link/{url}>; rel="timemap"; type="application/link-format"',
        )
        return ", ".join((*others, self._link(copy, _memento_rel(self.holdings.captures_of(url), copy))))

    def _link(self, copy: FakeCapture, rel: str) -> str:
        return f'<{self.memento_url(copy)}>; rel="{rel}"; datetime="{dates.to_http(copy.timestamp)}"'


def _memento_rel(copies: list[FakeCapture], copy: FakeCapture) -> str:
    ends = (("first", copies[0]), ("last", copies[-1]))
    return " ".join([*(name for name, end in ends if end is copy), "memento"])


def _text_response(status: int, text: str) -> FakeResponse:
    return FakeResponse(status, {"Content-Type": "text/plain; charset=utf-8"}, text.encode("utf-8", "replace"))
