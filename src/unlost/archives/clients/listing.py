"""From the rows of an index server to captures: those that were asked for, each once, in the order that they came."""

import re
from collections.abc import Mapping
from dataclasses import replace

from unlost import uri as addresses
from unlost.archives.archive import Archive
from unlost.archives.clients.recent import Recent
from unlost.archives.clients.urims import urim
from unlost.archives.prefix import Prefix
from unlost.errors import FailedError
from unlost.formats.capture import Capture
from unlost.formats.problems import Problem, Problems
from unlost.formats.row import NO_VALUE, Row, RowError

MAX_BAD = 10_000
"""After so many rows, of which not one could be read, the rest is not looked at."""

# What index servers call the fields that pywb, and `unlost.formats.row` with it, names otherwise.
_NAMES = {"original": "url", "mimetype": "mime", "statuscode": "status"}

KINDS = {
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

_READABLE = {"foreign-scheme", "elsewhere", "other-date", "fuzzy"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Listing:
    """The rows of one query.

    rows: how many came, of whatever kind.
    fresh: how many of them were captures that had not come before.
    """

    def __init__(
        self, archive: Archive, prefix: Prefix, span: tuple[str | None, str | None], problems: Problems, name: str
    ) -> None:
        self._archive = archive
        self._prefix = prefix
        self._span = span
        self._problems = problems
        self._name = name
        self._recent = Recent()
        self._readable = 0
        self.rows = 0
        self.fresh = 0

    def capture(self, fields: Mapping[str, object]) -> Capture | None:
        """Return what a row says; None if it is left out, which is counted. Raises FailedError if all are bad.

        fields: by the names of any index server, with values of any type.
        """
        self.rows += 1
        try:
            capture = self._read(fields)
        except RowError as error:
            self._leave_out(error.kind, str(error))
            return None
        self._readable += 1
        mark = (capture.uri, capture.datetime, capture.status, capture.digest, capture.revisit)
        if not self._recent.is_new(mark):
            return None
        self.fresh += 1
        return capture

    def count(self, kind: str) -> None:
        """Count a row that is no capture, as one of `KINDS`. Raises FailedError."""
        self.rows += 1
        self._leave_out(kind, KINDS[kind])

    def check(self, bad: int = 0) -> None:
        """Raise FailedError if there were rows, and none could be read: "nothing held" would be a lie.

        bad: how many there were besides those of which this listing knows.
        """
        if self.rows + bad and not self._readable:
            raise FailedError("expected rows of captures, found other rows", self._archive.id, "malformed")

    def _leave_out(self, kind: str, message: str) -> None:
        self._problems.add(Problem(kind, self._name, self.rows, 0, message))
        self._readable += kind in _READABLE
        if self.rows >= MAX_BAD:
            self.check()

    def _read(self, fields: Mapping[str, object]) -> Capture:
        texts = {_NAMES.get(name, name): _text(value) for name, value in fields.items() if _is_value(value)}
        address = texts.get("url", "")
        if not address or _CONTROL.search(address):
            raise RowError("bad-address", "expected an address, without control characters")
        if addresses.foreign_scheme(address.encode("utf-8", "surrogateescape")) is not None:
            raise RowError("foreign-scheme", KINDS["foreign-scheme"])
        # The key of the address, and not the archive's own, which may say anything.
        row = Row("", texts.get("timestamp", ""), texts, self.rows)
        capture = row.capture()
        if not self._prefix.covers(capture.key):
            raise RowError("elsewhere", KINDS["elsewhere"])
        first, last = self._span
        if (first and capture.datetime < first) or (last and capture.datetime > last):
            raise RowError("other-date", KINDS["other-date"])
        return replace(
            capture,
            archive=self._archive.id,
            urim=urim(self._archive, capture.datetime, capture.uri),
            migrated=self._archive.is_migrated(capture.mime),
            filename=None,
            offset=None,
        )


def _is_value(value: object) -> bool:
    return value not in (None, "", NO_VALUE)


def _text(value: object) -> str:
    """Return a value that is text; numbers were left as they are written."""
    if not isinstance(value, str):
        raise RowError("bad-json", "expected texts and numbers only")
    if not value.isascii():
        try:
            value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise RowError("bad-json", "half of a surrogate pair") from None
    return value
