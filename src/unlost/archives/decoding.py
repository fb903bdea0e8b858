"""Undoing content codings, whatever the headers say and however much is hidden in a few bytes."""

import zlib
from collections.abc import Iterator, Sequence

_PIECE = 1 << 14  # bytes that are decoded at once
_OUTPUT = 1 << 16  # bytes that come out at once, at most
_MAX_CODINGS = 3  # in one answer: more is no mistake but an attack
_GZIP = b"\x1f\x8b"

ANNOUNCED = "gzip, deflate"
"""What we say that we accept: what can be decoded without trusting anybody."""


class UndecodableError(Exception):
    """A body that cannot be decoded. Never seen outside this package; the message says why."""


def codings_of(values: Sequence[str]) -> list[str]:
    """Return the codings of fields of Content-Encoding, in the order in which they must be undone.

    >>> codings_of(["x-gzip", "identity, deflate"])
    ['deflate', 'gzip']
    """
    names = [name.strip().lower().removeprefix("x-") for value in values for name in value.split(",")]
    return [name for name in reversed(names) if name not in {"", "identity", "none", "utf-8", "binary"}]


class Decoder:
    """Undoes codings, piece by piece. What says that it is gzip or deflate and is not passes as it is."""

    def __init__(self, codings: Sequence[str]) -> None:
        unknown = set(codings) - {"gzip", "deflate"}
        if unknown:
            raise UndecodableError(f"in the coding {min(unknown)[:20]!r}, which was not asked for")
        if len(codings) > _MAX_CODINGS:
            raise UndecodableError(f"in {len(codings)} codings")
        self._layers = [_Layer(coding) for coding in codings]

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Yield what some more bytes decode to, never much at once. Raises UndecodableError."""
        yield from self._through(0, data)

    def end(self) -> Iterator[bytes]:
        """Yield what is left. Raises UndecodableError if a stream was not at its end."""
        for depth, layer in enumerate(self._layers):
            for piece in layer.end():
                yield from self._through(depth + 1, piece)

    def _through(self, depth: int, data: bytes) -> Iterator[bytes]:
        if depth == len(self._layers):
            yield data
            return
        for begin in range(0, len(data), _PIECE):
            for piece in self._layers[depth].decode(data[begin : begin + _PIECE]):
                yield from self._through(depth + 1, piece)


class _Layer:
    """One coding. It looks at the first bytes to see what it has before it."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._kept: bytes | None = b""  # until it is clear that this is the coding; None from then on
        self._stream: zlib._Decompress | None = None
        self._passes = False

    def decode(self, data: bytes) -> Iterator[bytes]:
        if self._stream is None and not self._passes:
            data = self._begin(data)
        elif self._kept is not None:
            self._kept += data
        if self._passes:
            yield data
        elif self._stream is not None:
            yield from self._decoded(data)

    def _begin(self, data: bytes) -> bytes:
        """Open the stream, or let everything pass, if there is enough to tell; return what there is to deal with."""
        self._kept = data = (self._kept or b"") + data
        if len(data) < 2:
            return b""
        self._stream = self._open(data)
        self._passes = self._stream is None
        if self._coding == "gzip":
            self._kept = None  # its first bytes leave no doubt; those of raw deflate say nothing
        return data

    def _decoded(self, data: bytes) -> Iterator[bytes]:
        try:
            for piece in self._inflate(data):
                self._kept = None
                yield piece
        except zlib.error as error:
            if self._kept is None:
                raise UndecodableError(f"damaged {self._coding}: {error}") from error
            self._passes = True
            yield self._kept
        if self._kept is not None and len(self._kept) > _PIECE:
            self._kept = None  # nothing that long comes to nothing by mistake

    def end(self) -> Iterator[bytes]:
        if self._passes or (self._stream is not None and self._stream.eof):
            return
        if self._kept is not None:
            yield self._kept
            return
        raise UndecodableError(f"{self._coding} that ends too early")

    def _open(self, data: bytes) -> "zlib._Decompress | None":
        if data.startswith(_GZIP):
            self._coding = "gzip"
            return zlib.decompressobj(wbits=31)
        if self._coding == "gzip":
            return None
        has_header = data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
        return zlib.decompressobj(wbits=15 if has_header else -15)

    def _inflate(self, data: bytes) -> Iterator[bytes]:
        stream = self._stream
        full = False
        while stream is not None and (data or full):
            if stream.eof:
                # Behind a whole stream come others, or zeros and other rubbish that every reader passes over.
                if self._coding != "gzip" or not data.startswith(_GZIP[: len(data)]):
                    return
                stream = self._stream = zlib.decompressobj(wbits=31)
            piece = stream.decompress(data, _OUTPUT)
            full = len(piece) == _OUTPUT and not stream.eof
            if piece:
                yield piece
            data = stream.unused_data if stream.eof else stream.unconsumed_tail
