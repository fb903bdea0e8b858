"""A made-up lost site, and what an archive holds of it: good captures, and whatever befalls sites and archives.

Each resource is of one kind, which says what is difficult about it, and has one right body: that of its last good
capture. Nothing of it is random, so that all tools, in all runs, have the same to do.
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
"""Another host, which serves page requisites alone."""
LONG = 280
"""Letters in the query of an address that is too long for the name of a file."""

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
_SOFT = (
    "<!doctype html><html><head><title>Page not found</title></head><body><h1>Page not found</h1>"
    "<p>Sorry, the page you are looking for does not exist or has been moved.</p>"
    "<p><a href='/'>Home</a></p></body></html>"
)


@dataclass(frozen=True)
class Resource:
    """Something that was on the site.

    kind: what is difficult about it. right: the body of its last good capture, as a browser gets it.
    wrong: what bodies of other captures are, by the bytes.
    """

    uri: str
    kind: str
    mime: str
    right: bytes
    wrong: dict[bytes, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Trouble:
    """What goes wrong with the transfer of a capture. times: how often; None for ever. what: `cut` or `503`."""

    what: str
    times: int | None


@dataclass(frozen=True)
class Site:
    """The resources, what the archive holds, and which transfers go wrong, by date and address."""

    resources: tuple[Resource, ...]
    stored: tuple[StoredCapture, ...]
    troubles: dict[tuple[str, str], Trouble]

    def __iter__(self) -> Iterator[Resource]:
        """Return the resources."""
        return iter(self.resources)

    @property
    def originals(self) -> list[str]:
        """The addresses of which the archive has good captures, once each."""
        return [resource.uri for resource in self.resources]


def lost_site(each: int, *, is_calm: bool = False) -> Site:
    """Return the site, with so many resources of each kind. is_calm: whether all transfers go well.

    Of what breaks off there is one of each kind, since a tool that waits a minute for each would wait for an hour.
    """
    return _Maker(each, is_calm=is_calm).site()


class _Maker:
    def __init__(self, each: int, *, is_calm: bool) -> None:
        self._each = each
        self._is_calm = is_calm
        self._resources: list[Resource] = []
        self._stored: list[StoredCapture] = []
        self._troubles: dict[tuple[str, str], Trouble] = {}
        self._seconds = 0

    def site(self) -> Site:
        pages = [(kind, uri, charset) for kind, uri, charset in self._addresses() if kind not in ("picture", "style")]
        files = [uri for kind, uri, _ in self._addresses() if kind in ("picture", "style")]
        links = [uri for _, uri, _ in pages] + [f"{HOME}moved-{number}.html" for number in range(self._each)]
        for number, (kind, uri, charset) in enumerate(pages):
            shown = links if uri == HOME else [HOME, links[(number + 1) % len(links)]]
            self._page(kind, uri, charset, self._written(number, uri, shown, files, charset))
        for number, uri in enumerate(files):
            self._file(uri, number)
        for number, (kind, uri, mime) in enumerate(self._requisites()):
            self._requisite(kind, uri, mime, number)
        for number in range(self._each):
            self._keep(
                f"{HOME}moved-{number}.html", self._when(2013), b"", "text/html", 301, location=f"/plain-{number}.html"
            )
        self._keep(f"mailto:crew@{HOST}", self._when(2013), b"", "text/html", 200)
        return Site(tuple(self._resources), tuple(self._stored), self._troubles)

    def _addresses(self) -> list[tuple[str, str, str]]:
        """Return kind, address and charset of everything."""
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
            "long name": "search.php?q=" + "a-long-question-" * (LONG // 16) + "{}",
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

    def _written(self, number: int, uri: str, links: list[str], files: list[str], charset: str) -> bytes:
        rng = random.Random(number)  # noqa: S311  a bench, not a secret
        said = " ".join(
            "The {} {} the {} {}.".format(*(rng.choice(words.split("|")) for words in _WORDS.values()))
            for _ in range(14)
        )
        own = (
            "Морской клуб приглашает всех на борт."
            if charset == "windows-1251"
            else "Harbour sailing club, log of the boats."
        )
        # In turn: as the root has it, in full, and from where the page is.
        places = [_spelled(uri, link, number + turn) for turn, link in enumerate(links)]
        pictures = [link for link in files if link.endswith(".png")]
        shown = _spelled(uri, pictures[number % len(pictures)], number)
        scheme = ("http:", "")[number % 2]
        style, script, *flags = [
            scheme + link.removeprefix("http:") for _, link, _ in self._requisites() if "font" not in link
        ]
        text = (
            f"<!doctype html><html><head><title>Harbour sailing club, page {number}</title>"
            f'<link rel="stylesheet" href="{_spelled(uri, files[0], number + 1)}">'
            f'<link rel="stylesheet" href="{style}"><script src="{script}"></script></head>'
            f"<body><h1>Log {number}</h1><p>{own} {said}</p>"
            f'<img src="{shown}" alt="boat">'
            + "".join(
                f'<img src="{flag}" alt="flag">' for flag in (flags if uri == HOME else [flags[number % len(flags)]])
            )
            + "".join(f'<p><a href="{place}">on</a></p>' for place in places)
            + "</body></html>\n"
        )
        return text.encode(charset)

    def _page(self, kind: str, uri: str, charset: str, body: bytes) -> None:
        older = body.replace(b"<h1>Log", b"<h1>Old log")
        mime = "text/html"
        header = (("Content-Type", f"text/html; charset={charset}"),)
        wrong = {older: "an older version", body[: len(body) // 2]: "cut off", b"": "empty"}
        self._keep(uri, self._when(2012), older, mime, 200, headers=header)
        if kind == "last transfer always breaks off" and not self._is_calm:
            # What can be had is the older one: the newer never comes whole.
            newer, body = body, older
            wrong = {newer[: len(newer) // 2]: "cut off", b"": "empty"}
            moment = self._when(2014)
            self._troubles[moment, uri] = Trouble("cut", None)
            self._keep(uri, moment, newer, mime, 200, headers=header)
        elif kind == "stored gzipped":
            packed = gzip.compress(body, mtime=0)
            wrong[packed] = "gzipped"
            self._keep(uri, self._when(2014), packed, mime, 200, headers=header, coding="gzip")
        else:
            moment = self._when(2014)
            if self._is_calm:
                pass
            elif kind == "transfer breaks off once":
                self._troubles[moment, uri] = Trouble("cut", 1)
            elif kind == "archive is unavailable once":
                self._troubles[moment, uri] = Trouble("503", 1)
            self._keep(uri, moment, body, mime, 200, headers=header)
        self._since(kind, uri, body, wrong)
        self._resources.append(Resource(uri, kind, mime, body, wrong))

    def _since(self, kind: str, uri: str, body: bytes, wrong: dict[bytes, str]) -> None:
        """Add what became of it."""
        if kind == "a 404 since":
            gone = b"<html><title>404 Not Found</title><h1>Not Found</h1></html>"
            wrong[gone] = "an error page"
            self._keep(uri, self._when(2016), gone, "text/html", 404)
        elif kind == "a redirect to the home page since":
            self._keep(uri, self._when(2016), b"", "text/html", 302, location="/")
        elif kind == "a soft 404 since":
            wrong[_SOFT.encode()] = "a soft 404"
            self._keep(uri, self._when(2016), _SOFT.encode(), "text/html", 200)
        elif kind == "parked since":
            parked = _PARKED.format(host=HOST).encode()
            wrong[parked] = "a parked page"
            for year in (2017, 2018):
                self._keep(uri, self._when(year), parked, "text/html", 200)
        elif kind == "last capture is a revisit":
            self._keep(uri, self._when(2015), body, "warc/revisit", None)

    def _file(self, uri: str, number: int) -> None:
        body = b"body { color: #123 } h1 { background: url(img/boat-0.png) }\n"
        kind, mime = "style sheet", "text/css"
        if uri.endswith(".png"):
            body = b"\x89PNG\r\n\x1a\n" + random.Random(number).randbytes(3_000 + 500 * number)  # noqa: S311
            kind, mime = "picture", "image/png"
        self._keep(uri, self._when(2013), body, mime, 200)
        self._resources.append(Resource(uri, kind, mime, body, {body[: len(body) // 2]: "cut off"}))

    def _requisite(self, kind: str, uri: str, mime: str, number: int) -> None:
        body = random.Random(f"{CDN} {number}").randbytes(2_000 + 300 * number)  # noqa: S311
        if mime == "text/css":
            body = _THEME
        elif mime == "text/javascript":
            body = b"document.documentElement.className = 'menu'\n"
        elif mime == "image/png":
            body = b"\x89PNG\r\n\x1a\n" + body
        self._keep(uri, self._when(2013), body, mime, 200)
        self._resources.append(Resource(uri, kind, mime, body, {body[: len(body) // 2]: "cut off"}))

    def _when(self, year: int) -> str:
        self._seconds += 1
        return f"{year}0210{self._seconds // 3600:02}{self._seconds // 60 % 60:02}{self._seconds % 60:02}"

    def _keep(
        self, uri: str, when: str, body: bytes, mime: str, status: int | None, *,
        location: str | None = None, headers: tuple[tuple[str, str], ...] = (), coding: str | None = None,
    ) -> None:  # fmt: skip
        digest = base64.b32encode(hashlib.sha1(body).digest()).decode()  # noqa: S324  as indexes have it
        self._stored.append(StoredCapture(uri, when, body, mime, status, digest, location, headers, coding))


def _spelled(page: str, link: str, turn: int) -> str:
    """Return a link as a page has it, in one of three spellings."""
    path = link.removeprefix(HOME)
    up = page.partition("?")[0].removeprefix(HOME).count("/")
    spelled = ("/" + path, link, "../" * up + path or "./")[turn % 3]
    return spelled.replace("&", "&amp;")
