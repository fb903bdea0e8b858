"""CDX server queries and rows: the query URL, JSON rows read one at a time, and captures without duplicates."""

import json
import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from typing import BinaryIO
from urllib.parse import quote

from unlost import uri as addresses
from unlost.archives.memento_urls import memento_url
from unlost.archives.prefix_query import PrefixQuery
from unlost.capture import Capture
from unlost.errors import FailedError, UnsupportedError
from unlost.http.models import HttpRequest
from unlost.index.cdx import NO_VALUE, IndexRow, RowError
from unlost.problems import Problem, Problems
from unlost.registry.models import Archive, RequestKind

REMEMBERED_ROWS = 1 << 17
"""How many different rows are remembered at least. A page of the largest lister has 150,000."""


class RecentlySeen:
    """The last rows that were seen.

    >>> recent = RecentlySeen()
    >>> recent.is_new("a"), recent.is_new("b"), recent.is_new("a")
    (True, True, False)
    """

    def __init__(self, remembered: int = REMEMBERED_ROWS) -> None:
        self._remembered = remembered
        self._now: set[int] = set()
        self._before: set[int] = set()

    def is_new(self, item: Hashable) -> bool:
        """Return whether something is seen for the first time, or was forgotten."""
        # 64 bits of a hash with a secret of the process: among a million rows, equal ones by accident do not occur.
        mark = hash(item)
        if mark in self._now or mark in self._before:
            return False
        if len(self._now) >= self._remembered:
            self._before, self._now = self._now, set()
        self._now.add(mark)
        return True


MAX_RESPONSE_BYTES = 1 << 29
"""Of one page of rows, uncompressed; it is kept on disk. 150,000 rows with the longest usual addresses need a tenth."""
ROWS_PER_YIELD = 256
"""After so many rows everything else that runs gets its turn."""


def supported_prefix(archive: Archive, text: str) -> PrefixQuery:
    """Return how an archive's lister is asked for a prefix. Raises UriError, and UnsupportedError if it cannot be."""
    prefix = PrefixQuery.parse(text)
    found = prefix.adapted_to(archive.lister.matches) if archive.lister else None
    if found is None:
        raise UnsupportedError(f"it does not list a whole {prefix.match}", archive.id)
    return found


def build_query(
    archive: Archive, prefix: PrefixQuery, date_range: tuple[str | None, str | None], **more: str
) -> HttpRequest:
    """Return a query of an archive's index server. Raises UnsupportedError if it has none.

    more: further parameters. `url` stands first, percent-encoded, since addresses have parameters themselves.
    """
    if archive.cdx is None:
        raise UnsupportedError("it has no index server", archive.id)
    first, last = date_range
    parameters = {"url": prefix.url, "matchType": prefix.match, "output": "json"}
    parameters |= {"from": first} if first else {}
    parameters |= {"to": last} if last else {}
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in (parameters | more).items())
    return HttpRequest(f"{archive.cdx}?{query}", RequestKind.INDEX, max_bytes=MAX_RESPONSE_BYTES)


MAX_ROW_BYTES = 8 << 20
"""A longer row is left out. It has an address of at most 2 MiB (`unlost.uri.MAX_URI_BYTES`), and its key."""
MAX_BAD_ROWS = 10_000
"""After so many bad rows the rest is not read: it is no list."""
_CHUNK = 1 << 16
# A string has no raw end of line, so that a quote too many costs one row where rows stand on lines of their own.
_OPEN_STRING = rb'"(?:[^"\\\r\n]++|\\[^\r\n])*+'
_FLAT = re.compile(rb'\[(?:[^\[\]{}"]++|' + _OPEN_STRING + rb'")*+')
_TOKEN = re.compile(rb'[^\[\]{}"]++|' + _OPEN_STRING + rb'"|([\[{]++)|([\]}])')
_STRING = re.compile(_OPEN_STRING)
_BETWEEN = re.compile(rb"[\s,]*+")
_JUNK = re.compile(rb"[^\[\]{]++")
_LINE = re.compile(rb"[^\n]*+")
ROW_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
"""What reads a row: numbers stay as they are written, however large."""


class JsonRowReader:
    """The rows of a body.

    is_list: whether it begins as an array does; known once the first row was asked for.
    is_whole: whether its end was there; known at the end.
    bad: how many rows were none, so far.
    """

    def __init__(self, body: BinaryIO, problems: Problems, name: str) -> None:
        self._body = body
        self._problems = problems
        self._name = name
        self._text = b""
        self._position = 0  # what of the text was read
        self._offset = 0  # of the text, in the body
        self.bad_rows = 0
        self.is_list = False
        self.is_whole = False

    def __iter__(self) -> Iterator[list[object]]:
        """Yield the rows, each a list; numbers are given as they are written, as text."""
        self._read_more(_CHUNK)
        self._position = 3 if self._text.startswith(b"\xef\xbb\xbf") else 0
        self.is_list = self._skip_separators() == b"["
        if not self.is_list:
            return
        self._position += 1
        while (follows := self._skip_separators()) and self.bad_rows < MAX_BAD_ROWS:
            if follows == b"]":
                self.is_whole = True
                return
            if follows == b"[":
                row = self._read_row()
                if row is not None:
                    yield row
            elif follows == b"{":
                self._count_bad("expected an array, found an object")
                self._skip_value()
            else:
                self._count_bad("expected an array, found other text")
                self._skip_pattern(_JUNK)

    def _read_row(self) -> list[object] | None:
        """Read the row that follows; None if it is none, or not all there."""
        while True:
            found = _FLAT.match(self._text, self._position)
            end = found.end() if found else self._position
            follows = self._text[end : end + 1]
            if follows == b"]":
                return self._decode_row(end + 1)
            if follows == b'"':
                stop = self._end_of_string(end)
                if stop is not None:
                    self._count_bad("expected a quote before the end of the line")
                    self._position = stop
                    return None
            elif follows:
                self._count_bad("expected an array of texts, found one within it")
                self._skip_value()
                return None
            if not self._read_more_of_row():
                return None

    def _decode_row(self, end: int) -> list[object] | None:
        text = self._text[self._position : end].decode("utf-8", "surrogateescape")
        self._position = end
        try:
            # Flat, as it was matched: so it cannot be too deep.
            row: list[object] = ROW_DECODER.decode(text)
        except ValueError as error:
            self._count_bad(f"expected an array: {str(error)[:80]}")
            return None
        return row

    def _skip_value(self) -> None:
        """Pass over the value that follows, however deep it is, or up to a string that has no end."""
        depth = 0
        while True:
            while found := _TOKEN.match(self._text, self._position):
                self._position = found.end()
                depth += len(found[1] or b"") - len(found[2] or b"")
                if depth == 0:
                    return
            stop = self._end_of_string(self._position)
            if stop is not None:
                self._position = stop
                return
            if not self._read_more_of_row():
                return

    def _end_of_string(self, place: int) -> int | None:
        """Return where a string ends that an end of line breaks off; None if what was read so far does not tell."""
        string = _STRING.match(self._text, place)
        if string is None or len(self._text) - string.end() <= 1:
            return None
        return string.end()

    def _read_more_of_row(self) -> bool:
        """Read on, twice as far as before, so that the time is linear; False at the end, or if the row is too long."""
        size = len(self._text) - self._position
        if size <= MAX_ROW_BYTES:
            if self._read_more(max(_CHUNK, size)):
                return True
            self._position = len(self._text)
            return False
        self._problems.add(self._problem("too-long", f"expected a row of at most {MAX_ROW_BYTES} bytes"))
        self._position = len(self._text)
        self._skip_pattern(_LINE)
        return False

    def _skip_separators(self) -> bytes:
        """Go to what follows white space and commas, and return its first byte; nothing at the end."""
        self._skip_pattern(_BETWEEN)
        return self._text[self._position : self._position + 1]

    def _skip_pattern(self, pattern: re.Pattern[bytes]) -> None:
        """Go behind what fits, however long it is."""
        while True:
            found = pattern.match(self._text, self._position)
            self._position = found.end() if found else self._position
            if self._position < len(self._text) or not self._read_more(_CHUNK):
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


MAX_LEADING_BAD_ROWS = 10_000
"""After so many rows, of which not one could be read, the rest is not looked at."""
# What index servers call the fields that pywb, and `unlost.index.cdx` with it, names otherwise.
_FIELD_NAMES = {"original": "url", "mimetype": "mime", "statuscode": "status"}
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
"""The rows that are left out, and why; counted in the `problems` of a client."""
_READABLE_KINDS = {"foreign-scheme", "elsewhere", "other-date", "fuzzy"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class CdxRowParser:
    """The rows of one query.

    rows: how many came, of whatever kind.
    fresh: how many of them were captures that had not come before.
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
        """Return what a row says; None if it is left out, which is counted. Raises FailedError if all are bad.

        fields: by the names of any index server, with values of any type.
        """
        self.rows += 1
        try:
            capture = self._read_capture(fields)
        except RowError as error:
            self._count_skipped(error.kind, str(error))
            return None
        self._readable += 1
        mark = (capture.uri, capture.datetime, capture.status, capture.digest, capture.revisit)
        if not self._recent.is_new(mark):
            return None
        self.new_captures += 1
        return capture

    def count_problem(self, kind: str) -> None:
        """Count a row that is no capture, as one of `KINDS`. Raises FailedError."""
        self.rows += 1
        self._count_skipped(kind, ROW_PROBLEM_KINDS[kind])

    def check_readable(self, bad: int = 0) -> None:
        """Raise FailedError if there were rows, and none could be read: "nothing held" would be a lie.

        bad: how many there were besides those of which this listing knows.
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
        address = texts.get("url", "")
        if not address or _CONTROL.search(address):
            raise RowError("bad-address", "expected an address, without control characters")
        if addresses.foreign_scheme(address.encode("utf-8", "surrogateescape")) is not None:
            raise RowError("foreign-scheme", ROW_PROBLEM_KINDS["foreign-scheme"])
        # The key of the address, and not the archive's own, which may say anything.
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
    """Return a value that is text; numbers were left as they are written."""
    if not isinstance(value, str):
        raise RowError("bad-json", "expected texts and numbers only")
    if not value.isascii():
        try:
            value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise RowError("bad-json", "half of a surrogate pair") from None
    return value
