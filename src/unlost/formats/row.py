"""One row of an index: the columns as they stand, whatever the file calls them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from unlost import dates, uri
from unlost.errors import DateError, UriError
from unlost.formats.capture import Capture
from unlost.formats.digests import normalize_digest

REVISIT_TYPE = "warc/revisit"
NO_VALUE = "-"

_CONTROL_ESCAPES = {code: f"%{code:02X}" for code in (*range(32), 127)}


class RowError(Exception):
    """A line that is no row, or a row that is no capture; caught by whoever counts problems, never seen by users.

    kind: the problem's kind.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One row of an index, in pywb's words: `url`, `mime`, `status`, `digest`, `redirect`, `robotflags`, `length`,
    `offset`, `filename`, and whatever else the file has under its own names. A field without a value is left out.

    key, timestamp: as the file has them.
    number, place: the line's number and offset.
    """  # noqa: D205  the list of names is the summary

    key: str
    timestamp: str
    fields: Mapping[str, str]
    number: int = 0
    offset: int = 0

    def to_capture(self) -> Capture:
        """Return what the row says, normalised. Raises RowError of kind `bad-date`, `bad-number` or `bad-address`."""
        fields = self.fields
        address = fields.get("url", "")
        mime = _parse_mime(fields.get("mime"))
        revisit = mime == REVISIT_TYPE
        return Capture(
            uri=_escape_invalid_utf8(address),
            key=self._page_key(address),
            datetime=_parse_date(self.timestamp),
            status=_parse_status(fields.get("status")),
            mime=None if revisit else mime,
            digest=normalize_digest(fields["digest"]) if "digest" in fields else None,
            length=_parse_byte_count("length", fields.get("length")),
            redirect=_escape_invalid_utf8(fields["redirect"]) if "redirect" in fields else None,
            revisit=revisit,
            revisit_of=_parse_revisit_of(fields),
            filename=fields.get("filename"),
            offset=_parse_byte_count("offset", fields.get("offset")),
        )

    def output_key(self) -> str:
        """Return the key to write: the row's own, or that of its address where the file has none, as wget's."""
        return self.key or index_key(self.fields.get("url", ""))

    def _page_key(self, address: str) -> str | None:
        key, url = self.key.encode("utf-8", "surrogateescape"), address.encode("utf-8", "surrogateescape")
        try:
            return uri.row_key(key, url)
        except UriError as error:
            if error.kind == "foreign-scheme":
                return None
            raise RowError("bad-address", f"neither key nor address can be read: {error}") from None


def index_key(address: str) -> str:
    """Return the key of an address as indexes spell it: the SURT of a page, the lower-cased text of anything else.

    >>> index_key("http://www.Example.com/A"), index_key("dns:Example.com"), index_key("")
    ('com,example)/a', 'dns:example.com', '-')
    """
    try:
        return uri.surt(_escape_invalid_utf8(address))
    except UriError:
        return "".join(address.lower().split()) or NO_VALUE


def escape_column(text: str, delimiter: str = " ") -> str:
    r"""Return a text without what would end a column or a line.

    >>> escaped("a b\nc")
    'a%20b%0Ac'
    """
    return text.replace(delimiter, f"%{ord(delimiter):02X}").translate(_CONTROL_ESCAPES)


def _escape_invalid_utf8(address: str) -> str:
    """Return an address with its bytes that are no UTF-8 escaped, so that it can be written as JSON."""
    try:
        address.encode()
    except UnicodeEncodeError:
        return "".join(f"%{ord(char) - 0xDC00:02X}" if "\udc80" <= char <= "\udcff" else char for char in address)
    return address


def _parse_date(text: str) -> str:
    try:
        return dates.pad(text) if text.isdigit() else dates.from_iso(text)
    except DateError as error:
        raise RowError("bad-date", str(error)) from None


def _parse_mime(text: str | None) -> str | None:
    """Return the media type in lower case without parameters; `unk`, as some indexers write it, is no type."""
    mime = re.split(r"[;\s]", (text or "").strip().lower(), maxsplit=1)[0]
    return mime if mime and mime != "unk" else None


def _parse_status(text: str | None) -> int | None:
    # Indexers write whatever stands in the status line's place: only three digits are a status.
    return int(text) if text and len(text) == 3 and text.isascii() and text.isdigit() and text >= "100" else None


def _parse_byte_count(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise RowError("bad-number", f"expected a number of bytes as {name}, found `{text[:40]}`")
    return int(text)


def _parse_revisit_of(fields: Mapping[str, str]) -> tuple[str, str] | None:
    address, date = fields.get("refers-to-uri"), fields.get("refers-to-date")
    if not address or not date:
        return None
    return address, _parse_date(date)
