"""From the rows of an index server to captures: those that were asked for, each once, in the order that they came."""

import re
from collections.abc import Mapping
from dataclasses import replace

from unlost import uri as addresses
from unlost.archives.archive import Archive
from unlost.archives.clients.recent import RecentlySeen
from unlost.archives.clients.urims import memento_url
from unlost.archives.prefix import PrefixQuery
from unlost.errors import FailedError
from unlost.formats.capture import Capture
from unlost.formats.problems import Problem, Problems
from unlost.formats.row import NO_VALUE, IndexRow, RowError

MAX_LEADING_BAD_ROWS = 10_000
"""After so many rows, of which not one could be read, the rest is not looked at."""

# What index servers call the fields that pywb, and `unlost.formats.row` with it, names otherwise.
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
