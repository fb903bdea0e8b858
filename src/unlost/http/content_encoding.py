"""Content decoding: gzip, deflate, Brotli and Zstandard, in bounded pieces and without trusting headers or data.

A body that is not in the coding its header names passes unchanged. A damaged body is decoded up to the damage, and the
decoder reports it.
"""

import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
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


MAX_CODINGS = 4
"""In one body: nobody packs more than twice, and more is no mistake but an attack."""
SUPPORTED_CODINGS = frozenset({"gzip", "deflate", "br", "zstd"})
"""The codings that are undone."""
_TEXT_SNIFF_BYTES = 512  # bytes that tell whether a body is text
_MAX_FALLBACK_BYTES = 1 << 16  # bytes: nothing that long comes to nothing by mistake
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f\x7f]")
# What stands in the place of a coding, and is none.
_IDENTITY_CODINGS = {"", "identity", "none", "binary", "7bit", "8bit", "utf-8"}
_CODING_ALIASES = {"x-gzip": "gzip"}
# Real codings, by the list of IANA and by what servers were seen to send; a word that is in no list means nothing.
_UNSUPPORTED_CODINGS = {
    "compress", "x-compress", "dcb", "dcz", "exi", "aes128gcm", "pack200-gzip", "sdch", "bzip2", "lzma", "xz",
}  # fmt: skip


class UndecodableError(Exception):
    """A body in a coding that cannot be undone. Never seen by users: the message says why, the caller whose it was."""


def parse_content_encoding(values: Iterable[str]) -> list[str]:
    """Return the codings that fields of Content-Encoding name, in lower case, in the order in which they are undone.

    >>> parse_content_encoding(["x-gzip", "identity, deflate"])
    ['deflate', 'gzip']
    """
    names = [name.partition(";")[0].strip().lower() for value in values for name in value.split(",")]
    return [_CODING_ALIASES.get(name, name) for name in reversed(names) if name not in _IDENTITY_CODINGS]


class ContentDecoder:
    r"""Undoes codings, piece by piece.

    damage: how the body is damaged, in words; None if it is not, as far as is known. It is all known behind `end`.

    >>> decoder = ContentDecoder(["gzip"])
    >>> b"".join([*decoder.decode(b"no gzip at all"), *decoder.end()]), decoder.damage
    (b'no gzip at all', None)
    """

    def __init__(self, codings: Sequence[str]) -> None:
        """Raise UndecodableError for too many codings. codings: as `codings_of` gives them."""
        if len(codings) > MAX_CODINGS:
            raise UndecodableError(f"in {len(codings)} codings, where at most {MAX_CODINGS} are undone")
        self._layers = [_CodingLayer(coding) for coding in codings]

    @property
    def damage(self) -> str | None:
        """Of the first coding that is damaged."""
        return next((layer.damage for layer in self._layers if layer.damage), None)

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Yield what some more bytes decode to, some 64 KiB at a time at most. Raises UndecodableError."""
        return self._decode_from(0, data)

    def end(self) -> Iterator[bytes]:
        """Yield what is left. Raises UndecodableError."""
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
    """Yield a body without its codings; whether it was damaged, the decoder knows afterwards. Raises UndecodableError.

    >>> import zlib
    >>> b"".join(decode_chunks([zlib.compress(b"hello")], ContentDecoder(["deflate"])))
    b'hello'
    """
    for chunk in chunks:
        yield from decoder.decode(chunk)
    yield from decoder.end()


class _CodingLayer:
    """One coding. It looks at the first bytes to see what it has before it."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._block = bytearray()  # until there is enough: what is found does not depend on how it came
        self._has_begun = False
        self._fallback: bytearray | None = bytearray()  # while it may turn out not to be in the coding
        self._decompressor: Decompressor | None = None  # None from then on: what comes passes
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
        """Yield what a block decodes to; the first one tells whether this is the coding."""
        if not self._has_begun:
            self._has_begun = True
            self._decompressor = self._detect(block, is_all=is_all)
            if self._decompressor is None or self._decompressor.is_certain:
                self._fallback = None
        yield from self._feed(block)

    def _detect(self, head: bytes, *, is_all: bool) -> Decompressor | None:
        is_text = _CONTROL.search(head[:_TEXT_SNIFF_BYTES]) is None
        if self._coding not in SUPPORTED_CODINGS:
            # `br with a dictionary` is not br.
            if not is_text and (self._coding in _UNSUPPORTED_CODINGS or self._coding.split()[0] in SUPPORTED_CODINGS):
                raise UndecodableError(f"in the coding `{ascii(self._coding)[1:-1][:40]}`, which cannot be undone")
            return None
        found = detect_decompressor(self._coding, head)
        if not is_text or found is None or found.is_certain:
            return found
        # Text that says that it is packed: it is text, unless all of it happens to be something packed.
        return found if is_all and _is_complete(detect_decompressor(self._coding, head), head) else None

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
        """Yield pieces; if the first is broken, what they would have been made of."""
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


def _is_complete(found: Decompressor | None, data: bytes) -> bool:
    """Return whether data is packed from its beginning to its end; what gives much is believed without its end."""
    if found is None:
        return False
    try:
        for piece in chain(found.feed(data), found.end()):
            if len(piece) >= PIECE_BYTES:
                return True
    except CodingError:
        return False
    return True
