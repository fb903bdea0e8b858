"""A page as it is judged: its title, headings and lines, and what of them is its own."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import SplitResult, urljoin, urlsplit

from unlost.pages.links import find_links
from unlost.pages.text import text_of
from unlost.pages.verdicts.answer import Answer, Context, place_of
from unlost.pages.verdicts.wording import Found, Lines, normal, weight

_READ = 256 << 10  # bytes of a body: whoever has that much to say is no error page
_CHARACTERS = 40_000  # of its text
_LINES = 400
_LOOKED_AT = 8_000  # characters of its text in which phrases are looked for
_HEADINGS = 8
_SENTENCE = 220  # letters of a sentence or two
_MENTION = 0.25  # of a line
_LONG_PROSE = 1500  # letters that are more than an error page has, with all its excuses
_LONG = 8000  # letters, with menus
_PROSE = 60  # letters of a line that is more than an entry of a menu
_TITLE = re.compile(rb"<title[^>]{0,200}>", re.IGNORECASE)
_TITLE_END = re.compile(rb"</title", re.IGNORECASE)
_HEADING = re.compile(rb"<h([1-3])\b[^>]{0,500}>(.{1,600}?)</h\1", re.IGNORECASE | re.DOTALL)
_CHARSET = re.compile(rb"<(?:meta|\?xml)[^>]{0,200}?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
# What parts the title of a page from the name of its site: hyphens of all lengths, bars, dots, angles.
_APART = re.compile(
    "\\s+[|\u2022\u00b7\u2013\u2014\u00bb\u00ab\u203a\u2039:/~-]+\\s+|\\s*[|\u00bb\u00ab\u2022\uff5c]+\\s*|:\\s+|(?<=[.!?])\\s+|"
    "\\s+[-\u2013\u2014]|[-\u2013\u2014]\\s+"
)
_ALMOST_NOTHING = 80  # characters
_INSTEAD = re.compile(
    rb"<noscript[^>]{0,200}>(.{1,2000}?)</noscript|<iframe[^>]{0,500}>(.{1,500}?)</iframe|\balt\s*=\s*\"([^\">]{3,300})\"",
    re.IGNORECASE | re.DOTALL,
)
_PASSWORD = re.compile(rb"<input[^>]{0,300}type\s*=\s*[\"']?password", re.IGNORECASE)
_REFRESH = re.compile(
    rb"<meta[^>]{0,100}http-equiv\s*=\s*[\"']?refresh[^>]{0,100}?url\s*=\s*[\"']?([^\"'>\s]{1,2000})", re.IGNORECASE
)
_MOVED = re.compile(rb"location(?:\.href|\.replace)?\s*(?:=|\()\s*[\"']([^\"']{1,2000})[\"']", re.IGNORECASE)


@dataclass
class Seen:
    """A page that is looked at. Lines are normal, with a space at both ends; see `wording.normal`."""

    page: Answer
    context: Context

    @cached_property
    def body(self) -> bytes:
        """The part of the body that is looked at."""
        return self.page.body[:_READ]

    @cached_property
    def lower(self) -> bytes:
        """The same in lower case."""
        return self.body.lower()

    @cached_property
    def uri(self) -> SplitResult:
        """The address, in parts; an impossible one has none."""
        return _split(self.page.uri)

    @cached_property
    def is_root(self) -> bool:
        """Whether it is at the root of its site."""
        names = ("", "/", "/index.html", "/index.htm", "/index.php", "/default.htm", "/default.asp", "/index.asp")
        return self.uri.path.lower() in names and not self.uri.query

    @cached_property
    def charset(self) -> str | None:
        """What the page is said to be written in."""
        if self.page.charset is not None:
            return self.page.charset
        found = _CHARSET.search(self.body, 0, 4096)
        return found[1].decode("ascii", "replace") if found else None

    @cached_property
    def text(self) -> str:
        """What a reader sees."""
        read = text_of(self.body, self.page.mime, self.page.uri, self.page.charset)
        found = "" if read is None else read.text[:_CHARACTERS]
        if read is None or len(found) > _ALMOST_NOTHING:
            return found
        # Whoever has no scripts, or no images, is told something else.
        hidden = [next(filter(None, match.groups()), b"") for match in _INSTEAD.finditer(self.body, 0, 64 << 10)]
        return found + "\n" + self._text_of(b"".join(b"<p>" + each for each in hidden[:20]))

    @cached_property
    def title(self) -> str:
        """The title."""
        start = _TITLE.search(self.body, 0, 32 << 10)
        if start is None:
            return ""
        end = _TITLE_END.search(self.body, start.end(), start.end() + 4096)
        return "" if end is None else self._text_of(b"<p>" + self.body[start.end() : end.start()])

    @cached_property
    def headings(self) -> list[str]:
        """The first headings."""
        found = [
            match[2] for match, _ in zip(_HEADING.finditer(self.body, 0, 64 << 10), range(_HEADINGS), strict=False)
        ]
        return [line for line in self._text_of(b"".join(b"<p>" + each for each in found)).splitlines() if line.strip()]

    def _text_of(self, markup: bytes) -> str:
        read = text_of(markup, "text/html", self.page.uri, self.charset)
        return "" if read is None else read.text

    @cached_property
    def title_parts(self) -> Lines:
        """The parts of the title: that of the page, the name of the site."""
        return _lines_of(part for part in _APART.split(self.title) if part)

    @cached_property
    def heading_parts(self) -> Lines:
        """The headings, and their sentences."""
        return _lines_of(part for heading in self.headings for part in (heading, *_APART.split(heading)) if part)

    @cached_property
    def raw_lines(self) -> list[str]:
        """The lines of the text."""
        return [line for line in self.text.splitlines()[: 2 * _LINES] if line.strip()][:_LINES]

    @cached_property
    def own(self) -> list[str]:
        """The lines that other pages of the site have not: without its frame, as far as that is known."""
        frame: set[str] = set()
        pages = (*self.context.others, *self.context.earlier, self.context.home, self.context.random)
        for known in pages:
            if known is not None and place_of(known.uri) != place_of(self.page.uri):
                frame.update(line.strip() for line in known.text.splitlines())
        return [line for line in self.raw_lines if line.strip() not in frame]

    @cached_property
    def lines(self) -> Lines:
        """The page's own lines, normal, as many as are looked at: those of `own`, one for one."""
        return _aligned(self.own)

    @cached_property
    def tops(self) -> Lines:
        """The parts of its title and headings."""
        return Lines((*self.title_parts, *self.heading_parts))

    @cached_property
    def size(self) -> int:
        """How much the page says, in letters: see `wording.weight`."""
        return weight(self.text)

    @cached_property
    def weights(self) -> list[int]:
        """How much each of the own lines says; nothing if it is no more than an entry of a menu."""
        return [found if (found := weight(line)) >= _PROSE else 0 for line in self.own]

    @cached_property
    def prose(self) -> int:
        """How much of it is its own and more than menus."""
        return sum(self.weights)

    def prose_but(self, *founds: Found) -> int:
        """Return how much is its own and more than menus, but for lines that phrases were found in.

        A long line that only mentions one counts.
        """
        left_out: set[int] = set()
        for found in founds:
            left_out.update(
                line for line, share in found.shares.items() if self.weights[line] <= _SENTENCE or share >= _MENTION
            )
        return self.prose - sum(self.weights[line] for line in left_out)

    @cached_property
    def is_long(self) -> bool:
        """Whether it has so much to say that no phrase in it counts."""
        return self.size > _LONG or self.prose > _LONG_PROSE

    @cached_property
    def has_password(self) -> bool:
        """Whether it asks for a password."""
        return b"password" in self.lower and _PASSWORD.search(self.body) is not None

    @cached_property
    def leads_to(self) -> SplitResult | None:
        """The address that it leads on to by itself; None if it does not, or to nowhere."""
        found = _REFRESH.search(self.body) if b"refresh" in self.lower else None
        if found is None and len(self.body) < 4096 and b"location" in self.lower:
            found = _MOVED.search(self.body)
        if found is None:
            return None
        try:
            target: str = found[1].decode("ascii", "replace")
            return urlsplit(urljoin(self.page.uri, target))
        except ValueError:  # an impossible address
            return None

    @cached_property
    def links(self) -> list[SplitResult]:
        """Where its links lead."""
        found = find_links(self.body, self.page.mime, self.page.uri, self.page.charset).links[:1000]
        return [_split(link.uri) for link in found]

    def header(self, name: str) -> str:
        """Return the value of a header; the empty text if there is none."""
        return next((value for key, value in self.page.headers if key.lower() == name), "")


def quoted(text: str) -> str:
    """Return what a page says so that it can be shown: one short line."""
    short = " ".join(text.split())
    short = short if len(short) <= 60 else short[:60] + "…"
    return '"' + "".join(char if char.isprintable() else "?" for char in short) + '"'


def _lines_of(lines: Iterable[str], limit: int = 4000) -> Lines:
    joined = "\n".join(line.replace("\n", " ") for line in lines)[:limit]
    return Lines(f" {line.strip()} " for line in normal(joined).split("\n") if line.strip())


def _aligned(lines: list[str]) -> Lines:
    """Return the first lines, normal, one for one."""
    taken, left = 0, _LOOKED_AT
    for line in lines:
        left -= len(line)
        if left < 0:
            break
        taken += 1
    plain = normal("\n".join(" ".join(line.split()) for line in lines[:taken])).split("\n") if taken else []
    return Lines(f" {line.strip()} " for line in plain)


def _split(uri: str) -> SplitResult:
    try:
        return urlsplit(uri)
    except ValueError:
        return SplitResult("", "", "", "", "")
