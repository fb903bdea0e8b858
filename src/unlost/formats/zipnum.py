"""ZipNum: a sorted index in compressed blocks, with a list of the blocks' first keys for random access.

Both dialects are read: lines of tabs (`key date TAB part TAB offset TAB length TAB number`, with an optional `.loc`
file that says where the parts are), as Wayback and Common Crawl have them, and lines of objects
(`key date {"offset": …}`, part named in a `!meta` line), as WACZ has them. The first is written, since only that is
served by pywb.
"""

import io
import json
import zlib
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Self

from unlost.errors import InputError
from unlost.formats.lines import Line, read_lines
from unlost.formats.output import whole_file
from unlost.formats.problems import Problem, Problems

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BLOCK_LINES = 3000
"""Lines a block, as the field has them."""

MAX_BLOCK_BYTES = 256 << 20
"""A block that inflates to more is read no further: 3000 lines of an index never do."""

_READ_BYTES = 64 << 10  # of a block at a time
_MAX_LISTED_BYTES = 8 << 20  # of a line of the list, as of any line
_MAX_LOCATIONS_BYTES = 16 << 20  # of a `.loc` file: a line for each part, and the largest indexes have some hundred


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
        place = self._last_before(first)
        while True:
            # Blocks may be looked up while others are being read.
            self._file.seek(place)
            if not (line := self._listed()):
                return
            if not line.startswith(b"!") and line.strip():
                yield self._block(line, place)
            place += len(line)

    def lines(self, key: bytes, problems: Problems, *, prefix: bool = False) -> Iterator[bytes]:
        """Yield the lines, without their ends, whose key is this one; with `prefix`, begins with it.

        What cannot be read is counted as `block_lines` does.
        """
        for block in self.blocks(key):
            if not (block.key <= key or (prefix and block.key.startswith(key))):
                return
            for line in self.block_lines(block, problems):
                found = line.text.split(b" ", 1)[0]
                if found == key or (prefix and found.startswith(key)):
                    yield line.text

    def block_lines(self, block: Block, problems: Problems) -> Iterator[Line]:
        """Yield the lines of a block, with numbers and offsets that begin with it, in bounded memory.

        Problems: `too-long` lines, and `bad-block` for one that is not there, no gzip member, damaged, or too large;
        what comes before the damage is yielded. Their file is the part, their offset that of the block in it.
        """
        name = str(block.part)
        found = Problems()
        try:
            with _BlockText(block) as text:
                yield from read_lines(text, found, name)
        except (OSError, zlib.error, EOFError) as error:
            reason = error.strerror or "not there" if isinstance(error, OSError) else str(error)
            problems.add(Problem("bad-block", name, None, block.offset, f"expected a gzip member: {reason}"))
        for kind, first in found.first.items():
            problems.add(Problem(kind, name, None, block.offset, first.message), found.counts[kind])

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
            self._listed()
        start = self._file.tell()
        return start, self._listed()

    def _listed(self) -> bytes:
        line = self._file.readline(_MAX_LISTED_BYTES)
        if len(line) == _MAX_LISTED_BYTES:
            place = self._file.tell() - len(line)
            raise InputError(f"{self.path} (byte {place}): expected lines of less than {_MAX_LISTED_BYTES} bytes")
        return line

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
        with file.open("rb") as opened:
            text = opened.read(_MAX_LOCATIONS_BYTES + 1)
        if len(text) > _MAX_LOCATIONS_BYTES:
            raise InputError(f"{file}: expected at most {_MAX_LOCATIONS_BYTES} bytes, found more")
        rows = (line.split("\t") for line in text.decode("utf-8", "surrogateescape").splitlines() if "\t" in line)
        return {row[0]: file.parent / row[1] for row in rows}

    def _read_meta(self) -> str:
        """Return the one part of the dialect of objects."""
        first = self._listed()
        if first.startswith(b"!meta"):
            try:
                # Some tools write the path that they were given: the part is always beside the list.
                return Path(str(json.loads(first[first.index(b"{") :])["filename"])).name
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{self.path} (byte 0): expected an object with `filename` behind !meta") from error
        return self.path.with_suffix(".cdx.gz").name


class _BlockText(io.BufferedReader):
    """The text of a block. Raises zlib.error or EOFError where it is damaged, once everything before was read."""

    def __init__(self, block: Block) -> None:
        super().__init__(_Inflated(block), _READ_BYTES)


class _Inflated(io.RawIOBase):
    def __init__(self, block: Block) -> None:
        self._file = block.part.open("rb")
        self._file.seek(block.offset)
        self._stored = block.length
        self._room = MAX_BLOCK_BYTES
        self._inflate = zlib.decompressobj(wbits=31)

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer).cast("B")
        text = b""
        while not text and not self._inflate.eof:
            stored = self._inflate.unconsumed_tail or self._file.read(min(_READ_BYTES, self._stored))
            if not self._inflate.unconsumed_tail:
                self._stored -= len(stored)
            text = self._inflate.decompress(stored, len(view))
            if not stored and not text:
                raise EOFError("it ends in the middle")
        self._room -= len(text)
        if self._room < 0:
            raise EOFError("it is larger than any index block")
        view[: len(text)] = text
        return len(text)


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
