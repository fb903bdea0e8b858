"""One record of a WARC that was written here, read from where it is kept."""

from collections.abc import Iterator

from unlost.formats.warc_writing import fields as warc_fields
from unlost.formats.warc_writing.members import GzipMember
from unlost.formats.warc_writing.records import RECORD_END, WARC_VERSION

_MAX_HEAD_BYTES = 1 << 20  # bytes: five addresses of 64 KiB at most, or 64 KiB of headers and two more
_MAX_FIELDS_BLOCK_BYTES = (
    8 << 20
)  # bytes of fields: a dozen texts of 64 Ki characters, of which JSON makes six bytes each

_MAX_DRAINED_BYTES = 2 << 30  # bytes: twice the largest body


class ForeignRecordError(Exception):
    """A member that is whole, and not of a WARC that unlost wrote. Never seen by users."""


class WrittenRecord:
    """A record, read in its order: its fields, then its block, then its end.

    fields: those of its header.
    length: bytes of its block.

    Raises TornError where a member is not whole, ForeignError where it is and nothing of ours: each of its methods.
    """

    def __init__(self, file: int, offset: int) -> None:
        self._member = GzipMember(file, offset)
        self._buffer = b""
        head = self._read_head(None)
        if not head.startswith(WARC_VERSION):
            raise self._foreign_error()
        try:
            self.fields = warc_fields.parse_fields(head[len(WARC_VERSION) :])
            self.length = int(self.fields["Content-Length"])
        except (ValueError, KeyError):
            raise self._foreign_error() from None
        self._remaining = self.length

    @property
    def record_type(self) -> str:
        """The type of the record: `response`, `revisit`, `metadata` or `warcinfo`."""
        return self.fields.get("WARC-Type", "")

    def _foreign_error(self) -> ForeignRecordError:
        """Return what to raise for a text that is not ours. Raises TornError if it is damage that made it so."""
        self._buffer = b""
        left = _MAX_DRAINED_BYTES
        while left > 0 and (text := self._member.read()):  # its checksum stands at its end
            left -= len(text)
        return ForeignRecordError()

    def _read_head(self, most: int | None) -> bytes:
        """Return what stands before the next empty line, with the end of the line before it.

        most: how many bytes there can be, with the empty line.
        """
        while (end := self._buffer.find(RECORD_END)) < 0:
            if len(self._buffer) > _MAX_HEAD_BYTES or (most is not None and len(self._buffer) >= most):
                raise self._foreign_error()
            text = self._member.read()
            if not text:
                raise self._foreign_error()
            self._buffer += text
        head, self._buffer = self._buffer[: end + 2], self._buffer[end + len(RECORD_END) :]
        if most is not None and end + len(RECORD_END) > most:
            raise self._foreign_error()
        return head

    def http_head(self) -> bytes:
        """Return the head of the HTTP answer in its block, without the empty line; nothing if the block is empty."""
        if not self._remaining:
            return b""
        head = self._read_head(self._remaining)
        self._remaining -= len(head) + 2
        return head

    def pieces(self) -> Iterator[bytes]:
        """Yield what is left of its block."""
        while self._remaining:
            piece = self._buffer or self._member.read()
            if not piece:
                raise self._foreign_error()
            piece, self._buffer = piece[: self._remaining], piece[self._remaining :]
            self._remaining -= len(piece)
            yield piece

    def block(self) -> bytes:
        """Return a block of fields."""
        if self.length > _MAX_FIELDS_BLOCK_BYTES:
            raise self._foreign_error()
        return b"".join(self.pieces())

    def end(self) -> int:
        """Pass over what is left of it, and return where the next record begins, in bytes."""
        for _ in self.pieces():
            pass
        rest = self._buffer
        while text := self._member.read():
            rest += text
            if len(rest) > len(RECORD_END):
                break
        if rest != RECORD_END:
            raise self._foreign_error()
        return self._member.end
