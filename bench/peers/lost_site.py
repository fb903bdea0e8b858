"""A synthetic lost site and its captures: good ones, and those that reflect common faults of sites and archives.

Each resource has a kind, which names its difficulty, and one correct body: that of its last good capture. The site is
deterministic, so that all runs of all tools have the same input.
"""

import base64
import gzip
import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.external.wayback_cdx import StoredCapture

HOST = "harbour.example"
HOME = f"http://{HOST}/"
CDN = "cdn.example"
"""Another host, which serves only page requisites."""
LONG_QUERY_LENGTH = 280
"""Length of a query that is too long for a file name."""

_FILES = f"http://{CDN}/harbour/"
_THEME = (
    b'@font-face { font-family: Sail; src: url(../fonts/sail.woff2) format("woff2"), url("../fonts/sail.woff?v=2") }\n'
    b"body { font-family: Sail, serif }\n"
)
_WORDS = {
    "who": "skipper|crew|sailor|cadet|harbourmaster|navigator|member|boatbuilder|visitor|instructor",
    "does": "repaired|launched|moored|painted|sailed|steered|inspected|rigged|anchored|crossed",
    "what": "dinghy|ketch|mast|keel|rudder|jetty|lighthouse|buoy|estuary|boathouse|regatta|spinnaker",
    "when": "in spring|before the regatta|after the storm|at low tide|during the winter|every Sunday",
}
_PARKED = (
    "<!doctype html><html><head><title>{host} is for sale</title></head><body><h1>{host}</h1>"
    "<p>This domain is for sale. Buy this domain from its owner today.</p>"
    "<h2>Related searches</h2><ul><li><a href='http://ads.example/1'>Cheap flights</a>"
    "<li><a href='http://ads.example/2'>Car insurance</a>"
    "<li><a href='http://ads.example/3'>Credit cards</a></ul></body></html>"
)
_SOFT_404 = (
    "<!doctype html><html><head><title>Page not found</title></head><body><h1>Page not found</h1>"
    "<p>Sorry, the page you are looking for does not exist or has been moved.</p>"
    "<p><a href='/'>Home</a></p></body></html>"
)


@dataclass(frozen=True)
class Resource:
    """A resource of the site.

    Attributes:
        uri: Its URL.
        kind: What is difficult about it.
        mime: Its media type.
        body: Decoded body of its last good capture.
        other_bodies: Descriptions of the bodies of other captures.
    """

    uri: str
    kind: str
    mime: str
    body: bytes
    other_bodies: dict[bytes, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TransferFault:
    """A fault in the transfer of a capture. times: how often it occurs; None for always. kind: `cut` or `503`."""

    kind: str
    times: int | None


@dataclass(frozen=True)
class Site:
    """The resources, their captures, and the faults of transfers by date and URL."""

    resources: tuple[Resource, ...]
    captures: tuple[StoredCapture, ...]
    faults: dict[tuple[str, str], TransferFault]

    def __iter__(self) -> Iterator[Resource]:
        """Return the resources."""
        return iter(self.resources)

    @property
    def originals(self) -> list[str]:
        """The URLs of all resources."""
        return [resource.uri for resource in self.resources]


def make_lost_site(each: int, *, is_calm: bool = False) -> Site:
    """Return the site.

    Kinds whose transfers break off have only one resource, since some tools wait a minute for each.

    Args:
        each: Number of resources of each kind.
        is_calm: Whether all transfers succeed.
    """
    return _SiteBuilder(each, is_calm=is_calm).site()


class _SiteBuilder:
    def __init__(self, each: int, *, is_calm: bool) -> None:
        self._each = each
        self._is_calm = is_calm
        self._resources: list[Resource] = []
        self._captures: list[StoredCapture] = []
        self._faults: dict[tuple[str, str], TransferFault] = {}
        self._seconds = 0

    def site(self) -> Site:
        pages = [(kind, uri, charset) for kind, uri, charset in self._urls() if kind not in ("picture", "style")]
        files = [uri for kind, uri, _ in self._urls() if kind in ("picture", "style")]
        links = [uri for _, uri, _ in pages] + [f"{HOME}moved-{number}.html" for number in range(self._each)]
        for number, (kind, uri, charset) in enumerate(pages):
            shown = links if uri == HOME else [HOME, links[(number + 1) % len(links)]]
            self._page(kind, uri, charset, self._html(number, uri, shown, files, charset))
        for number, uri in enumerate(files):
            self._file(uri, number)
        for number, (kind, uri, mime) in enumerate(self._requisites()):
            self._requisite(kind, uri, mime, number)
        for number in range(self._each):
            self._add_capture(
                f"{HOME}moved-{number}.html",
                self._next_timestamp(2013),
                b"",
                "text/html",
                301,
                location=f"/plain-{number}.html",
            )
        self._add_capture(f"mailto:crew@{HOST}", self._next_timestamp(2013), b"", "text/html", 200)
        return Site(tuple(self._resources), tuple(self._captures), self._faults)

    def _urls(self) -> list[tuple[str, str, str]]:
        """Return kind, URL and charset of all pages and files."""
        some = range(self._each)
        found = [("parked since", HOME, "utf-8"), ("style", f"{HOME}style.css", "utf-8")]
        for kind, form in {
            "plain page": "plain-{}.html",
            "a 404 since": "crew/gone-{}.html",
            "a redirect to the home page since": "crew/home-{}.html",
            "a soft 404 since": "boats/soft-{}.html",
            "parked since": "boats/parked-{}.html",
            "last capture is a revisit": "boats/same-{}.html",
            "last transfer always breaks off": "log/cut-{}.html",
            "transfer breaks off once": "log/once-{}.html",
            "archive is unavailable once": "log/busy-{}.html",
            "stored gzipped": "log/packed-{}.html",
            "query string": "view.php?id={}&lang=en",
            "file and folder": "docs-{}",
            "below a file": "docs-{}/part.html",
            "letter case": "Tide-{}.html",
            "letter case, the other": "tide-{}.html",
            "long name": "search.php?q=" + "a-long-question-" * (LONG_QUERY_LENGTH // 16) + "{}",
        }.items():
            numbers = range(1) if "breaks off" in kind else some
            found += [(kind, HOME + form.format(number), "utf-8") for number in numbers]
        found += [("legacy charset", f"{HOME}ru/page-{number}.html", "windows-1251") for number in some]
        found += [("picture", f"{HOME}img/boat-{number}.png", "utf-8") for number in range(2 * self._each)]
        return found

    def _requisites(self) -> list[tuple[str, str, str]]:
        """Return kind, URL and type of what pages need from the CDN; some URLs have a version in their query."""
        found = [
            ("CDN: style sheet", f"{_FILES}css/theme.css?v=3", "text/css"),
            ("CDN: script", f"{_FILES}js/menu.js?ver=1.4", "text/javascript"),
            ("CDN: font", f"{_FILES}fonts/sail.woff2", "font/woff2"),
            ("CDN: font", f"{_FILES}fonts/sail.woff?v=2", "font/woff"),
        ]
        for number in range(2 * self._each):
            version = f"?v={number + 1}" if number % 2 else ""
            found.append(("CDN: picture", f"{_FILES}img/flag-{number}.png{version}", "image/png"))
        return found

    def _html(self, number: int, uri: str, links: list[str], files: list[str], charset: str) -> bytes:
        rng = random.Random(number)  # noqa: S311  a bench, not a secret
        sentences = " ".join(
            "The {} {} the {} {}.".format(*(rng.choice(words.split("|")) for words in _WORDS.values()))
            for _ in range(14)
        )
        own = (
            "Морской клуб приглашает всех на борт."
            if charset == "windows-1251"
            else "Harbour sailing club, log of the boats."
        )
        # In turn: absolute path, full URL, relative path.
        hrefs = [_relative_link(uri, link, number + turn) for turn, link in enumerate(links)]
        pictures = [link for link in files if link.endswith(".png")]
        shown = _relative_link(uri, pictures[number % len(pictures)], number)
        scheme = ("http:", "")[number % 2]
        style, script, *flags = [
            scheme + link.removeprefix("http:") for _, link, _ in self._requisites() if "font" not in link
        ]
        text = (
            f"<!doctype html><html><head><title>Harbour sailing club, page {number}</title>"
            f'<link rel="stylesheet" href="{_relative_link(uri, files[0], number + 1)}">'
            f'<link rel="stylesheet" href="{style}"><script src="{script}"></script></head>'
            f"<body><h1>Log {number}</h1><p>{own} {sentences}</p>"
            f'<img src="{shown}" alt="boat">'
            + "".join(
                f'<img src="{flag}" alt="flag">' for flag in (flags if uri == HOME else [flags[number % len(flags)]])
            )
            + "".join(f'<p><a href="{href}">on</a></p>' for href in hrefs)
            + "</body></html>\n"
        )
        return text.encode(charset)

    def _page(self, kind: str, uri: str, charset: str, body: bytes) -> None:
        older = body.replace(b"<h1>Log", b"<h1>Old log")
        mime = "text/html"
        header = (("Content-Type", f"text/html; charset={charset}"),)
        other_bodies = {older: "an older version", body[: len(body) // 2]: "cut off", b"": "empty"}
        self._add_capture(uri, self._next_timestamp(2012), older, mime, 200, headers=header)
        if kind == "last transfer always breaks off" and not self._is_calm:
            # Only the older capture can be downloaded: transfers of the newer one always break off.
            newer, body = body, older
            other_bodies = {newer[: len(newer) // 2]: "cut off", b"": "empty"}
            timestamp = self._next_timestamp(2014)
            self._faults[timestamp, uri] = TransferFault("cut", None)
            self._add_capture(uri, timestamp, newer, mime, 200, headers=header)
        elif kind == "stored gzipped":
            packed = gzip.compress(body, mtime=0)
            other_bodies[packed] = "gzipped"
            self._add_capture(uri, self._next_timestamp(2014), packed, mime, 200, headers=header, coding="gzip")
        else:
            timestamp = self._next_timestamp(2014)
            if self._is_calm:
                pass
            elif kind == "transfer breaks off once":
                self._faults[timestamp, uri] = TransferFault("cut", 1)
            elif kind == "archive is unavailable once":
                self._faults[timestamp, uri] = TransferFault("503", 1)
            self._add_capture(uri, timestamp, body, mime, 200, headers=header)
        self._add_later_captures(kind, uri, body, other_bodies)
        self._resources.append(Resource(uri, kind, mime, body, other_bodies))

    def _add_later_captures(self, kind: str, uri: str, body: bytes, other_bodies: dict[bytes, str]) -> None:
        """Add later captures: errors, redirects, parked pages or revisits."""
        if kind == "a 404 since":
            gone = b"<html><title>404 Not Found</title><h1>Not Found</h1></html>"
            other_bodies[gone] = "an error page"
            self._add_capture(uri, self._next_timestamp(2016), gone, "text/html", 404)
        elif kind == "a redirect to the home page since":
            self._add_capture(uri, self._next_timestamp(2016), b"", "text/html", 302, location="/")
        elif kind == "a soft 404 since":
            other_bodies[_SOFT_404.encode()] = "a soft 404"
            self._add_capture(uri, self._next_timestamp(2016), _SOFT_404.encode(), "text/html", 200)
        elif kind == "parked since":
            parked = _PARKED.format(host=HOST).encode()
            other_bodies[parked] = "a parked page"
            for year in (2017, 2018):
                self._add_capture(uri, self._next_timestamp(year), parked, "text/html", 200)
        elif kind == "last capture is a revisit":
            self._add_capture(uri, self._next_timestamp(2015), body, "warc/revisit", None)

    def _file(self, uri: str, number: int) -> None:
        body = b"body { color: #123 } h1 { background: url(img/boat-0.png) }\n"
        kind, mime = "style sheet", "text/css"
        if uri.endswith(".png"):
            body = b"\x89PNG\r\n\x1a\n" + random.Random(number).randbytes(3_000 + 500 * number)  # noqa: S311
            kind, mime = "picture", "image/png"
        self._add_capture(uri, self._next_timestamp(2013), body, mime, 200)
        self._resources.append(Resource(uri, kind, mime, body, {body[: len(body) // 2]: "cut off"}))

    def _requisite(self, kind: str, uri: str, mime: str, number: int) -> None:
        body = random.Random(f"{CDN} {number}").randbytes(2_000 + 300 * number)  # noqa: S311
        if mime == "text/css":
            body = _THEME
        elif mime == "text/javascript":
            body = b"document.documentElement.className = 'menu'\n"
        elif mime == "image/png":
            body = b"\x89PNG\r\n\x1a\n" + body
        self._add_capture(uri, self._next_timestamp(2013), body, mime, 200)
        self._resources.append(Resource(uri, kind, mime, body, {body[: len(body) // 2]: "cut off"}))

    def _next_timestamp(self, year: int) -> str:
        self._seconds += 1
        return f"{year}0210{self._seconds // 3600:02}{self._seconds // 60 % 60:02}{self._seconds % 60:02}"

    def _add_capture(
        self, uri: str, when: str, body: bytes, mime: str, status: int | None, *,
        location: str | None = None, headers: tuple[tuple[str, str], ...] = (), coding: str | None = None,
    ) -> None:  # fmt: skip
        digest = base64.b32encode(hashlib.sha1(body).digest()).decode()  # noqa: S324  CDX digests are SHA-1
        self._captures.append(StoredCapture(uri, when, body, mime, status, digest, location, headers, coding))


def _relative_link(page: str, link: str, turn: int) -> str:
    """Return a link in one of three forms: absolute path, full URL, relative path."""
    path = link.removeprefix(HOME)
    up = page.partition("?")[0].removeprefix(HOME).count("/")
    spelled = ("/" + path, link, "../" * up + path or "./")[turn % 3]
    return spelled.replace("&", "&amp;")
