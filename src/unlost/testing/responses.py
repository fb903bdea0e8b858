"""Captures and responses of the fake archive: TimeMaps, TimeGate, replay and CDX server, without sockets."""

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
"""Kind of a request; `other` is any path that the archive does not serve."""


class Request(NamedTuple):
    """A request that the fake archive received.

    Attributes:
        kind: Endpoint that was requested.
        path: Request target including the query, as received.
        headers: Headers, with names in lower case.
    """

    kind: Asked
    path: str
    headers: dict[str, str]


CDX_FIELDS = ("urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length")
"""Columns of a CDX row, in the order of the Wayback Machine's CDX server."""


class Copy(NamedTuple):
    """A capture as a test defines it. A plain tuple with at least a datetime is equivalent.

    Attributes:
        datetime: Capture time: a datetime, or text such as `2014`, `20140210000001` or `2014-02-10`. UTC if it has no
            time zone.
        body: Bytes, or text to encode as UTF-8.
        mime: Content-Type header.
        status: HTTP status of the original response.
        location: Target of a redirect.
    """

    datetime: datetime | str
    body: bytes | str = b""
    mime: str = "text/html"
    status: int = 200
    location: str | None = None


Held: TypeAlias = Mapping[str, Iterable[Copy | tuple[object, ...]]]
"""Captures by URL: `{url: [(datetime, body, mime, status), …]}`."""


class FakeCapture(NamedTuple):
    """A capture in the fake archive.

    Attributes:
        key: SURT of the URL.
        timestamp: Capture time, 14 digits.
    """

    key: str
    timestamp: str
    original: str
    body: bytes
    mime: str
    status: int
    location: str | None

    def cdx_row(self) -> list[str]:
        """Return the CDX columns as in `CDX_FIELDS`."""
        digest = base64.b32encode(hashlib.sha1(self.body, usedforsecurity=False).digest()).decode()
        mime = self.mime.partition(";")[0].strip()
        return [self.key, self.timestamp, self.original, mime, str(self.status), digest, str(len(self.body))]


class FakeHoldings:
    """All captures, sorted by SURT and date. URLs with the same SURT are one page."""

    def __init__(self, held: Held) -> None:
        captures = [_make_capture(url, Copy(*capture)) for url, definitions in held.items() for capture in definitions]
        self._stored = sorted(captures, key=lambda capture: (capture.key, capture.timestamp))

    def __iter__(self) -> Iterator[FakeCapture]:
        """Iterate over all captures."""
        return iter(self._stored)

    def merged_with(self, held: Held) -> "FakeHoldings":
        """Return new holdings that also contain `held`."""
        merged = FakeHoldings(held)
        merged._stored = sorted([*self._stored, *merged._stored], key=lambda each: (each.key, each.timestamp))
        return merged

    def captures_of(self, url: str) -> list[FakeCapture]:
        """Return the captures of a URL, by date.

        Raises:
            UriError: The URL is invalid.
        """
        key = uri.surt(url)
        return [each for each in self._stored if each.key == key]

    def closest_to(self, url: str, timestamp: str) -> FakeCapture | None:
        """Return the capture of a URL closest to a timestamp of 1 to 14 digits; None if there is none.

        Raises:
            UriError: The URL is invalid.
            DateError: The timestamp is invalid.
        """
        captures = self.captures_of(url)
        if not captures:
            return None
        target = dates.to_datetime(dates.pad(timestamp))
        return min(captures, key=lambda each: abs(dates.to_datetime(each.timestamp) - target))

    def list_captures(self, url: str, match: str, first: str, last: str) -> list[FakeCapture]:
        """Return the captures that match a CDX query.

        Args:
            url: URL of the query.
            match: `exact`, `prefix`, `host` or `domain`.
            first: Earliest timestamp, 1 to 14 digits.
            last: Latest timestamp, 1 to 14 digits.

        Raises:
            UriError: The URL is invalid.
        """
        key = uri.surt(url)
        host = key.partition(")")[0]
        begins = {"exact": (key,), "host": (f"{host})",), "domain": (f"{host})", f"{host},")}.get(match, (key,))
        rows = self._stored[bisect_left(self._stored, (host,)) :]  # SURTs of subdomains begin with that of the domain
        return [
            each
            for each in rows
            if each.key.startswith(begins)
            and (match != "exact" or each.key == key)
            and dates.pad(first) <= each.timestamp <= dates.pad(last, round_up=True)
        ]


def to_timestamp(when: datetime | str) -> str:
    """Return a date as a 14-digit timestamp.

    Raises:
        DateError: The text is not a date.

    >>> to_timestamp("2014"), to_timestamp(datetime(2014, 2, 10))
    ('20140101000000', '20140210000000')
    """
    if isinstance(when, str):
        return dates.from_user_input(when)
    return dates.from_datetime(when if when.tzinfo else when.replace(tzinfo=UTC))


def _make_capture(url: str, definition: Copy) -> FakeCapture:
    body = definition.body.encode() if isinstance(definition.body, str) else definition.body
    return FakeCapture(
        uri.surt(url),
        to_timestamp(definition.datetime),
        url,
        body,
        definition.mime,
        definition.status,
        definition.location,
    )


TIMEMAP_PATH, TIMEGATE_PATH, CDX_PATH, REPLAY_PATH = "/timemap/", "/timegate/", "/cdx/search/cdx", "/web/"
"""Path prefixes of the endpoints."""
_REPLAY_URL = re.compile(r"/web/(\d{1,14})(?:[a-z]{2}_)?/(.+)", re.DOTALL)
_MAX_ROWS = 100_000  # of a CDX response without a `limit`
_FIRST, _LAST = "0001", "9999"  # default `from` and `to`: all dates


@dataclass(frozen=True, slots=True)
class FakeResponse:
    """Status, headers and body of a response."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


def request_kind(path: str) -> Asked:
    """Return the endpoint that a path belongs to.

    >>> request_kind("/timemap/link/http://a.example/"), request_kind("/web/2014id_/http://a.example/")
    ('timemap', 'replay')
    >>> request_kind("/")
    'other'
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
    """Creates the responses of an archive.

    Attributes:
        holdings: Captures to serve.
        base: Base URL of the archive, without a trailing slash.
    """

    holdings: FakeHoldings
    base: str

    def respond(self, path: str, headers: Mapping[str, str]) -> FakeResponse:
        """Return the response to a request.

        Args:
            path: Request target including the query.
            headers: Request headers, with names in lower case.
        """
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

    def memento_url(self, capture: FakeCapture, flag: str = "") -> str:
        """Return the URI-M of a capture.

        Args:
                        capture: The capture.
            flag: `id_` for the raw memento.
        """
        return f"{self.base}{REPLAY_PATH}{capture.timestamp}{flag}/{capture.original}"

    def _timemap(self, target: str) -> FakeResponse:
        form, _, url = target.partition("/")
        captures = self.holdings.captures_of(url)
        if form not in ("link", "json"):
            return _text_response(HTTPStatus.NOT_FOUND, "expected link or json")
        if not captures:
            return _text_response(HTTPStatus.NOT_FOUND, "not archived")
        if form == "json":
            return self._json(url, captures)
        entries = [
            f'<{url}>; rel="original"',
            f'<{self.base}{TIMEMAP_PATH}link/{url}>; rel="self"; type="application/link-format"',
            f'<{self.base}{TIMEGATE_PATH}{url}>; rel="timegate"',
            *(self._link(capture, _memento_rel(captures, capture)) for capture in captures),
        ]
        return FakeResponse(200, {"Content-Type": "application/link-format"}, (",\n".join(entries) + "\n").encode())

    def _json(self, url: str, captures: list[FakeCapture]) -> FakeResponse:
        entries = [
            {"datetime": dates.to_iso(capture.timestamp), "uri": self.memento_url(capture)} for capture in captures
        ]
        document = {
            "original_uri": url,
            "self": f"{self.base}{TIMEMAP_PATH}json/{url}",
            "mementos": {"list": entries, "first": entries[0], "last": entries[-1]},
            "timemap_uri": {f"{form}_format": f"{self.base}{TIMEMAP_PATH}{form}/{url}" for form in ("link", "json")},
            "timegate_uri": f"{self.base}{TIMEGATE_PATH}{url}",
        }
        return FakeResponse(200, {"Content-Type": "application/json"}, json.dumps(document, indent=2).encode() + b"\n")

    def _timegate(self, url: str, accept_datetime: str | None) -> FakeResponse:
        captures = self.holdings.captures_of(url)
        capture = None
        if captures:
            capture = (
                captures[-1]
                if accept_datetime is None
                else self.holdings.closest_to(url, dates.from_http(accept_datetime))
            )
        if capture is None:
            return _text_response(HTTPStatus.NOT_FOUND, "not archived")
        headers = {"Vary": "accept-datetime", "Location": self.memento_url(capture), "Link": self._links(url, capture)}
        return FakeResponse(HTTPStatus.FOUND, headers)

    def _replay(self, path: str) -> FakeResponse:
        match = _REPLAY_URL.fullmatch(path)
        if match is None:
            return _text_response(HTTPStatus.NOT_FOUND, "expected a date and an address")
        timestamp, url = match.groups()
        capture = self.holdings.closest_to(url, timestamp)
        if capture is None:
            return _text_response(HTTPStatus.NOT_FOUND, "not archived")
        flag = "id_" if path.startswith(f"{REPLAY_PATH}{timestamp}id_/") else ""
        if capture.timestamp != timestamp:
            return FakeResponse(HTTPStatus.FOUND, {"Location": self.memento_url(capture, flag)})
        headers = {
            "Content-Type": capture.mime,
            "X-Archive-Orig-Content-Type": capture.mime,
            "Memento-Datetime": dates.to_http(capture.timestamp),
            "Link": self._links(capture.original, capture),
        }
        if capture.location is not None:
            target = urljoin(capture.original, capture.location)
            headers["Location"] = f"{self.base}{REPLAY_PATH}{capture.timestamp}{flag}/{target}"
        return FakeResponse(capture.status, headers, capture.body)

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
        table: list[list[str]] = [list(CDX_FIELDS), *(row.cdx_row() for row in page)] if page else []
        table += [[], [str(start + limit)]] if has_more else []
        text = "[" + ",\n".join(map(json.dumps, table)) + "]\n"
        return FakeResponse(200, {"Content-Type": "application/json"}, text.encode())

    def _links(self, url: str, capture: FakeCapture) -> str:
        links = (
            f'<{url}>; rel="original"',
            f'<{self.base}{TIMEGATE_PATH}{url}>; rel="timegate"',
            f'<{self.base}{TIMEMAP_PATH}link/{url}>; rel="timemap"; type="application/link-format"',
        )
        return ", ".join((*links, self._link(capture, _memento_rel(self.holdings.captures_of(url), capture))))

    def _link(self, capture: FakeCapture, rel: str) -> str:
        return f'<{self.memento_url(capture)}>; rel="{rel}"; datetime="{dates.to_http(capture.timestamp)}"'


def _memento_rel(captures: list[FakeCapture], capture: FakeCapture) -> str:
    ends = (("first", captures[0]), ("last", captures[-1]))
    return " ".join([*(name for name, end in ends if end is capture), "memento"])


def _text_response(status: int, text: str) -> FakeResponse:
    return FakeResponse(status, {"Content-Type": "text/plain; charset=utf-8"}, text.encode("utf-8", "replace"))
