"""A lost site as data: its resources, the captures that archives hold of each, the links in each capture.

Links are declared beside the bytes that they stand in, so that what follows from them needs nobody who reads pages.
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

    name: of what it leads to; use: page, requisite, list, or guess, which only a script names;
    spelled: as it stands in the page, unescaped.
    """

    name: str
    use: str
    spelled: str


@dataclass(frozen=True, slots=True)
class Held:
    """One capture in one archive.

    date: 14 digits. uri: as the archive spells it. body: as it is read, without codings; of a revisit, that of the
    capture that it refers to.
    location: of a redirect, as the header says it; target: the name of what it leads to, None if it is another site.
    coding: what the stored bytes are in: gzip, br or chunked; revisit_of: the address and date of the original.
    damaged: how the archive's own file of it is damaged: `lost`, it can never give it; `cut`, it gives other bytes
        than it lists, and does not say so. Empty if it is not.
    rejected: the verdict on a page that says itself that it is none; empty if it does not.
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
        """Whether it is what was wanted: a page that is there, not empty, and does not say that it is another."""
        return self.status == 200 and bool(self.body) and not self.damaged and not self.rejected

    def stored(self) -> bytes:
        """Return the body as it is in the archive's file."""
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
    """A page or a part of one.

    name: its identity, without scheme and `www.`. case: what it is an example of.
    also: further spellings under which an answer may speak of it.
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
        """Add a resource. What has no captures is archived nowhere."""
        if name in self.resources:
            raise AssertionError(f"{name} is there twice")
        self.resources[name] = Resource(name, held, case, also)

    def captures(self) -> Iterator[tuple[Resource, Held]]:
        """Yield every capture with its resource."""
        for resource in self.resources.values():
            for held in resource.held:
                yield resource, held

    def names(self) -> dict[str, str]:
        """Return the name for every spelling that stands anywhere: in lists, in links, with and without `www.`."""
        spellings: dict[str, str] = {}
        for resource in self.resources.values():
            for text in (resource.name, *resource.also, *(held.uri for held in resource.held)):
                spellings[bare(text)] = resource.name
        for _, held in self.captures():
            for ref in held.refs:
                spellings.setdefault(bare(urljoin(held.uri, ref.spelled)), ref.name)
        return spellings


def bare(uri: str) -> str:
    """Return an address without scheme, `www.`, fragment and final slash: what never tells two resources apart."""
    text = uri.partition("#")[0].removeprefix("http://").removeprefix("https://").removeprefix("www.")
    return text.removesuffix("/")


def a(path: str, spelled: str | None = None) -> Ref:
    """Return a link to a page of the site."""
    return Ref(_name(path), PAGE, spelled or path)


def part(path: str, spelled: str | None = None) -> Ref:
    """Return a link to something that a page is shown with."""
    return Ref(_name(path), REQUISITE, spelled or path)


def listing(path: str, spelled: str | None = None) -> Ref:
    """Return a link to a list of pages."""
    return Ref(_name(path), LIST, spelled or path)


def guess(path: str, spelled: str | None = None) -> Ref:
    """Return an address that stands in a script, and nowhere else."""
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
