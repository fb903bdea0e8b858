"""The page to classify: the response, reference pages of its site, the parsed page, and the verdict."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from urllib.parse import SplitResult, urljoin, urlsplit

from unlost.html.links import scan_links
from unlost.html.text import extract_text
from unlost.quality.phrase_matcher import NormalizedLines, PhraseMatches, normalize_text, text_weight

_MAX_TEXT_LENGTH = 20_000  # characters of a reference page

# Bounds on what is parsed, which bound the time for any input.
_MAX_BYTES = 256 << 10  # of a body; error pages are shorter
_MAX_CHARACTERS = 40_000  # of the text
_MAX_LINES = 400
_MAX_SEARCHED_CHARACTERS = 8_000  # of the text, in which phrases are searched
_MAX_HEADINGS = 8
_MAX_SENTENCE_LENGTH = 220  # characters of one or two sentences
_MENTION_SHARE = 0.25  # share of a line below which a phrase is only mentioned
_MAX_PROSE_LENGTH = 1500  # characters; error pages have less prose
_MAX_TEXT_WEIGHT = 8000  # characters, including menus
_MIN_PROSE_LINE = 60  # characters of a line; shorter lines may be menu entries
_TITLE = re.compile(rb"<title[^>]{0,200}>", re.IGNORECASE)
_TITLE_END = re.compile(rb"</title", re.IGNORECASE)
_HEADING = re.compile(rb"<h([1-3])\b[^>]{0,500}>(.{1,600}?)</h\1", re.IGNORECASE | re.DOTALL)
_CHARSET = re.compile(rb"<(?:meta|\?xml)[^>]{0,200}?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
# Separators between page title and site name: hyphens and dashes, bars, dots, angle quotes.
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


class VerdictKind(StrEnum):
    """Why a page with a good status is rejected."""

    SOFT_404 = "soft-404"
    """The page says that it does not exist, or that an error occurred."""
    PARKED = "parked"
    """The domain has no site: it is for sale, full of advertising, or was never filled."""
    HIJACKED = "hijacked"
    """Another party uses the domain for something else."""
    LOGIN_WALL = "login-wall"
    """The page requires a login."""
    CONSENT_WALL = "consent-wall"
    """The page requires consent, an age check or a captcha."""
    ARCHIVE_ERROR = "archive-error"
    """The page is an error page of the archive."""


@dataclass(frozen=True, slots=True)
class PageVerdict:
    """Why a page is rejected.

    Attributes:
        kind: The kind of page.
        reason: Human-readable explanation. It may quote the page, with printable characters only.
    """

    kind: VerdictKind
    reason: str


@dataclass(frozen=True, slots=True)
class PageResponse:
    """A page as it was fetched.

    Attributes:
        uri: The URL.
        datetime: Time of the response, 14 digits.
        status: HTTP status; None if unknown.
        mime: Declared media type, with or without parameters.
        body: The body without content coding.
        headers: The headers.
        charset: Declared charset; None if unknown.
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
    """A page that is known to be good, or the response of a site to a random URL.

    `text` is the beginning of its visible text.
    """

    uri: str
    datetime: str
    text: str


@dataclass(frozen=True, slots=True)
class ClassifierContext:
    """Reference pages of the site. All are optional.

    Attributes:
        earlier: Good pages of an earlier time, at the same URL or at others.
        siblings: Good pages of about the same time, at other URLs.
        home: The response at the root URL at about the same time.
        random_url: The response to a URL that never existed, at about the same time.
    """

    earlier: Sequence[ReferencePage] = ()
    siblings: Sequence[ReferencePage] = ()
    home: ReferencePage | None = None
    random_url: ReferencePage | None = None


def page_identity(uri: str) -> str:
    """Return a URL without scheme, `www`, final slash and case of the host, which rarely tell pages apart.

    >>> page_identity("https://www.A.example/B/")
    'a.example/B'
    """
    host, slash, path = uri.partition("://")[2].partition("/")
    return f"{host.lower().removeprefix('www.')}{slash}{path}".rstrip("/")


def make_reference_page(page: PageResponse) -> ReferencePage:
    """Return a page as a reference page for others of its site."""
    extracted = extract_text(page.body, page.mime, page.uri, page.charset)
    return ReferencePage(page.uri, page.datetime, "" if extracted is None else extracted.text[:_MAX_TEXT_LENGTH])


@dataclass
class ParsedPage:
    """A page, parsed on demand. Lines are normalized by `phrase_matcher.normalize_text`, with a space at both ends."""

    response: PageResponse
    context: ClassifierContext

    @cached_property
    def body(self) -> bytes:
        """The part of the body that is parsed."""
        return self.response.body[:_MAX_BYTES]

    @cached_property
    def lowercase_body(self) -> bytes:
        """`body` in lower case."""
        return self.body.lower()

    @cached_property
    def uri(self) -> SplitResult:
        """The components of the URL; empty for an invalid URL."""
        return _split_url(self.response.uri)

    @cached_property
    def is_root(self) -> bool:
        """Whether the URL is the root of the site."""
        names = ("", "/", "/index.html", "/index.htm", "/index.php", "/default.htm", "/default.asp", "/index.asp")
        return self.uri.path.lower() in names and not self.uri.query

    @cached_property
    def charset(self) -> str | None:
        """The declared charset, from the response or the document."""
        if self.response.charset is not None:
            return self.response.charset
        found = _CHARSET.search(self.body, 0, 4096)
        return found[1].decode("ascii", "replace") if found else None

    @cached_property
    def text(self) -> str:
        """The visible text."""
        extracted = extract_text(self.body, self.response.mime, self.response.uri, self.response.charset)
        text = "" if extracted is None else extracted.text[:_MAX_CHARACTERS]
        if extracted is None or len(text) > _NEARLY_EMPTY:
            return text
        # The page is nearly empty without scripts: add its fallback content and alternative texts.
        fallbacks = [
            next(filter(None, match.groups()), b"") for match in _FALLBACK_CONTENT.finditer(self.body, 0, 64 << 10)
        ]
        return text + "\n" + self._text_of(b"".join(b"<p>" + each for each in fallbacks[:20]))

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
        read = extract_text(markup, "text/html", self.response.uri, self.charset)
        return "" if read is None else read.text

    @cached_property
    def title_parts(self) -> NormalizedLines:
        """The parts of the title, such as page title and site name."""
        return _normalize_lines(part for part in _TITLE_SEPARATOR.split(self.title) if part)

    @cached_property
    def heading_parts(self) -> NormalizedLines:
        """The headings and their parts."""
        return _normalize_lines(
            part for heading in self.headings for part in (heading, *_TITLE_SEPARATOR.split(heading)) if part
        )

    @cached_property
    def raw_lines(self) -> list[str]:
        """The lines of the text."""
        return [line for line in self.text.splitlines()[: 2 * _MAX_LINES] if line.strip()][:_MAX_LINES]

    @cached_property
    def own_lines(self) -> list[str]:
        """The lines that no reference page has: the text without the site's navigation, as far as it is known."""
        frame: set[str] = set()
        pages = (*self.context.siblings, *self.context.earlier, self.context.home, self.context.random_url)
        for known in pages:
            if known is not None and page_identity(known.uri) != page_identity(self.response.uri):
                frame.update(line.strip() for line in known.text.splitlines())
        return [line for line in self.raw_lines if line.strip() not in frame]

    @cached_property
    def lines(self) -> NormalizedLines:
        """The first of `own_lines`, normalized, with the same indices."""
        return _normalize_aligned(self.own_lines)

    @cached_property
    def title_and_headings(self) -> NormalizedLines:
        """The parts of title and headings."""
        return NormalizedLines((*self.title_parts, *self.heading_parts))

    @cached_property
    def text_length(self) -> int:
        """Length of the text; see `phrase_matcher.text_weight`."""
        return text_weight(self.text)

    @cached_property
    def line_weights(self) -> list[int]:
        """Lengths of `own_lines`; 0 for lines that are as short as menu entries."""
        return [found if (found := text_weight(line)) >= _MIN_PROSE_LINE else 0 for line in self.own_lines]

    @cached_property
    def prose_length(self) -> int:
        """Length of the prose: those of `own_lines` that are longer than menu entries."""
        return sum(self.line_weights)

    def prose_length_without(self, *matches: PhraseMatches) -> int:
        """Return the length of the prose without the lines that contain phrases.

        A long line that only mentions a phrase counts as prose.
        """
        excluded: set[int] = set()
        for match in matches:
            excluded.update(
                line
                for line, share in match.shares.items()
                if self.line_weights[line] <= _MAX_SENTENCE_LENGTH or share >= _MENTION_SHARE
            )
        return self.prose_length - sum(self.line_weights[line] for line in excluded)

    @cached_property
    def is_long(self) -> bool:
        """Whether the page is too long for an error page, so that phrases do not count."""
        return self.text_length > _MAX_TEXT_WEIGHT or self.prose_length > _MAX_PROSE_LENGTH

    @cached_property
    def has_password_field(self) -> bool:
        """Whether the page has a password field."""
        return b"password" in self.lowercase_body and _PASSWORD.search(self.body) is not None

    @cached_property
    def redirect_target(self) -> SplitResult | None:
        """The URL that the page redirects to by a refresh or a script; None if it does not redirect."""
        redirect = _REFRESH.search(self.body) if b"refresh" in self.lowercase_body else None
        if redirect is None and len(self.body) < 4096 and b"location" in self.lowercase_body:
            redirect = _LOCATION_SCRIPT.search(self.body)
        if redirect is None:
            return None
        try:
            target: str = redirect[1].decode("ascii", "replace")
            return urlsplit(urljoin(self.response.uri, target))
        except ValueError:  # an invalid URL
            return None

    @cached_property
    def links(self) -> list[SplitResult]:
        """The URLs of the first 1,000 links."""
        links = scan_links(self.body, self.response.mime, self.response.uri, self.response.charset).links[:1000]
        return [_split_url(link.uri) for link in links]

    def header(self, name: str) -> str:
        """Return the value of a header; empty if it is missing."""
        return next((value for key, value in self.response.headers if key.lower() == name), "")


def quote_text(text: str) -> str:
    """Quote a text of a page for a message: one short line of printable characters."""
    short = " ".join(text.split())
    short = short if len(short) <= 60 else short[:60] + "…"
    return '"' + "".join(char if char.isprintable() else "?" for char in short) + '"'


def _normalize_lines(lines: Iterable[str], limit: int = 4000) -> NormalizedLines:
    joined = "\n".join(line.replace("\n", " ") for line in lines)[:limit]
    return NormalizedLines(f" {line.strip()} " for line in normalize_text(joined).split("\n") if line.strip())


def _normalize_aligned(lines: list[str]) -> NormalizedLines:
    """Normalize the first lines; line n of the result is line n of the input."""
    count, remaining = 0, _MAX_SEARCHED_CHARACTERS
    for line in lines:
        remaining -= len(line)
        if remaining < 0:
            break
        count += 1
    normalized = (
        normalize_text("\n".join(" ".join(line.split()) for line in lines[:count])).split("\n") if count else []
    )
    return NormalizedLines(f" {line.strip()} " for line in normalized)


def _split_url(uri: str) -> SplitResult:
    try:
        return urlsplit(uri)
    except ValueError:
        return SplitResult("", "", "", "", "")
