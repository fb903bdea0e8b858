"""What a fake archive answers, by the paths that archives have; it knows nothing of sockets."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qs, urljoin

from unlost import dates
from unlost.errors import InputError
from unlost.testing.holdings import FIELDS, Holdings, Stored
from unlost.testing.request import Asked

TIMEMAP, TIMEGATE, CDX, REPLAY = "/timemap/", "/timegate/", "/cdx/search/cdx", "/web/"
"""Where each question goes."""

_REPLAY = re.compile(r"/web/(\d{1,14})(?:[a-z]{2}_)?/(.+)", re.DOTALL)
_CAP = 100_000  # rows of one answer of the index, where nobody asks for fewer
_FIRST, _LAST = "0001", "9999"  # years: all dates


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent: a status, headers, a body."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


def kind_of(path: str) -> Asked:
    """Return what a request is for.

    >>> kind_of("/timemap/link/http://a.example/"), kind_of("/web/2014id_/http://a.example/"), kind_of("/")
    ('timemap', 'replay', 'other')
    """
    kinds: dict[str, Asked] = {TIMEMAP: "timemap", TIMEGATE: "timegate", CDX: "cdx", REPLAY: "replay"}
    return next((kind for begin, kind in kinds.items() if path.startswith(begin)), "other")


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers as an archive that holds something. base: its own address, without a slash at the end."""

    held: Holdings
    base: str

    def answer(self, path: str, headers: Mapping[str, str]) -> Answer:
        """Return what is said to a request. headers: with their names in lower case."""
        try:
            match kind_of(path):
                case "timemap":
                    return self._timemap(path.removeprefix(TIMEMAP))
                case "timegate":
                    return self._timegate(path.removeprefix(TIMEGATE), headers.get("accept-datetime"))
                case "replay":
                    return self._replay(path)
                case "cdx":
                    return self._index({name: values[-1] for name, values in parse_qs(path.partition("?")[2]).items()})
        except (InputError, ValueError, KeyError) as error:
            return _text(HTTPStatus.BAD_REQUEST, str(error))
        return _text(HTTPStatus.NOT_FOUND, "no such place")

    def memento(self, copy: Stored, flag: str = "") -> str:
        """Return the address of a copy. flag: `id_` for the raw one."""
        return f"{self.base}{REPLAY}{copy.moment}{flag}/{copy.original}"

    def _timemap(self, rest: str) -> Answer:
        form, _, url = rest.partition("/")
        copies = self.held.of(url)
        if form not in ("link", "json"):
            return _text(HTTPStatus.NOT_FOUND, "expected link or json")
        if not copies:
            return _text(HTTPStatus.NOT_FOUND, "not archived")
        if form == "json":
            return self._json(url, copies)
        entries = [
            f'<{url}>; rel="original"',
            f'<{self.base}{TIMEMAP}link/{url}>; rel="self"; type="application/link-format"',
            f'<{self.base}{TIMEGATE}{url}>; rel="timegate"',
            *(self._link(copy, _rel(copies, copy)) for copy in copies),
        ]
        return Answer(200, {"Content-Type": "application/link-format"}, (",\n".join(entries) + "\n").encode())

    def _json(self, url: str, copies: list[Stored]) -> Answer:
        listed = [{"datetime": dates.to_iso(copy.moment), "uri": self.memento(copy)} for copy in copies]
        found = {
            "original_uri": url,
            "self": f"{self.base}{TIMEMAP}json/{url}",
            "mementos": {"list": listed, "first": listed[0], "last": listed[-1]},
            "timemap_uri": {f"{form}_format": f"{self.base}{TIMEMAP}{form}/{url}" for form in ("link", "json")},
            "timegate_uri": f"{self.base}{TIMEGATE}{url}",
        }
        return Answer(200, {"Content-Type": "application/json"}, json.dumps(found, indent=2).encode() + b"\n")

    def _timegate(self, url: str, wanted: str | None) -> Answer:
        copies = self.held.of(url)
        copy = None
        if copies:
            copy = copies[-1] if wanted is None else self.held.closest(url, dates.from_http(wanted))
        if copy is None:
            return _text(HTTPStatus.NOT_FOUND, "not archived")
        headers = {"Vary": "accept-datetime", "Location": self.memento(copy), "Link": self._links(url, copy)}
        return Answer(HTTPStatus.FOUND, headers)

    def _replay(self, path: str) -> Answer:
        found = _REPLAY.fullmatch(path)
        if found is None:
            return _text(HTTPStatus.NOT_FOUND, "expected a date and an address")
        wanted, url = found.groups()
        copy = self.held.closest(url, wanted)
        if copy is None:
            return _text(HTTPStatus.NOT_FOUND, "not archived")
        flag = "id_" if path.startswith(f"{REPLAY}{wanted}id_/") else ""
        if copy.moment != wanted:
            return Answer(HTTPStatus.FOUND, {"Location": self.memento(copy, flag)})
        headers = {
            "Content-Type": copy.mime,
            "X-Archive-Orig-Content-Type": copy.mime,
            "Memento-Datetime": dates.to_http(copy.moment),
            "Link": self._links(copy.original, copy),
        }
        if copy.location is not None:
            target = urljoin(copy.original, copy.location)
            headers["Location"] = f"{self.base}{REPLAY}{copy.moment}{flag}/{target}"
        return Answer(copy.status, headers, copy.body)

    def _index(self, query: Mapping[str, str]) -> Answer:
        match = query.get("matchType", "exact")
        rows = self.held.listed(query["url"], match, query.get("from", _FIRST), query.get("to", _LAST))
        limit = int(query.get("limit", _CAP))
        start = int(query.get("resumeKey", "0"))
        if limit < 0:
            rows, limit = rows[limit:], -limit
        page = rows[start : start + limit]
        has_more = start + limit < len(rows) and query.get("showResumeKey") == "true"
        if query.get("output") != "json":
            lines = [" ".join(row.row()) for row in page] + (["", str(start + limit)] if has_more else [])
            return _text(200, "".join(f"{line}\n" for line in lines))
        listed: list[list[str]] = [list(FIELDS), *(row.row() for row in page)] if page else []
        listed += [[], [str(start + limit)]] if has_more else []
        text = "[" + ",\n".join(map(json.dumps, listed)) + "]\n"
        return Answer(200, {"Content-Type": "application/json"}, text.encode())

    def _links(self, url: str, copy: Stored) -> str:
        others = (
            f'<{url}>; rel="original"',
            f'<{self.base}{TIMEGATE}{url}>; rel="timegate"',
            f'<{self.base}{TIMEMAP}link/{url}>; rel="timemap"; type="application/link-format"',
        )
        return ", ".join((*others, self._link(copy, _rel(self.held.of(url), copy))))

    def _link(self, copy: Stored, rel: str) -> str:
        return f'<{self.memento(copy)}>; rel="{rel}"; datetime="{dates.to_http(copy.moment)}"'


def _rel(copies: list[Stored], copy: Stored) -> str:
    ends = (("first", copies[0]), ("last", copies[-1]))
    return " ".join([*(name for name, end in ends if end is copy), "memento"])


def _text(status: int, text: str) -> Answer:
    return Answer(status, {"Content-Type": "text/plain; charset=utf-8"}, text.encode("utf-8", "replace"))
