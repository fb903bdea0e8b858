"""A page to be classified: the response, reference pages of its site, the parsed page, and the verdict."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from urllib.parse import SplitResult, urljoin, urlsplit

from unlost.html.links import scan_links
from unlost.html.text import extract_text
from unlost.quality.phrase_matcher import NormalizedLines, PhraseMatches, normalize_text, text_weight


class VerdictKind(StrEnum):
    """Why a page that came with a good status is none."""

    SOFT_404 = "soft-404"
    """The site has no such page, or had an accident, and says so in words only."""
    PARKED = "parked"
    """The domain has no site: it is for sale, full of advertising, or was never filled."""
    HIJACKED = "hijacked"
    """Somebody else has the domain, and uses its good name for something else."""
    LOGIN_WALL = "login-wall"
    """The page is only for those whom the site knows."""
    CONSENT_WALL = "consent-wall"
    """Something is to be agreed to, or proved, before the page is shown."""
    ARCHIVE_ERROR = "archive-error"
    """It is the archive that speaks, not the site."""


@dataclass(frozen=True, slots=True)
class PageVerdict:
    """Why a page is rejected.

    reason: what was found, in words, for people; it may quote the page, with nothing in it but printable characters.
    """

    kind: VerdictKind
    reason: str


_MAX_TEXT_LENGTH = 20_000  # characters of a known page: as much as is ever compared


@dataclass(frozen=True, slots=True)
class PageResponse:
    """What a site, or an archive, answered.

    uri: the address that was asked for. datetime: when it was captured, 14 digits, UTC.
    status: None if it is not known. mime: as it was told, with or without parameters. body: without codings.
    headers: as they came; only some are looked at. charset: as it was told; None if it was not.
    """

    uri: str
    datetime: str
    status: int | None
    mime: str | None
    body: bytes
    headers: Sequence[tuple[str, str]] = ()
    charset: str | None = None


@dataclass(frozen=True, slots=True)
class ReferencePage:
    """A page that is known to be good, or what a site answers for addresses that never were.

    text: without markup, a bounded part of it.
    """

    uri: str
    datetime: str
    text: str


@dataclass(frozen=True, slots=True)
class ClassifierContext:
    """What is known of the site of a page. All of it may be missing.

    earlier: good pages from before, at the same or another address.
    others: good pages of about the same time, at other addresses.
    home: what the root of the site answers at about the same time.
    random: what the site answers at about the same time where nothing ever was.
    """

    earlier: Sequence[ReferencePage] = ()
    siblings: Sequence[ReferencePage] = ()
    home: ReferencePage | None = None
    random_url: ReferencePage | None = None


def page_identity(uri: str) -> str:
    """Return an address without what never tells two pages apart: scheme, `www`, a final slash, letter case of hosts.

    >>> page_identity("https://www.A.example/B/")
    'a.example/B'
    """
    host, slash, path = uri.partition("://")[2].partition("/")
    return f"{host.lower().removeprefix('www.')}{slash}{path}".rstrip("/")


def make_reference_page(page: PageResponse) -> ReferencePage:
    """Return what of a page is worth to be known when others are judged."""
    read = extract_text(page.body, page.mime, page.uri, page.charset)
    return ReferencePage(page.uri, page.datetime, "" if read is None else read.text[:_MAX_TEXT_LENGTH])


_MAX_BYTES = 256 << 10  # bytes of a body: whoever has that much to say is no error page
_MAX_CHARACTERS = 40_000  # of its text
_MAX_LINES = 400
_MAX_SEARCHED_CHARACTERS = 8_000  # characters of its text in which phrases are looked for
_MAX_HEADINGS = 8
_MAX_SENTENCE_LENGTH = 220  # letters of a sentence or two
_MENTION_SHARE = 0.25  # of a line
_MAX_PROSE_LENGTH = 1500  # letters that are more than an error page has, with all its excuses
_MAX_TEXT_WEIGHT = 8000  # letters, with menus
_MIN_PROSE_LINE = 60  # letters of a line that is more than an entry of a menu
_TITLE = re.compile(rb"<title[^>]{0,200}>", re.IGNORECASE)
_TITLE_END = re.compile(rb"</title", re.IGNORECASE)
_HEADING = re.compile(rb"<h([1-3])\b[^>]{0,500}>(.{1,600}?)</h\1", re.IGNORECASE | re.DOTALL)
_CHARSET = re.compile(rb"<(?:meta|\?xml)[^>]{0,200}?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
# What parts the title of a page from the name of its site: hyphens of all lengths, bars, dots, angles.
_TITLE_SEPARATOR = re.compile(
    "\\s+[|\u2022\u00b7\u2013\u2014\u00bb\u00ab\u203a\u2039:/~-]+\\s+|\\s*[|\u00bb\u00ab\u2022\uff5c]+\\s*|:\\s+|(?<=[.!?])\\s+|"
    "\\s+[-\u2013\u2014]|[-\u2013\u2014]\\s+"
)
_NEARLY_EMPTY = 80  # characters
_FALLBACK_CONTENT = re.compile(
    rb"<noscript[^>]{0,200}>(.{1,2000}?)</noscript|<iframe[^>]{0,500}>(.{1,500}?)</iframe|\balt\s*=\s*\"([^\">]{3,300})\"",
    re.IGNORECASE | re.DOTALL,
)
_PASSWORD = re.compile(rb"<input[^>]{0,300}type\s*=\s*[\"']?password", re.IGNORECASE)
_REFRESH = re.compile(
    rb"<meta[^>]{0,100}http-equiv\s*=\s*[\"']?refresh[^>]{0,100}?url\s*=\s*[\"']?([^\"'>\s]{1,2000})", re.IGNORECASE
)
_LOCATION_SCRIPT = re.compile(rb"location(?:\.href|\.replace)?\s*(?:=|\()\s*[\"']([^\"']{1,2000})[\"']", re.IGNORECASE)


@dataclass
class ParsedPage:
    """A page that is looked at. Lines are normal, with a space at both ends; see `wording.normal`."""

    page: PageResponse
    context: ClassifierContext

    @cached_property
    def body(self) -> bytes:
        """The part of the body that is looked at."""
        return self.page.body[:_MAX_BYTES]

    @cached_property
    def lowercase_body(self) -> bytes:
        """The same in lower case."""
        return self.body.lower()

    @cached_property
    def uri(self) -> SplitResult:
        """The address, in parts; an impossible one has none."""
        return _split_url(self.page.uri)

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
        read = extract_text(self.body, self.page.mime, self.page.uri, self.page.charset)
        found = "" if read is None else read.text[:_MAX_CHARACTERS]
        if read is None or len(found) > _NEARLY_EMPTY:
            return found
        # Whoever has no scripts, or no images, is told something else.
        hidden = [
            next(filter(None, match.groups()), b"") for match in _FALLBACK_CONTENT.finditer(self.body, 0, 64 << 10)
        ]
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
            match[2] for match, _ in zip(_HEADING.finditer(self.body, 0, 64 << 10), range(_MAX_HEADINGS), strict=False)
        ]
        return [line for line in self._text_of(b"".join(b"<p>" + each for each in found)).splitlines() if line.strip()]

    def _text_of(self, markup: bytes) -> str:
        read = extract_text(markup, "text/html", self.page.uri, self.charset)
        return "" if read is None else read.text

    @cached_property
    def title_parts(self) -> NormalizedLines:
        """The parts of the title: that of the page, the name of the site."""
        return _normalize_lines(part for part in _TITLE_SEPARATOR.split(self.title) if part)

    @cached_property
    def heading_parts(self) -> NormalizedLines:
        """The headings, and their sentences."""
        return _normalize_lines(
            part for heading in self.headings for part in (heading, *_TITLE_SEPARATOR.split(heading)) if part
        )

    @cached_property
    def raw_lines(self) -> list[str]:
        """The lines of the text."""
        return [line for line in self.text.splitlines()[: 2 * _MAX_LINES] if line.strip()][:_MAX_LINES]

    @cached_property
    def own_lines(self) -> list[str]:
        """The lines that other pages of the site have not: without its frame, as far as that is known."""
        frame: set[str] = set()
        pages = (*self.context.siblings, *self.context.earlier, self.context.home, self.context.random_url)
        for known in pages:
            if known is not None and page_identity(known.uri) != page_identity(self.page.uri):
                frame.update(line.strip() for line in known.text.splitlines())
        return [line for line in self.raw_lines if line.strip() not in frame]

    @cached_property
    def lines(self) -> NormalizedLines:
        """The page's own lines, normal, as many as are looked at: those of `own`, one for one."""
        return _normalize_aligned(self.own_lines)

    @cached_property
    def title_and_headings(self) -> NormalizedLines:
        """The parts of its title and headings."""
        return NormalizedLines((*self.title_parts, *self.heading_parts))

    @cached_property
    def text_length(self) -> int:
        """How much the page says, in letters: see `wording.weight`."""
        return text_weight(self.text)

    @cached_property
    def line_weights(self) -> list[int]:
        """How much each of the own lines says; nothing if it is no more than an entry of a menu."""
        return [found if (found := text_weight(line)) >= _MIN_PROSE_LINE else 0 for line in self.own_lines]

    @cached_property
    def prose_length(self) -> int:
        """How much of it is its own and more than menus."""
        return sum(self.line_weights)

    def prose_length_without(self, *founds: PhraseMatches) -> int:
        """Return how much is its own and more than menus, but for lines that phrases were found in.

        A long line that only mentions one counts.
        """
        left_out: set[int] = set()
        for found in founds:
            left_out.update(
                line
                for line, share in found.shares.items()
                if self.line_weights[line] <= _MAX_SENTENCE_LENGTH or share >= _MENTION_SHARE
            )
        return self.prose_length - sum(self.line_weights[line] for line in left_out)

    @cached_property
    def is_long(self) -> bool:
        """Whether it has so much to say that no phrase in it counts."""
        return self.text_length > _MAX_TEXT_WEIGHT or self.prose_length > _MAX_PROSE_LENGTH

    @cached_property
    def has_password_field(self) -> bool:
        """Whether it asks for a password."""
        return b"password" in self.lowercase_body and _PASSWORD.search(self.body) is not None

    @cached_property
    def redirect_target(self) -> SplitResult | None:
        """The address that it leads on to by itself; None if it does not, or to nowhere."""
        found = _REFRESH.search(self.body) if b"refresh" in self.lowercase_body else None
        if found is None and len(self.body) < 4096 and b"location" in self.lowercase_body:
            found = _LOCATION_SCRIPT.search(self.body)
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
        found = scan_links(self.body, self.page.mime, self.page.uri, self.page.charset).links[:1000]
        return [_split_url(link.uri) for link in found]

    def header(self, name: str) -> str:
        """Return the value of a header; the empty text if there is none."""
        return next((value for key, value in self.page.headers if key.lower() == name), "")


def quote_text(text: str) -> str:
    """Return what a page says so that it can be shown: one short line."""
    short = " ".join(text.split())
    short = short if len(short) <= 60 else short[:60] + "…"
    return '"' + "".join(char if char.isprintable() else "?" for char in short) + '"'


def _normalize_lines(lines: Iterable[str], limit: int = 4000) -> NormalizedLines:
    joined = "\n".join(line.replace("\n", " ") for line in lines)[:limit]
    return NormalizedLines(f" {line.strip()} " for line in normalize_text(joined).split("\n") if line.strip())


def _normalize_aligned(lines: list[str]) -> NormalizedLines:
    """Return the first lines, normal, one for one."""
    taken, left = 0, _MAX_SEARCHED_CHARACTERS
    for line in lines:
        left -= len(line)
        if left < 0:
            break
        taken += 1
    plain = normalize_text("\n".join(" ".join(line.split()) for line in lines[:taken])).split("\n") if taken else []
    return NormalizedLines(f" {line.strip()} " for line in plain)


def _split_url(uri: str) -> SplitResult:
    try:
        return urlsplit(uri)
    except ValueError:
        return SplitResult("", "", "", "", "")
