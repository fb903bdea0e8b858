"""Content codings undone: gzip, deflate, Brotli and Zstandard, piece by piece and without trust in what comes."""

import zlib
from collections.abc import Callable, Iterator

import brotli

from unlost._core import Inflated
from unlost.errors import ArchiveFileError

_PIECE = 1 << 16  # bytes given at once, whatever a bomb would give
_MAX_ZSTD_BYTES = 1 << 26  # stored: it is unpacked from memory
_MAX_CODINGS = 4  # nobody packs more than twice

_GZIP = 16 + zlib.MAX_WBITS
_RAW = -zlib.MAX_WBITS


def undone(chunks: Iterator[bytes], codings: str) -> Iterator[bytes]:
    """Yield a body without its content codings, which are named as in Content-Encoding: the last one goes first.

    No piece is larger than some 64 KiB, however much it was packed: whoever keeps them counts them. Raises
    ArchiveFileError for a coding that is not known, before anything is yielded, and for a body that is not in it or
    not all there, behind all that could be unpacked. An empty body is in every coding.

    >>> b"".join(undone(iter([zlib.compress(b"hello")]), "deflate"))
    b'hello'
    >>> b"".join(undone(iter([b"hello"]), "identity"))
    b'hello'
    """
    names = [name for name in (each.strip().lower() for each in codings.split(",")) if name not in ("", "identity")]
    if len(names) > _MAX_CODINGS:
        raise ArchiveFileError(f"expected at most {_MAX_CODINGS} content codings, found {len(names)}")
    for name in names:
        if name not in _CODINGS:
            raise ArchiveFileError(
                f"expected a body in gzip, deflate, br or zstd, found the content coding {ascii(name)[:40]}"
            )
    for name in reversed(names):
        chunks = _CODINGS[name](chunks)
    return chunks


def _gzip(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Any number of members, one behind the other; what is behind the last and no member is passed over."""
    inflater, rest = zlib.decompressobj(_GZIP), b""
    begun = False
    for chunk in chunks:
        data, rest = rest + chunk, b""
        while data:
            if inflater.eof:
                if len(data) < 2:
                    rest = data
                    break
                if data[:2] != b"\x1f\x8b":
                    return
                inflater = zlib.decompressobj(_GZIP)
            begun = True
            piece, data = _inflated(inflater, data, "gzip")
            if piece:
                yield piece
    if begun and not inflater.eof:
        raise ArchiveFileError("expected a body in gzip, found one that ends before its end")


def _deflate(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """With the zlib header that the standard demands, or without it, as some servers have always sent it."""
    inflater = None
    for chunk in chunks:
        data = chunk
        if inflater is None and data:
            inflater = zlib.decompressobj(zlib.MAX_WBITS if data[0] & 0x0F == 8 else _RAW)
        while data and inflater is not None and not inflater.eof:
            piece, data = _inflated(inflater, data, "deflate")
            if piece:
                yield piece
    if inflater is not None and not inflater.eof:
        raise ArchiveFileError("expected a body in deflate, found one that ends before its end")


def _inflated(inflater: "zlib._Decompress", data: bytes, name: str) -> tuple[bytes, bytes]:
    """Return a piece of text, and what was not looked at for it."""
    try:
        piece = inflater.decompress(data, _PIECE)
    except zlib.error as error:
        raise ArchiveFileError(f"expected a body in {name}: {error}") from None
    return piece, inflater.unconsumed_tail or inflater.unused_data


def _brotli(chunks: Iterator[bytes]) -> Iterator[bytes]:
    unpacker, begun = brotli.Decompressor(), False
    try:
        for chunk in chunks:
            data = chunk
            # It says that it can take more while it still has something to give: only an empty piece tells.
            while not unpacker.is_finished():
                begun = begun or bool(data)
                piece = unpacker.process(data, output_buffer_limit=_PIECE)
                data = b""
                if piece:
                    yield piece
                elif unpacker.can_accept_more_data():
                    break
    except brotli.error:
        raise ArchiveFileError("expected a body in br, found bytes that mean nothing in it") from None
    if begun and not unpacker.is_finished():
        raise ArchiveFileError("expected a body in br, found one that ends before its end")


def _zstd(chunks: Iterator[bytes]) -> Iterator[bytes]:
    packed = bytearray()
    for chunk in chunks:
        packed += chunk
        if len(packed) > _MAX_ZSTD_BYTES:
            raise ArchiveFileError(f"expected a body in zstd of at most {_MAX_ZSTD_BYTES} bytes, found more")
    if not packed:
        return
    if packed[:2] == b"\x1f\x8b":
        raise ArchiveFileError("expected a body in zstd, found gzip")
    try:
        source = Inflated(bytes(packed))
    except ValueError:
        raise ArchiveFileError("expected a body in zstd, found bytes that mean nothing in it") from None
    del packed
    while piece := source.read(_PIECE):
        yield piece
    if source.damage is not None:
        raise ArchiveFileError(f"expected a body in zstd, found one that is {source.damage}")


_CODINGS: dict[str, Callable[[Iterator[bytes]], Iterator[bytes]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
