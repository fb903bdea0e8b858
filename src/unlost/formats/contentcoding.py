"""Content codings undone: gzip, deflate, Brotli and Zstandard, piece by piece and without trust in what comes.

Servers, crawlers and archives lie about codings. What is not in the coding that a header names passes as it is; what is
and breaks off is given up to there, and said to be damaged: whoever asked decides what that means, and sets the limits.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from unlost.formats.unpackers import PIECE_BYTES, CodingError, Decompressor, detect_decompressor

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

    >>> codings_of(["x-gzip", "identity, deflate"])
    ['deflate', 'gzip']
    """
    names = [name.partition(";")[0].strip().lower() for value in values for name in value.split(",")]
    return [_CODING_ALIASES.get(name, name) for name in reversed(names) if name not in _IDENTITY_CODINGS]


class ContentDecoder:
    r"""Undoes codings, piece by piece.

    damage: how the body is damaged, in words; None if it is not, as far as is known. It is all known behind `end`.

    >>> decoder = Decoder(["gzip"])
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
    >>> b"".join(undone([zlib.compress(b"hello")], Decoder(["deflate"])))
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
