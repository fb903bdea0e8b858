"""What undoes one content coding each: gzip, deflate, Brotli, Zstandard. `contentcoding` decides whether to believe."""

import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Protocol

import brotli

from unlost._core import Inflated

PIECE_BYTES = 1 << 16
"""Bytes that are given at once, at most, whatever a bomb would give."""

_MAX_ZSTD_BYTES = 1 << 26  # stored: it is unpacked from memory
# What is made in one step with damage is lost: so steps are small, but for the first, which tells whether it is Brotli
# at all. Of 2,000 bodies of noise, 7 in 100 pass for the beginning of something; of files of common types, none did.
_BROTLI_HEAD = 4096
_BROTLI_STEP = 256
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"  # behind a byte from 50 to 5f
_WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS, "raw": -zlib.MAX_WBITS}


class CodingError(Exception):
    """What is there means nothing in a coding, or ends too early. Never seen outside `unlost.formats`.

    is_beginning: whether all of it is the beginning of something in the coding, of which the rest is missing.
    """

    def __init__(self, message: str, *, is_truncated: bool = False) -> None:
        super().__init__(message)
        self.is_truncated = is_truncated


class Decompressor(Protocol):
    """Undoes one coding. What comes behind its end and is nothing in it is passed over.

    is_certain: whether the first bytes leave no doubt that this is the coding.
    """

    is_certain: bool

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what some more bytes unpack to. Raises BrokenError."""
        ...

    def end(self) -> Iterator[bytes]:
        """Yield what is left. Raises BrokenError if the end was not there."""
        ...


def detect_decompressor(coding: str, head: bytes) -> Decompressor | None:
    """Return what undoes a coding, by the first bytes of a body; None if they cannot be in it.

    coding: `gzip`, `deflate`, `br` or `zstd`. What begins as gzip is gzip under whatever name; other names lie less.
    """
    if _is_gzip(head) and (coding == "gzip" or len(head) > len(_GZIP)):
        return _ZlibDecompressor("gzip")
    if coding == "deflate":
        # With the zlib header that the standard demands, or without it, as some servers have always sent it.
        has_header = head[0] & 0x0F == 8 and int.from_bytes(head[:2], "big") % 31 == 0
        return _ZlibDecompressor("deflate" if has_header else "raw")
    if coding == "br":
        return _BrotliDecompressor()
    if coding == "zstd" and (head.startswith(_ZSTD) or (head[1:4] == _ZSTD_SKIPPABLE and head[0] >> 4 == 5)):
        return _ZstdDecompressor()
    return None


def _is_gzip(head: bytes) -> bool:
    """Tell by what every gzip begins with: its two bytes, the method, and flags of which three are never set."""
    return head.startswith(_GZIP) and head[2:3] in (b"", b"\x08") and not (head[3:4] or b"\0")[0] & 0xE0


class _ZlibDecompressor:
    """Deflate in one of its three coats; of gzip, any number of members behind each other."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._stream = zlib.decompressobj(_WINDOWS[form])
        self._rest = b""  # behind a member, too short to tell whether another begins
        self._is_confirmed = form != "raw"  # of what has no header, that it is deflate at all
        self.is_certain = form == "gzip"

    def feed(self, data: bytes) -> Iterator[bytes]:
        data, self._rest = self._rest + data, b""
        full = False
        while data or full:
            if self._stream.eof:
                if self._form != "gzip" or not data.startswith(_GZIP[: len(data)]):
                    return  # zeros and other rubbish, which every reader passes over
                if len(data) < len(_GZIP):
                    self._rest = data
                    return
                self._stream = zlib.decompressobj(_WINDOWS["gzip"])
            # Who comes upon damage keeps what it made on the way there: then it goes there once more, in small steps.
            before = self._stream.copy() if self._is_confirmed and len(data) > 1 else None
            try:
                piece = self._stream.decompress(data, PIECE_BYTES)
            except zlib.error as error:
                yield from _decompress_until_damage(before, data)
                raise CodingError(f"damaged {self._name}: {error}") from None
            full = len(piece) == PIECE_BYTES and not self._stream.eof
            if piece:
                self._is_confirmed = True
                yield piece
            data = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail

    def end(self) -> Iterator[bytes]:
        if not self._stream.eof:
            raise CodingError(f"{self._name} that ends too early", is_truncated=True)
        yield from ()

    @property
    def _name(self) -> str:
        return "gzip" if self._form == "gzip" else "deflate"


def _decompress_until_damage(stream: "zlib._Decompress | None", data: bytes) -> Iterator[bytes]:
    """Yield what comes before the byte of which zlib says that it is wrong."""
    with suppress(zlib.error):
        for place in range(len(data) if stream else 0):
            rest = data[place : place + 1]
            while stream and rest:
                if piece := stream.decompress(rest, PIECE_BYTES):
                    yield piece
                rest = stream.unconsumed_tail


class _BrotliDecompressor:
    is_certain = False

    def __init__(self) -> None:
        self._stream = brotli.Decompressor()
        self._step = _BROTLI_HEAD

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            piece, data = data[: self._step], data[self._step :]
            yield from self._fed(piece)
            self._step = _BROTLI_STEP

    def _fed(self, data: bytes) -> Iterator[bytes]:
        try:
            # It says that it can take more while it still has something to give: only an empty piece tells.
            while not self._stream.is_finished():
                piece = self._stream.process(data, output_buffer_limit=PIECE_BYTES)
                data = b""
                if piece:
                    yield piece
                elif self._stream.can_accept_more_data():
                    return
        except brotli.error:
            raise CodingError("damaged br: bytes that mean nothing in it") from None

    def end(self) -> Iterator[bytes]:
        if not self._stream.is_finished():
            raise CodingError("br that ends too early", is_truncated=True)
        yield from ()


class _ZstdDecompressor:
    """It is unpacked at its end, since the core has it in one piece."""

    is_certain = True

    def __init__(self) -> None:
        self._packed = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._packed += data
        if len(self._packed) > _MAX_ZSTD_BYTES:
            self._packed.clear()
            raise CodingError(f"zstd of more than {_MAX_ZSTD_BYTES} bytes, which is not undone")
        yield from ()

    def end(self) -> Iterator[bytes]:
        packed, self._packed = bytes(self._packed), bytearray()
        try:
            source = Inflated(packed)
        except ValueError:
            raise CodingError("damaged zstd: bytes that mean nothing in it") from None
        del packed
        while piece := source.read(PIECE_BYTES):
            yield piece
        if source.damage is not None:
            raise CodingError(f"damaged zstd: {source.damage}")
