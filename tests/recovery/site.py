"""A lost site as data: its resources, their captures in archives, and the links of each capture.

Links are declared in addition to the bytes that contain them, so that the expected outcome needs no parser.
"""

import gzip
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from urllib.parse import urljoin

import brotli

HOST = "lost.example"
ROOT = f"http://{HOST}/"
PAGE, REQUISITE, LIST = "page", "requisite", "list"
GUESS = "guess"


@dataclass(frozen=True, slots=True)
class Ref:
    """A link.

    Attributes:
        name: Name of its target.
        use: page, requisite, list, or guess (named only in a script).
        spelled: Its text in the page, unescaped.
    """

    name: str
    use: str
    spelled: str


@dataclass(frozen=True, slots=True)
class Held:
    """One capture in one archive.

    Attributes:
        date: Its datetime, 14 digits.
        uri: Its URL in the archive's spelling.
        body: Its decoded body; for a revisit, that of its original.
        location: The Location header of a redirect.
        target: Name of the redirect target; None for another site.
        coding: Coding of the stored bytes: gzip, br or chunked.
        revisit_of: URL and date of the original.
        damaged: How the archive's file is damaged: `lost`, the capture cannot be read; `cut`, its bytes differ from
            the listed digest. Empty if intact.
        rejected: The verdict on a soft 404 or parked page; empty for others.
    """

    archive: str
    date: str
    uri: str
    body: bytes
    mime: str = "text/html"
    status: int = 200
    location: str | None = None
    target: str | None = None
    coding: str = ""
    revisit_of: tuple[str, str] | None = None
    damaged: str = ""
    rejected: str = ""
    refs: tuple[Ref, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether it is a good capture: successful, not empty, and not rejected."""
        return self.status == 200 and bool(self.body) and not self.damaged and not self.rejected

    def stored(self) -> bytes:
        """Return the body as stored in the archive's file."""
        if self.coding == "gzip":
            return gzip.compress(self.body, mtime=0)
        if self.coding == "br":
            return bytes(brotli.compress(self.body))
        if self.coding == "chunked":
            pieces = [self.body[begin : begin + 100] for begin in range(0, len(self.body), 100)]
            return b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in pieces) + b"0\r\n\r\n"
        return self.body


@dataclass(frozen=True, slots=True)
class Resource:
    """A page or page requisite.

    Attributes:
        name: Its URL without scheme and `www.`.
        case: What it is an example of.
        also: Further spellings that output may contain.
    """

    name: str
    held: tuple[Held, ...]
    case: str = ""
    also: tuple[str, ...] = ()


@dataclass(slots=True)
class Site:
    """All resources, by name."""

    resources: dict[str, Resource] = field(default_factory=dict)

    def add(self, name: str, *held: Held, case: str = "", also: tuple[str, ...] = ()) -> None:
        """Add a resource. Without captures it is in no archive."""
        if name in self.resources:
            raise AssertionError(f"{name} is a duplicate")
        self.resources[name] = Resource(name, held, case, also)

    def captures(self) -> Iterator[tuple[Resource, Held]]:
        """Yield every capture with its resource."""
        for resource in self.resources.values():
            for held in resource.held:
                yield resource, held

    def names(self) -> dict[str, str]:
        """Return the name by spelling: as in listings and links, with and without `www.`."""
        spellings: dict[str, str] = {}
        for resource in self.resources.values():
            for text in (resource.name, *resource.also, *(held.uri for held in resource.held)):
                spellings[bare(text)] = resource.name
        for _, held in self.captures():
            for ref in held.refs:
                spellings.setdefault(bare(urljoin(held.uri, ref.spelled)), ref.name)
        return spellings


def bare(uri: str) -> str:
    """Return a URL without scheme, `www.`, fragment and final slash, which do not distinguish resources."""
    text = uri.partition("#")[0].removeprefix("http://").removeprefix("https://").removeprefix("www.")
    return text.removesuffix("/")


def a(path: str, spelled: str | None = None) -> Ref:
    """Return a link to a page of the site."""
    return Ref(_name(path), PAGE, spelled or path)


def part(path: str, spelled: str | None = None) -> Ref:
    """Return a link to a page requisite."""
    return Ref(_name(path), REQUISITE, spelled or path)


def sitemap_link(path: str, spelled: str | None = None) -> Ref:
    """Return a link to a sitemap or feed."""
    return Ref(_name(path), LIST, spelled or path)


def guess(path: str, spelled: str | None = None) -> Ref:
    """Return a URL that occurs only in a script."""
    return Ref(_name(path), GUESS, spelled or path)


def _name(path: str) -> str:
    return bare(f"{HOST}{path}" if path.startswith("/") else path)


def html(title: str, *refs: Ref, text: str = "") -> bytes:
    """Return a page with these links."""
    head, lines = [], []
    for ref in refs:
        place = escape(ref.spelled)
        if ref.use == LIST:
            head.append(f'<link rel="alternate" type="application/rss+xml" href="{place}">')
        elif ref.use == PAGE:
            lines.append(f'<p><a href="{place}">{escape(ref.name)}</a></p>')
        elif ref.spelled.endswith(".css"):
            head.append(f'<link rel="stylesheet" href="{place}">')
        elif ref.spelled.endswith(".js"):
            head.append(f'<script src="{place}"></script>')
        else:
            lines.append(f'<img src="{place}" alt="">')
    parts = "\n".join(head), escape(title), text, "\n".join(lines)
    return '<!doctype html>\n<meta charset="utf-8">\n{}\n<title>{}</title>\n{}\n{}\n'.format(*parts).encode()
