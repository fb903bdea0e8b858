"""Content decoding: gzip, deflate, Brotli and Zstandard, in bounded pieces, without trusting headers or data.

A body that is not in the coding its header names passes unchanged: the Content-Encoding that archives send is often
wrong for captures that were compressed. A damaged body is decoded up to the damage, which the decoder reports.
"""

import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Protocol

import brotli

from unlost._core import Inflated

MAX_CODINGS = 4
"""Codings of one body. Servers apply one, by mistake two; more is an attack."""
SUPPORTED_CODINGS = frozenset({"gzip", "deflate", "br", "zstd"})
"""The codings that can be decoded."""
PIECE_BYTES = 1 << 16
"""Largest piece of decoded data, also of a decompression bomb."""
_MAX_ZSTD_BYTES = 1 << 26  # encoded size; the data is decoded from memory
# The Brotli decoder loses all output of a step in which it meets damage, so steps are small. The first one is larger,
# because it decides whether the data is Brotli at all: of 2,000 bodies of random bytes, 7 in 100 pass for the beginning
# of Brotli data; of files of common types, none did.
_BROTLI_HEAD = 4096
_BROTLI_STEP = 256
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"  # of a skippable frame, after a byte from 50 to 5f (RFC 8878, section 3.1.2)
_WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS, "raw": -zlib.MAX_WBITS}
_TEXT_SNIFF_BYTES = 512  # beginning of a body that decides whether it is text
_MAX_FALLBACK_BYTES = 1 << 16  # beyond, data that yields no output is certain to be in its coding
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f\x7f]")
# Values of Content-Encoding that are not codings.
_IDENTITY_CODINGS = {"", "identity", "none", "binary", "7bit", "8bit", "utf-8"}
_CODING_ALIASES = {"x-gzip": "gzip"}  # RFC 9110, section 8.4.1.3
# Codings registered by IANA or observed on servers. Any other unknown name is ignored.
_UNSUPPORTED_CODINGS = {
    "compress", "x-compress", "dcb", "dcz", "exi", "aes128gcm", "pack200-gzip", "sdch", "bzip2", "lzma", "xz",
}  # fmt: skip


class CodingError(Exception):
    """Data is not valid in a coding, or is truncated. Handled by `ContentDecoder`.

    Attributes:
        is_truncated: All data is valid, but the end is missing.
    """

    def __init__(self, message: str, *, is_truncated: bool = False) -> None:
        super().__init__(message)
        self.is_truncated = is_truncated


class Decompressor(Protocol):
    """Decompresses one coding. Trailing data that is not in the coding is ignored.

    Attributes:
        is_certain: The first bytes leave no doubt that the data is in the coding.
    """

    is_certain: bool

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decompressed form of more data. Raises CodingError."""
        ...

    def end(self) -> Iterator[bytes]:
        """Yield the remaining output. Raises CodingError if the data is truncated."""
        ...


def detect_decompressor(coding: str, head: bytes) -> Decompressor | None:
    """Return a decompressor for a coding, by the first bytes of a body; None if they are not in the coding.

    Args:
        coding: `gzip`, `deflate`, `br` or `zstd`. Data that begins as gzip is gzip whatever the name: servers declare
            it wrongly more often than other codings.
        head: The first bytes of the body.
    """
    if _is_gzip(head) and (coding == "gzip" or len(head) > len(_GZIP)):
        return _ZlibDecompressor("gzip")
    if coding == "deflate":
        # With the zlib header of RFC 9110, section 8.4.1.2, or raw, as some servers have always sent it.
        has_header = head[0] & 0x0F == 8 and int.from_bytes(head[:2], "big") % 31 == 0
        return _ZlibDecompressor("deflate" if has_header else "raw")
    if coding == "br":
        return _BrotliDecompressor()
    if coding == "zstd" and (head.startswith(_ZSTD) or (head[1:4] == _ZSTD_SKIPPABLE and head[0] >> 4 == 5)):
        return _ZstdDecompressor()
    return None


def _is_gzip(head: bytes) -> bool:
    """Return whether data may begin a gzip member: magic, method 8, reserved flags 0 (RFC 1952, section 2.3.1)."""
    return head.startswith(_GZIP) and head[2:3] in (b"", b"\x08") and not (head[3:4] or b"\0")[0] & 0xE0


class _ZlibDecompressor:
    """Deflate in gzip, zlib or raw format. A gzip body may have any number of members."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._stream = zlib.decompressobj(_WINDOWS[form])
        self._rest = b""  # data after a member, too short to decide whether another one begins
        self._is_confirmed = form != "raw"  # raw deflate has no header: the first output confirms it
        self.is_certain = form == "gzip"

    def feed(self, data: bytes) -> Iterator[bytes]:
        data, self._rest = self._rest + data, b""
        is_full = False
        while data or is_full:
            if self._stream.eof:
                if self._form != "gzip" or not data.startswith(_GZIP[: len(data)]):
                    return  # padding and other trailing data, which all readers ignore
                if len(data) < len(_GZIP):
                    self._rest = data
                    return
                self._stream = zlib.decompressobj(_WINDOWS["gzip"])
            # zlib discards the output of a call in which it meets damage. The copy repeats it byte by byte.
            before = self._stream.copy() if self._is_confirmed and len(data) > 1 else None
            try:
                piece = self._stream.decompress(data, PIECE_BYTES)
            except zlib.error as error:
                yield from _decompress_until_damage(before, data)
                raise CodingError(f"damaged {self._name}: {error}") from None
            is_full = len(piece) == PIECE_BYTES and not self._stream.eof
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
    """Decompress byte by byte, and yield all output before the byte that zlib rejects."""
    with suppress(zlib.error):
        for position in range(len(data) if stream else 0):
            pending = data[position : position + 1]
            while stream and pending:
                if piece := stream.decompress(pending, PIECE_BYTES):
                    yield piece
                pending = stream.unconsumed_tail


class _BrotliDecompressor:
    is_certain = False

    def __init__(self) -> None:
        self._stream = brotli.Decompressor()
        self._step = _BROTLI_HEAD

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            piece, data = data[: self._step], data[self._step :]
            yield from self._decompress(piece)
            self._step = _BROTLI_STEP

    def _decompress(self, data: bytes) -> Iterator[bytes]:
        try:
            # can_accept_more_data() may be true while output is pending: only an empty piece means that there is none.
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
    """Zstandard, decompressed at its end, because the core takes it in one piece."""

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


class UndecodableError(Exception):
    """A body is in a coding that cannot be decoded. The message gives the reason; the caller adds the URL."""


def parse_content_encoding(values: Iterable[str]) -> list[str]:
    """Return the codings of Content-Encoding fields, in lower case, in the order of decoding.

    >>> parse_content_encoding(["x-gzip", "identity, deflate"])
    ['deflate', 'gzip']
    """
    names = [name.partition(";")[0].strip().lower() for value in values for name in value.split(",")]
    return [_CODING_ALIASES.get(name, name) for name in reversed(names) if name not in _IDENTITY_CODINGS]


class ContentDecoder:
    r"""Decodes a body, piece by piece.

    >>> decoder = ContentDecoder(["gzip"])
    >>> b"".join([*decoder.decode(b"no gzip at all"), *decoder.end()]), decoder.damage
    (b'no gzip at all', None)
    """

    def __init__(self, codings: Sequence[str]) -> None:
        """Create a decoder for codings as returned by `parse_content_encoding`.

        Raises:
            UndecodableError: There are more than `MAX_CODINGS`.
        """
        if len(codings) > MAX_CODINGS:
            raise UndecodableError(f"in {len(codings)} codings, where at most {MAX_CODINGS} are undone")
        self._layers = [_CodingLayer(coding) for coding in codings]

    @property
    def damage(self) -> str | None:
        """The first damage found; None if there is none so far. It is complete only after `end`."""
        return next((layer.damage for layer in self._layers if layer.damage), None)

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Yield the decoded form of more data, in pieces of about 64 KiB. Raises UndecodableError."""
        return self._decode_from(0, data)

    def end(self) -> Iterator[bytes]:
        """Yield the remaining output. Raises UndecodableError."""
        for depth, layer in enumerate(self._layers):
            for piece in layer.end():
                yield from self._decode_from(depth + 1, piece)

    def _decode_from(self, depth: int, data: bytes) -> Iterator[bytes]:
        if depth == len(self._layers):
            yield data
            return
        for begin in range(0, len(data), PIECE_BYTES):
            for piece in self._layers[depth].decode(data[begin : begin + PIECE_BYTES]):
                yield from self._decode_from(depth + 1, piece)


def decode_chunks(chunks: Iterable[bytes], decoder: ContentDecoder) -> Iterator[bytes]:
    """Yield a decoded body. `decoder.damage` reports damage afterwards. Raises UndecodableError.

    >>> import zlib
    >>> b"".join(decode_chunks([zlib.compress(b"hello")], ContentDecoder(["deflate"])))
    b'hello'
    """
    for chunk in chunks:
        yield from decoder.decode(chunk)
    yield from decoder.end()


class _CodingLayer:
    """One coding of a body. The first block decides whether the body is in the coding at all."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._block = bytearray()  # collects a whole block, so that detection does not depend on the size of pieces
        self._has_begun = False
        self._fallback: bytearray | None = bytearray()  # the data itself, while it may turn out not to be in the coding
        self._decompressor: Decompressor | None = None  # None after detection: data passes unchanged
        self.damage: str | None = None

    def decode(self, data: bytes) -> Iterator[bytes]:
        self._block += data
        while len(self._block) >= PIECE_BYTES:
            block = bytes(self._block[:PIECE_BYTES])
            del self._block[:PIECE_BYTES]
            yield from self._decode_block(block, is_all=False)

    def end(self) -> Iterator[bytes]:
        if self._block:
            yield from self._decode_block(bytes(self._block), is_all=not self._has_begun)
        if self._decompressor is None or self.damage:
            return
        yield from self._guard(self._decompressor.end())

    def _decode_block(self, block: bytes, *, is_all: bool) -> Iterator[bytes]:
        """Yield a decoded block. The first one decides whether the body is in the coding."""
        if not self._has_begun:
            self._has_begun = True
            self._decompressor = self._detect(block, is_all=is_all)
            if self._decompressor is None or self._decompressor.is_certain:
                self._fallback = None
        yield from self._feed(block)

    def _detect(self, head: bytes, *, is_all: bool) -> Decompressor | None:
        is_text = _CONTROL.search(head[:_TEXT_SNIFF_BYTES]) is None
        if self._coding not in SUPPORTED_CODINGS:
            # `br`, followed by anything such as a dictionary, is not plain Brotli.
            if not is_text and (self._coding in _UNSUPPORTED_CODINGS or self._coding.split()[0] in SUPPORTED_CODINGS):
                raise UndecodableError(f"in the coding `{ascii(self._coding)[1:-1][:40]}`, which cannot be undone")
            return None
        decompressor = detect_decompressor(self._coding, head)
        if not is_text or decompressor is None or decompressor.is_certain:
            return decompressor
        # Text with a Content-Encoding was stored decoded, unless all of it happens to be valid in the coding.
        return decompressor if is_all and _is_complete(detect_decompressor(self._coding, head), head) else None

    def _feed(self, data: bytes) -> Iterator[bytes]:
        if self._decompressor is None:
            if data:
                yield data
        elif not self.damage:
            if self._fallback is not None:
                self._fallback += data
            yield from self._guard(self._decompressor.feed(data))
            if self._fallback is not None and len(self._fallback) > _MAX_FALLBACK_BYTES:
                self._fallback = None

    def _guard(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yield decoded pieces. If the first one fails, yield the data itself."""
        try:
            for piece in pieces:
                self._fallback = None
                yield piece
        except CodingError as error:
            if self._fallback is not None and not error.is_truncated:
                self._decompressor = None
                yield bytes(self._fallback)
            else:
                self.damage = str(error)
            self._fallback = None


def _is_complete(decompressor: Decompressor | None, data: bytes) -> bool:
    """Return whether all data is in the coding. Output of a whole piece is sufficient."""
    if decompressor is None:
        return False
    try:
        for piece in chain(decompressor.feed(data), decompressor.end()):
            if len(piece) >= PIECE_BYTES:
                return True
    except CodingError:
        return False
    return True
