"""Rows of an array of arrays in JSON, read one at a time: bad ones are lost alone, long ones cost no memory."""

import json
import re
from collections.abc import Iterator
from typing import BinaryIO

from unlost.formats.problems import Problem, Problems

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
