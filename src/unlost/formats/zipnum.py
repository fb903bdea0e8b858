"""ZipNum: a sorted index in compressed blocks, with a list of the blocks' first keys for random access.

Both dialects are read: lines of tabs (`key date TAB part TAB offset TAB length TAB number`, with an optional `.loc`
file that says where the parts are), as Wayback and Common Crawl have them, and lines of objects
(`key date {"offset": …}`, part named in a `!meta` line), as WACZ has them. The first is written, since only that is
served by pywb.
"""

import json
import zlib
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

from unlost.errors import InputError
from unlost.formats.output import whole_file

BLOCK_LINES = 3000
"""Lines a block, as the field has them."""

MAX_BLOCK_BYTES = 256 << 20
"""A block that inflates to more is refused: 3000 lines of an index never do."""


class Block(NamedTuple):
    """One compressed block: the key of its first line, the file that it is in, where, and how long, in bytes."""

    key: bytes
    part: Path
    offset: int
    length: int


class ZipNum:
    """An index of blocks, opened by its `.idx` file. Keys are searched as the index spells them.

    Nothing is held in memory but a block at a time. Raises InputError, naming the file and the byte, for what is no
    such index.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self._file = self.path.open("rb")
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from error
        self._size = self.path.stat().st_size
        try:
            self._parts = self._read_locations()
            self._only_part = self._read_meta()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def blocks(self, first: bytes = b"") -> Iterator[Block]:
        """Yield the blocks that may hold keys from `first` on, in order."""
        self._file.seek(self._last_before(first))
        place = self._file.tell()
        for line in self._file:
            if not line.startswith(b"!") and line.strip():
                yield self._block(line, place)
            place += len(line)

    def lines(self, key: bytes, *, prefix: bool = False) -> Iterator[bytes]:
        """Yield the lines, without their ends, whose key is this one; with `prefix`, begins with it."""
        for block in self.blocks(key):
            if not (block.key <= key or (prefix and block.key.startswith(key))):
                return
            for line in self.block_lines(block):
                found = line.split(b" ", 1)[0]
                if found == key or (prefix and found.startswith(key)):
                    yield line

    def block_lines(self, block: Block) -> Iterator[bytes]:
        """Yield the lines of a block, without their ends."""
        where = f"{block.part} (byte {block.offset})"
        try:
            with block.part.open("rb") as file:
                file.seek(block.offset)
                inflate = zlib.decompressobj(wbits=31)
                text = inflate.decompress(file.read(block.length), MAX_BLOCK_BYTES)
        except OSError as error:
            raise InputError(f"{where}: cannot be read: {error.strerror}") from error
        except zlib.error as error:
            raise InputError(f"{where}: expected a gzip member: {error}") from error
        if not inflate.eof:
            reason = "is larger than any index block" if len(text) >= MAX_BLOCK_BYTES else "ends in the middle"
            raise InputError(f"{where}: the block {reason}")
        yield from text.splitlines()

    def _last_before(self, key: bytes) -> int:
        """Return where the last line begins whose key is smaller than `key`, or the start.

        Smaller and not equal, since several blocks may begin with the same key, and the block before the first of them
        may end with it.
        """
        low, high = 0, self._size
        found = 0
        while low < high:
            middle = (low + high) // 2
            start, line = self._line_from(middle)
            if line and line.split(b" ", 1)[0] < key:
                found, low = start, start + len(line)
            else:
                high = middle
        return found

    def _line_from(self, place: int) -> tuple[int, bytes]:
        """Return the first line that begins at or behind a place, and where it begins."""
        self._file.seek(max(place - 1, 0))
        if place:
            self._file.readline()
        start = self._file.tell()
        return start, self._file.readline()

    def _block(self, line: bytes, place: int) -> Block:
        try:
            if b"\t" in line:
                head, part, offset, length = line.rstrip().split(b"\t")[:4]
                # Only the user's own .loc file may lead out of the folder.
                where = self._parts.get(part.decode()) or self.path.parent / Path(part.decode()).name
                return Block(head.split(b" ", 1)[0], where, int(offset), int(length))
            key, _, fields = line.split(b" ", 2)
            values = json.loads(fields)
            where = self.path.parent / Path(values.get("filename", self._only_part)).name
            return Block(key, where, int(values["offset"]), int(values["length"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = "expected `key date`, part, offset and length between tabs, or an object"
            raise InputError(f"{self.path} (byte {place}): {message}") from error

    def _read_locations(self) -> dict[str, Path]:
        """Return where the parts are: the `.loc` file of the same name says it, if there is one."""
        file = self.path.with_suffix(".loc")
        if not file.is_file():
            return {}
        rows = (line.split("\t") for line in file.read_text().splitlines() if "\t" in line)
        return {row[0]: file.parent / row[1] for row in rows}

    def _read_meta(self) -> str:
        """Return the one part of the dialect of objects."""
        first = self._file.readline()
        if first.startswith(b"!meta"):
            try:
                # Some tools write the path that they were given: the part is always beside the list.
                return Path(str(json.loads(first[first.index(b"{") :])["filename"])).name
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{self.path} (byte 0): expected an object with `filename` behind !meta") from error
        return self.path.with_suffix(".cdx.gz").name


def write_zipnum(lines: Iterable[bytes], path: str | PathLike[str], block_lines: int = BLOCK_LINES) -> int:
    """Write sorted lines, each with its end, as `NAME.idx`, `NAME.loc` and `NAME.cdx.gz`; return how many blocks.

    `path` names the `.idx`. The same lines make the same bytes. Raises InputError if the lines are not sorted.
    """
    index = Path(path)
    part = index.with_suffix(".cdx.gz")
    with whole_file(part) as blocks, whole_file(index) as listing:
        count = 0
        for count, block in enumerate(_blocks(lines, block_lines), 1):
            _write_block(block, part.name, count, blocks, listing)
        with whole_file(index.with_suffix(".loc")) as locations:
            locations.write(f"{part.name}\t{part.name}\n".encode())
    return count


def _blocks(lines: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    block: list[bytes] = []
    last = b""
    for number, line in enumerate(lines, 1):
        if line < last:
            raise InputError(f"line {number}: not sorted: a ZipNum index needs rows in byte order; sort them first")
        last = line
        block.append(line)
        if len(block) == size:
            yield block
            block = []
    if block:
        yield block


def _write_block(block: list[bytes], part: str, number: int, blocks: BinaryIO, listing: BinaryIO) -> None:
    # No name and no time in the member's header: the same lines make the same bytes.
    deflate = zlib.compressobj(wbits=31)
    data = deflate.compress(b"".join(block)) + deflate.flush()
    head = b" ".join(block[0].split(b" ", 2)[:2])
    listing.write(head + f"\t{part}\t{blocks.tell()}\t{len(data)}\t{number}\n".encode())
    blocks.write(data)
