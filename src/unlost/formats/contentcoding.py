"""Content codings undone: gzip, deflate, Brotli and Zstandard, piece by piece and without trust in what comes.

Servers, crawlers and archives lie about codings. What is not in the coding that a header names passes as it is; what is
and breaks off is given up to there, and said to be damaged: whoever asked decides what that means, and sets the limits.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from unlost.formats.unpackers import PIECE, BrokenError, Unpacker, unpacker

MAX_CODINGS = 4
"""In one body: nobody packs more than twice, and more is no mistake but an attack."""

UNDONE = frozenset({"gzip", "deflate", "br", "zstd"})
"""The codings that are undone."""

_HEAD = 512  # bytes that tell whether a body is text
_DOUBT = 1 << 16  # bytes: nothing that long comes to nothing by mistake
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f\x7f]")

# What stands in the place of a coding, and is none.
_NONE = {"", "identity", "none", "binary", "7bit", "8bit", "utf-8"}
_OTHER_NAMES = {"x-gzip": "gzip"}
# Real codings, by the list of IANA and by what servers were seen to send; a word that is in no list means nothing.
_NOT_UNDONE = {
    "compress", "x-compress", "dcb", "dcz", "exi", "aes128gcm", "pack200-gzip", "sdch", "bzip2", "lzma", "xz",
}  # fmt: skip


class UndecodableError(Exception):
    """A body in a coding that cannot be undone. Never seen by users: the message says why, the caller whose it was."""


def codings_of(values: Iterable[str]) -> list[str]:
    """Return the codings that fields of Content-Encoding name, in lower case, in the order in which they are undone.

    >>> codings_of(["x-gzip", "identity, deflate"])
    ['deflate', 'gzip']
    """
    names = [name.partition(";")[0].strip().lower() for value in values for name in value.split(",")]
    return [_OTHER_NAMES.get(name, name) for name in reversed(names) if name not in _NONE]


class Decoder:
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
        self._layers = [_Layer(coding) for coding in codings]

    @property
    def damage(self) -> str | None:
        """Of the first coding that is damaged."""
        return next((layer.damage for layer in self._layers if layer.damage), None)

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Yield what some more bytes decode to, some 64 KiB at a time at most. Raises UndecodableError."""
        return self._through(0, data)

    def end(self) -> Iterator[bytes]:
        """Yield what is left. Raises UndecodableError."""
        for depth, layer in enumerate(self._layers):
            for piece in layer.end():
                yield from self._through(depth + 1, piece)

    def _through(self, depth: int, data: bytes) -> Iterator[bytes]:
        if depth == len(self._layers):
            yield data
            return
        for begin in range(0, len(data), PIECE):
            for piece in self._layers[depth].decode(data[begin : begin + PIECE]):
                yield from self._through(depth + 1, piece)


def undone(chunks: Iterable[bytes], decoder: Decoder) -> Iterator[bytes]:
    """Yield a body without its codings; whether it was damaged, the decoder knows afterwards. Raises UndecodableError.

    >>> import zlib
    >>> b"".join(undone([zlib.compress(b"hello")], Decoder(["deflate"])))
    b'hello'
    """
    for chunk in chunks:
        yield from decoder.decode(chunk)
    yield from decoder.end()


class _Layer:
    """One coding. It looks at the first bytes to see what it has before it."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._block = bytearray()  # until there is enough: what is found does not depend on how it came
        self._has_begun = False
        self._given: bytearray | None = bytearray()  # while it may turn out not to be in the coding
        self._unpacker: Unpacker | None = None  # None from then on: what comes passes
        self.damage: str | None = None

    def decode(self, data: bytes) -> Iterator[bytes]:
        self._block += data
        while len(self._block) >= PIECE:
            block = bytes(self._block[:PIECE])
            del self._block[:PIECE]
            yield from self._taken(block, is_all=False)

    def end(self) -> Iterator[bytes]:
        if self._block:
            yield from self._taken(bytes(self._block), is_all=not self._has_begun)
        if self._unpacker is None or self.damage:
            return
        yield from self._tried(self._unpacker.end())

    def _taken(self, block: bytes, *, is_all: bool) -> Iterator[bytes]:
        """Yield what a block decodes to; the first one tells whether this is the coding."""
        if not self._has_begun:
            self._has_begun = True
            self._unpacker = self._opened(block, is_all=is_all)
            if self._unpacker is None or self._unpacker.is_certain:
                self._given = None
        yield from self._more(block)

    def _opened(self, head: bytes, *, is_all: bool) -> Unpacker | None:
        is_text = _CONTROL.search(head[:_HEAD]) is None
        if self._coding not in UNDONE:
            # `br with a dictionary` is not br.
            if not is_text and (self._coding in _NOT_UNDONE or self._coding.split()[0] in UNDONE):
                raise UndecodableError(f"in the coding `{ascii(self._coding)[1:-1][:40]}`, which cannot be undone")
            return None
        found = unpacker(self._coding, head)
        if not is_text or found is None or found.is_certain:
            return found
        # Text that says that it is packed: it is text, unless all of it happens to be something packed.
        return found if is_all and _is_whole(unpacker(self._coding, head), head) else None

    def _more(self, data: bytes) -> Iterator[bytes]:
        if self._unpacker is None:
            if data:
                yield data
        elif not self.damage:
            if self._given is not None:
                self._given += data
            yield from self._tried(self._unpacker.feed(data))
            if self._given is not None and len(self._given) > _DOUBT:
                self._given = None

    def _tried(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yield pieces; if the first is broken, what they would have been made of."""
        try:
            for piece in pieces:
                self._given = None
                yield piece
        except BrokenError as error:
            if self._given is not None and not error.is_beginning:
                self._unpacker = None
                yield bytes(self._given)
            else:
                self.damage = str(error)
            self._given = None


def _is_whole(found: Unpacker | None, data: bytes) -> bool:
    """Return whether data is packed from its beginning to its end; what gives much is believed without its end."""
    if found is None:
        return False
    try:
        for piece in chain(found.feed(data), found.end()):
            if len(piece) >= PIECE:
                return True
    except BrokenError:
        return False
    return True
