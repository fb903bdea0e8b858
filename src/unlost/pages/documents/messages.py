"""What goes between unlost and the processes that read documents: a document there, its text or an error back."""

import struct
from dataclasses import dataclass
from typing import IO

from unlost.errors import DocumentError
from unlost.pages.text import ExtractedText

_REQUEST = struct.Struct("<16sQ")  # the kind of document, how many bytes follow
_RESPONSE = struct.Struct("<c?Q")  # what it is, whether the process is spent, how many bytes follow


@dataclass(frozen=True, slots=True)
class ReaderResponse:
    """What came of a document.

    result: its text, or why there is none.
    is_spent: whether the process has grown so that it should read no other document.
    """

    result: ExtractedText | DocumentError
    is_exhausted: bool


def send_request(stream: IO[bytes], kind: str, body: bytes) -> None:
    """Send a document."""
    stream.write(_REQUEST.pack(kind.encode(), len(body)))
    stream.write(body)
    stream.flush()


def receive_request(stream: IO[bytes]) -> tuple[str, bytes] | None:
    """Wait for a document and return its kind and its bytes; None if there will be none."""
    head = _read_exactly(stream, _REQUEST.size)
    if head is None:
        return None
    kind, length = _REQUEST.unpack(head)
    body = _read_exactly(stream, length)
    return None if body is None else (kind.rstrip(b"\0").decode(), body)


def send_response(stream: IO[bytes], response: ReaderResponse) -> None:
    """Send what came of a document."""
    if isinstance(response.result, ExtractedText):
        mark = b"c" if response.result.cut else b"t"
        content = response.result.text.encode("utf-8", "replace")
    else:
        mark = b"e"
        content = f"{response.result.kind}\n{response.result}".encode("utf-8", "replace")
    stream.write(_RESPONSE.pack(mark, response.is_exhausted, len(content)))
    stream.write(content)
    stream.flush()


def receive_response(stream: IO[bytes], max_bytes: int) -> ReaderResponse | None:
    """Wait for what came of a document; None if nothing does, or not within so many bytes."""
    head = _read_exactly(stream, _RESPONSE.size)
    if head is None:
        return None
    mark, is_spent, length = _RESPONSE.unpack(head)
    content = _read_exactly(stream, length) if length <= max_bytes else None
    if content is None:
        return None
    text = content.decode("utf-8", "replace")
    if mark == b"e":
        kind, _, message = text.partition("\n")
        return ReaderResponse(DocumentError(message, kind), is_spent)
    return ReaderResponse(ExtractedText(text, cut=mark == b"c"), is_spent)


def _read_exactly(stream: IO[bytes], length: int) -> bytes | None:
    """Return so many bytes; None if the stream ends before."""
    content = stream.read(length)
    return content if len(content) == length else None
