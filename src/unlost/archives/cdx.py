"""CDX server queries and rows: the query URL, JSON rows read one at a time, and captures without duplicates.

The parameters and fields are those of the Wayback CDX server; pywb names some fields differently.
"""

import json
import re
from collections.abc import AsyncIterator, Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import BinaryIO, Self
from urllib.parse import quote, urlsplit

from unlost.archives.memento_urls import memento_url
from unlost.capture import Capture
from unlost.errors import FailedError, ListCutError, UnsupportedError, UriError
from unlost.http.models import HttpRequest
from unlost.index.cdx import NO_VALUE, IndexRow, RowError
from unlost.problems import Problem, Problems
from unlost.registry.models import Archive, RequestKind
from unlost.uri import keys
from unlost.uri.normalize import normalize_input_url

_DOMAIN_PREFIX = "*."

REMEMBERED_ROWS = 1 << 17
"""Number of distinct rows that are remembered to drop duplicates, which are close to each other. The largest page of a
Wayback CDX server has 150,000 rows."""
MAX_RESPONSE_BYTES = 1 << 29
"""Largest page of rows in bytes, decoded; it is stored on disk. 150,000 rows with very long URLs need a tenth of it."""
ROWS_PER_YIELD = 256
"""Number of rows after which other tasks may run."""
MAX_ROW_BYTES = 8 << 20
"""Longer rows are skipped. A row has a URL of at most 2 MiB (`unlost.uri.MAX_URI_BYTES`), and its key."""
MAX_BAD_ROWS = 10_000
"""Number of invalid rows after which the rest is not read, because it is not a CDX listing."""
MAX_LEADING_BAD_ROWS = 10_000
"""Number of rows after which a listing fails if none of them was readable."""
ROW_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
"""Decodes a row. Numbers become text, however large they are."""
ROW_PROBLEM_KINDS = {
    "bad-field-count": "a row with other fields than the list says",
    "bad-json": "a row that is no array, or no object, of texts",
    "bad-date": "a row whose date is none",
    "bad-number": "a row whose length is no number",
    "bad-address": "a row with an address that is none",
    "too-long": "a row longer than `json_rows.MAX_ROW_BYTES`",
    "foreign-scheme": "a row of something that is no web page: `mailto:`, `data:`, `dns:`",
    "elsewhere": "a row of a page that was not asked for",
    "other-date": "a row of a date that was not asked for",
    "fuzzy": "a row of a similar page, which the archive would show instead",
}
"""The kinds of rows that are skipped, and why. They are counted in the `problems` of a client."""
_READABLE_KINDS = {"foreign-scheme", "elsewhere", "other-date", "fuzzy"}
# Field names of the Wayback CDX server that differ from those of pywb and `unlost.index.cdx`.
_FIELD_NAMES = {"original": "url", "mimetype": "mime", "statuscode": "status"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_CHUNK_BYTES = 1 << 16
# A string cannot contain a line break, so a stray quote costs only its row if each row is on a line of its own.
_OPEN_STRING = rb'"(?:[^"\\\r\n]++|\\[^\r\n])*+'
_FLAT = re.compile(rb'\[(?:[^\[\]{}"]++|' + _OPEN_STRING + rb'")*+')
_TOKEN = re.compile(rb'[^\[\]{}"]++|' + _OPEN_STRING + rb'"|([\[{]++)|([\]}])')
_STRING = re.compile(_OPEN_STRING)
_BETWEEN = re.compile(rb"[\s,]*+")
_JUNK = re.compile(rb"[^\[\]{]++")
_LINE = re.compile(rb"[^\n]*+")


@dataclass(frozen=True, slots=True)
class PrefixQuery:
    """A query for one page or for a prefix. As in the index of an archive, scheme, `www` and letter case are ignored.

    Attributes:
        match: The match type of CDX servers: `exact`, `prefix`, `host` or `domain`.
        url: The URL or host to request from a CDX server, without asterisk.
        ranges: The keys that match, as half-open ranges in order, without overlap.
        folder: For a prefix that ends with a slash, the query for the page of that directory; else None.
    """

    match: str
    url: str
    ranges: tuple[tuple[str, str], ...]
    folder: "PrefixQuery | None" = None

    @classmethod
    def for_page(cls, uri: str) -> Self:
        r"""Return a query for one page. Raises UriError.

        >>> PrefixQuery.for_page("http://www.example.com/A").ranges
        (('com,example)/a', 'com,example)/a\x00'),)
        """
        key = keys.key(uri)
        return cls("exact", normalize_input_url(uri), ((key, key + "\0"),))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a prefix. Raises UriError if it is invalid.

        `*.example.com` is a domain: all its hosts, on all ports. `http://example.com`, without a slash after it, is a
        host, on all ports unless one is named. Everything else is a URL prefix: `/a` covers `/ab`; `/a/` does not cover
        `/ab`, but covers `/a`, because keys have no trailing slash. A prefix with a query covers all URLs that begin
        with that query. A fragment is ignored.

        >>> PrefixQuery.parse("http://example.com/a/").ranges[1:]
        (('com,example)/a/', 'com,example)/a0'), ('com,example)/a?', 'com,example)/a@'))
        >>> PrefixQuery.parse("www.example.com").match, PrefixQuery.parse("*.example.com").ranges[1]
        ('host', ('com,example,', 'com,example-'))
        """
        if text.startswith(_DOMAIN_PREFIX):
            host = text.removeprefix(_DOMAIN_PREFIX).removesuffix("/")
            if not host or set(host) & set("/?#@") or _has_port(host):
                raise UriError("expected a host behind `*.`, and nothing behind that", "bad-host")
            begin = _host_key(host)
            return cls("domain", host, _key_ranges(f"{begin})", f"{begin},", f"{begin}:"))
        url, key = normalize_input_url(text), keys.key(text)
        rest = url.partition("://")[2]
        if not set(rest) & set("/?"):
            host, begin = rest.rpartition("@")[2], key.partition(")")[0]
            return cls("host", host, _key_ranges(f"{begin})", *([] if _has_port(host) else [f"{begin}:"])))
        path, _, query = rest.partition("?")
        if query or not path.endswith("/") or key.endswith(")/"):
            return cls("prefix", url, _key_ranges(key))
        deeper = [] if url.endswith("?") else [key + "/"]
        folder = PrefixQuery.for_page(url)
        return cls("prefix", url, (*folder.ranges, *_key_ranges(*deeper, key + "?")), folder)

    def covers(self, key: str | None) -> bool:
        """Return whether a key matches. Archives return more: other hosts, similar pages."""
        return key is not None and any(low <= key < high for low, high in self.ranges)

    def adapted_to(self, matches: Collection[str]) -> "PrefixQuery | None":
        """Return the query for an archive that supports only these match types; None if it does not support it."""
        if self.match in matches:
            return self
        if self.match == "host" and "prefix" in matches:
            return replace(self, match="prefix", url=f"http://{self.url}/")
        return None


def _has_port(host: str) -> bool:
    try:
        return urlsplit(f"http://{host}").port is not None
    except ValueError:
        return True


def _host_key(text: str) -> str:
    """Return the host of a key, without the parenthesis."""
    return keys.key(f"http://{text}/").partition(")")[0]


def _key_ranges(*beginnings: str) -> tuple[tuple[str, str], ...]:
    return tuple((beginning, beginning[:-1] + chr(ord(beginning[-1]) + 1)) for beginning in beginnings)


async def list_with_folder_page(
    prefix: PrefixQuery, list_query: Callable[[PrefixQuery], AsyncIterator[Capture]]
) -> AsyncIterator[Capture]:
    """Yield the captures of a prefix, each once. Raises ListCutError after the last one, if any listing was cut.

    The keys of a CDX server have no trailing slash, so a prefix with one does not match the page of the directory,
    which is therefore queried separately.
    """
    cut = None
    for part in (prefix.folder, prefix) if prefix.folder else (prefix,):
        try:
            async for capture in list_query(part):
                if part is prefix.folder or not (prefix.folder and prefix.folder.covers(capture.key)):
                    yield capture
        except ListCutError as error:
            cut = cut or error
    if cut is not None:
        raise cut


def supported_prefix(archive: Archive, text: str) -> PrefixQuery:
    """Parse a prefix into a query that the archive supports.

    Raises:
        UriError: The prefix is invalid.
        UnsupportedError: The archive does not list such a prefix.
    """
    prefix = PrefixQuery.parse(text)
    query = prefix.adapted_to(archive.lister.matches) if archive.lister else None
    if query is None:
        raise UnsupportedError(f"it does not list a whole {prefix.match}", archive.id)
    return query


def build_query(
    archive: Archive, prefix: PrefixQuery, date_range: tuple[str | None, str | None], **more: str
) -> HttpRequest:
    """Return a query to an archive's CDX server. Raises UnsupportedError if it has none.

    `url` is percent-encoded, because URLs have parameters of their own. `more` are further parameters.
    """
    if archive.cdx is None:
        raise UnsupportedError("it has no index server", archive.id)
    first, last = date_range
    parameters = {"url": prefix.url, "matchType": prefix.match, "output": "json"}
    parameters |= {"from": first} if first else {}
    parameters |= {"to": last} if last else {}
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in (parameters | more).items())
    return HttpRequest(f"{archive.cdx}?{query}", RequestKind.INDEX, max_bytes=MAX_RESPONSE_BYTES)


class RecentlySeen:
    """Remembers the last distinct items, to drop duplicates in bounded memory.

    >>> recent = RecentlySeen()
    >>> recent.is_new("a"), recent.is_new("b"), recent.is_new("a")
    (True, True, False)
    """

    def __init__(self, remembered: int = REMEMBERED_ROWS) -> None:
        self._remembered = remembered
        self._current: set[int] = set()
        self._previous: set[int] = set()

    def is_new(self, item: Hashable) -> bool:
        """Return whether an item is seen for the first time, or was forgotten."""
        # 64 bits, keyed by a secret of the process: a collision among a million items is very unlikely.
        fingerprint = hash(item)
        if fingerprint in self._current or fingerprint in self._previous:
            return False
        if len(self._current) >= self._remembered:
            self._previous, self._current = self._current, set()
        self._current.add(fingerprint)
        return True


class JsonRowReader:
    """Reads the rows of a JSON array one at a time, and skips invalid ones.

    Parsing a whole page would take 86 MB of objects for 28 MB of text, and a single stray quote would cost all rows.

    Attributes:
        is_list: The body begins as an array; known after the first row.
        is_whole: The end of the array was found; known after the last row.
        bad_rows: Number of invalid rows so far.
    """

    def __init__(self, body: BinaryIO, problems: Problems, name: str) -> None:
        self._body = body
        self._problems = problems
        self._name = name
        self._text = b""
        self._position = 0  # of the next character to read in the text
        self._offset = 0  # of the text in the body
        self.bad_rows = 0
        self.is_list = False
        self.is_whole = False

    def __iter__(self) -> Iterator[list[object]]:
        """Yield the rows as lists. Numbers are returned as text."""
        self._read_more(_CHUNK_BYTES)
        self._position = 3 if self._text.startswith(b"\xef\xbb\xbf") else 0
        self.is_list = self._skip_separators() == b"["
        if not self.is_list:
            return
        self._position += 1
        while (next_byte := self._skip_separators()) and self.bad_rows < MAX_BAD_ROWS:
            if next_byte == b"]":
                self.is_whole = True
                return
            if next_byte == b"[":
                row = self._read_row()
                if row is not None:
                    yield row
            elif next_byte == b"{":
                self._count_bad("expected an array, found an object")
                self._skip_value()
            else:
                self._count_bad("expected an array, found other text")
                self._skip_pattern(_JUNK)

    def _read_row(self) -> list[object] | None:
        """Read the next row; None if it is invalid or truncated."""
        while True:
            match = _FLAT.match(self._text, self._position)
            end = match.end() if match else self._position
            next_byte = self._text[end : end + 1]
            if next_byte == b"]":
                return self._decode_row(end + 1)
            if next_byte == b'"':
                stop = self._end_of_string(end)
                if stop is not None:
                    self._count_bad("expected a quote before the end of the line")
                    self._position = stop
                    return None
            elif next_byte:
                self._count_bad("expected an array of texts, found one within it")
                self._skip_value()
                return None
            if not self._read_more_of_row():
                return None

    def _decode_row(self, end: int) -> list[object] | None:
        text = self._text[self._position : end].decode("utf-8", "surrogateescape")
        self._position = end
        try:
            # The match has no nested values, so that the recursion of the decoder is bounded.
            row: list[object] = ROW_DECODER.decode(text)
        except ValueError as error:
            self._count_bad(f"expected an array: {str(error)[:80]}")
            return None
        return row

    def _skip_value(self) -> None:
        """Skip the next value, however deeply nested, or up to an unterminated string."""
        depth = 0
        while True:
            while match := _TOKEN.match(self._text, self._position):
                self._position = match.end()
                depth += len(match[1] or b"") - len(match[2] or b"")
                if depth == 0:
                    return
            stop = self._end_of_string(self._position)
            if stop is not None:
                self._position = stop
                return
            if not self._read_more_of_row():
                return

    def _end_of_string(self, start: int) -> int | None:
        """Return where a line break ends a string; None if more data is needed to know."""
        string = _STRING.match(self._text, start)
        if string is None or len(self._text) - string.end() <= 1:
            return None
        return string.end()

    def _read_more_of_row(self) -> bool:
        """Double the part of a row that was read, for linear time. Returns False at the end or for too long a row."""
        size = len(self._text) - self._position
        if size <= MAX_ROW_BYTES:
            if self._read_more(max(_CHUNK_BYTES, size)):
                return True
            self._position = len(self._text)
            return False
        self._problems.add(self._problem("too-long", f"expected a row of at most {MAX_ROW_BYTES} bytes"))
        self._position = len(self._text)
        self._skip_pattern(_LINE)
        return False

    def _skip_separators(self) -> bytes:
        """Skip white space and commas, and return the next byte; empty at the end."""
        self._skip_pattern(_BETWEEN)
        return self._text[self._position : self._position + 1]

    def _skip_pattern(self, pattern: re.Pattern[bytes]) -> None:
        """Skip a match of any length."""
        while True:
            match = pattern.match(self._text, self._position)
            self._position = match.end() if match else self._position
            if self._position < len(self._text) or not self._read_more(_CHUNK_BYTES):
                return

    def _read_more(self, count: int) -> bool:
        data = self._body.read(count)
        self._offset += self._position
        self._text = self._text[self._position :] + data
        self._position = 0
        return bool(data)

    def _count_bad(self, message: str) -> None:
        self.bad_rows += 1
        self._problems.add(self._problem("bad-json", message))

    def _problem(self, kind: str, message: str) -> Problem:
        return Problem(kind, self._name, None, self._offset + self._position, message)


class CdxRowParser:
    """Parses the rows of one query into captures, and drops rows that were not requested.

    The key of a row is not trusted: it is computed from the URL, so that no archive can list a page as another.

    Attributes:
        rows: Number of rows of any kind so far.
        new_captures: Number of distinct captures so far.
    """

    def __init__(
        self,
        archive: Archive,
        prefix: PrefixQuery,
        date_range: tuple[str | None, str | None],
        problems: Problems,
        name: str,
    ) -> None:
        self._archive = archive
        self._prefix = prefix
        self._date_range = date_range
        self._problems = problems
        self._name = name
        self._recent = RecentlySeen()
        self._readable = 0
        self.rows = 0
        self.new_captures = 0

    def parse_row(self, fields: Mapping[str, object]) -> Capture | None:
        """Parse a row; None if it is skipped, which is counted, or a duplicate.

        `fields` may have the names of any CDX server, and values of any type. Raises FailedError after
        `MAX_LEADING_BAD_ROWS` rows if none was readable.
        """
        self.rows += 1
        try:
            capture = self._read_capture(fields)
        except RowError as error:
            self._count_skipped(error.kind, str(error))
            return None
        self._readable += 1
        identity = (capture.uri, capture.datetime, capture.status, capture.digest, capture.revisit)
        if not self._recent.is_new(identity):
            return None
        self.new_captures += 1
        return capture

    def count_problem(self, kind: str) -> None:
        """Count an invalid row, with a kind in `ROW_PROBLEM_KINDS`. Raises FailedError."""
        self.rows += 1
        self._count_skipped(kind, ROW_PROBLEM_KINDS[kind])

    def check_readable(self, bad: int = 0) -> None:
        """Raise FailedError if there were rows but none was readable, since that does not mean "no captures".

        `bad` is the number of invalid rows that were not passed to this parser.
        """
        if self.rows + bad and not self._readable:
            raise FailedError("expected rows of captures, found other rows", self._archive.id, "malformed")

    def _count_skipped(self, kind: str, message: str) -> None:
        self._problems.add(Problem(kind, self._name, self.rows, 0, message))
        self._readable += kind in _READABLE_KINDS
        if self.rows >= MAX_LEADING_BAD_ROWS:
            self.check_readable()

    def _read_capture(self, fields: Mapping[str, object]) -> Capture:
        texts = {
            _FIELD_NAMES.get(name, name): _check_text(value) for name, value in fields.items() if _has_value(value)
        }
        url = texts.get("url", "")
        if not url or _CONTROL.search(url):
            raise RowError("bad-address", "expected an address, without control characters")
        if keys.foreign_scheme(url.encode("utf-8", "surrogateescape")) is not None:
            raise RowError("foreign-scheme", ROW_PROBLEM_KINDS["foreign-scheme"])
        # With an empty key, so that the key is computed from the URL.
        row = IndexRow("", texts.get("timestamp", ""), texts, self.rows)
        capture = row.to_capture()
        if not self._prefix.covers(capture.key):
            raise RowError("elsewhere", ROW_PROBLEM_KINDS["elsewhere"])
        first, last = self._date_range
        if (first and capture.datetime < first) or (last and capture.datetime > last):
            raise RowError("other-date", ROW_PROBLEM_KINDS["other-date"])
        return replace(
            capture,
            archive=self._archive.id,
            urim=memento_url(self._archive, capture.datetime, capture.uri),
            migrated=self._archive.is_migrated(capture.mime),
            filename=None,
            offset=None,
        )


def _has_value(value: object) -> bool:
    return value not in (None, "", NO_VALUE)


def _check_text(value: object) -> str:
    """Return a value if it is valid text. Numbers were decoded as text."""
    if not isinstance(value, str):
        raise RowError("bad-json", "expected texts and numbers only")
    if not value.isascii():
        try:
            value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise RowError("bad-json", "half of a surrogate pair") from None
    return value
