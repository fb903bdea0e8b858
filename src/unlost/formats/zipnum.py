"""ZipNum: a sorted index in compressed blocks, with a list of the blocks' first keys for random access.

Both dialects are read: lines of tabs (`key date TAB part TAB offset TAB length TAB number`, with an optional `.loc`
file that says where the parts are), as Wayback and Common Crawl have them, and lines of objects
(`key date {"offset": …}`, part named in a `!meta` line), as WACZ has them. The first is written, since only that is
served by pywb.
"""

import json
import os
import zlib
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

from unlost.errors import InputError
from unlost.formats.lines import MAX_LINE_BYTES
from unlost.formats.output import whole_file
from unlost.formats.problems import Problem, Problems

BLOCK_LINES = 3000
"""Lines a block, as the field has them."""

MAX_BLOCK_BYTES = 256 << 20
"""Of a block that inflates to more the rest is left out: 3000 lines of an index never do."""

_STEP_BYTES = 1 << 20  # what is read or inflated at a time
_MAX_LOCATIONS_BYTES = 16 << 20  # the largest indexes have some hundred parts
_KIND = "bad-block"


class Block(NamedTuple):
    """One compressed block: the key of its first line, the file that it is in, where, and how long, in bytes."""

    key: bytes
    part: Path
    offset: int
    length: int


class ZipNum:
    """An index of blocks, opened by its `.idx` file. Keys are searched as the index spells them.

    Nothing is held in memory but a line and what is inflated at a time. Raises InputError, naming the file and the
    byte, for what is no such index.
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
        except OSError as error:
            self.close()
            raise InputError(f"{error.filename or path}: cannot be read: {error.strerror}") from error
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

    def blocks(self, first: bytes = b"", problems: Problems | None = None) -> Iterator[Block]:
        """Yield the blocks that may hold keys from `first` on, in order.

        problems: gets lines of the list that cannot be read, as `bad-block`; without it they raise InputError.
        """
        following = self._last_before(first)
        while True:
            place = following
            line, following = self._read_line(place)
            if not line:
                return
            if line.startswith(b"!") or not line.strip():
                continue
            try:
                block = self._block(line)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                message = "expected `key date`, part, offset and length between tabs, or an object"
                _tell(Problem(_KIND, str(self.path), None, place, message), problems)
            else:
                yield block

    def lines(self, key: bytes, *, prefix: bool = False, problems: Problems | None = None) -> Iterator[bytes]:
        """Yield the lines, without their ends, whose key is this one; with `prefix`, begins with it.

        problems: as for `blocks`.
        """
        for block in self.blocks(key, problems):
            if not (block.key <= key or (prefix and block.key.startswith(key))):
                return
            for line in self.block_lines(block, problems):
                found = line.split(b" ", 1)[0]
                if found == key or (prefix and found.startswith(key)):
                    yield line

    def block_lines(self, block: Block, problems: Problems | None = None) -> Iterator[bytes]:
        """Yield the lines of a block, without their ends; of a damaged one those before the damage.

        problems: gets the damage, as `bad-block`; without it it raises InputError.
        """
        try:
            yield from _lines(block)
        except _BlockError as error:
            _tell(Problem(_KIND, str(block.part), None, block.offset, str(error)), problems)

    def _last_before(self, key: bytes) -> int:
        """Return where the last line begins whose key is smaller than `key`, or the start.

        Smaller and not equal, since several blocks may begin with the same key, and the block before the first of them
        may end with it.
        """
        low, high = 0, self._size
        found = 0
        while low < high:
            middle = (low + high) // 2
            start = self._read_line(middle - 1)[1] if middle else 0
            line, following = self._read_line(start)
            if line and line.split(b" ", 1)[0] < key:
                found, low = start, following
            else:
                high = middle
        return found

    def _read_line(self, place: int) -> tuple[bytes, int]:
        """Return the line at a place, only the beginning of one that is too long, and where the next begins."""
        self._file.seek(place)
        line = rest = self._file.readline(MAX_LINE_BYTES + 1)
        while len(line) > MAX_LINE_BYTES and rest and not rest.endswith(b"\n"):
            rest = self._file.readline(_STEP_BYTES)
        return line, self._file.tell()

    def _block(self, line: bytes) -> Block:
        """Read a line of the list. Raises what JSON and tuples do; whoever calls it says where."""
        if len(line) > MAX_LINE_BYTES:
            raise ValueError("too long")
        if b"\t" in line:
            head, part, offset, length = line.rstrip().split(b"\t")[:4]
            # Only the user's own .loc file may lead out of the folder.
            where = self._parts.get(os.fsdecode(part)) or self._beside(os.fsdecode(part))
            return Block(head.split(b" ", 1)[0], where, _number(offset), _number(length))
        key, _, fields = line.split(b" ", 2)
        values = json.loads(fields)
        where = self._beside(values.get("filename", self._only_part))
        return Block(key, where, _number(values["offset"]), _number(values["length"]))

    def _beside(self, name: str) -> Path:
        """Return the file of that name in the folder of the list. Raises ValueError for what cannot be a name."""
        if b"\0" in os.fsencode(name):
            raise ValueError("no name")
        return self.path.parent / Path(name).name

    def _read_locations(self) -> dict[str, Path]:
        """Return where the parts are: the `.loc` file of the same name says it, if there is one."""
        file = self.path.with_suffix(".loc")
        if not file.is_file():
            return {}
        with file.open("rb") as opened:
            text = opened.read(_MAX_LOCATIONS_BYTES + 1)
        if len(text) > _MAX_LOCATIONS_BYTES or b"\0" in text:
            raise InputError(f"{file} (byte 0): expected lines of a name, a tab and a path, found something else")
        rows = (os.fsdecode(line).split("\t") for line in text.splitlines() if b"\t" in line)
        return {row[0]: file.parent / row[1] for row in rows}

    def _read_meta(self) -> str:
        """Return the one part of the dialect of objects."""
        first, _ = self._read_line(0)
        if first.startswith(b"!meta"):
            try:
                # Some tools write the path that they were given: the part is always beside the list.
                return self._beside(str(json.loads(first[first.index(b"{") :])["filename"])).name
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise InputError(f"{self.path} (byte 0): expected an object with `filename` behind !meta") from error
        return self.path.with_suffix(".cdx.gz").name


class _BlockError(Exception):
    """What is wrong with a block; never leaves this module."""


def _tell(problem: Problem, problems: Problems | None) -> None:
    """Count a problem, or raise it if nobody counts."""
    if problems is None:
        raise InputError(f"{problem.file} (byte {problem.offset}): {problem.message}")
    problems.add(problem)


def _number(value: object) -> int:
    """Return a number of bytes. Raises ValueError."""
    text = value.decode() if isinstance(value, bytes) else str(value)
    # 18 digits fit 63 bits, which is what files have.
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ValueError("no number of bytes")
    return int(text)


def _lines(block: Block) -> Iterator[bytes]:
    rest = b""
    for text in _inflated(block):
        *lines, rest = (rest + text).split(b"\n")
        yield from (line.removesuffix(b"\r") for line in lines)
        if len(rest) > MAX_LINE_BYTES:
            raise _BlockError(f"expected lines of at most {MAX_LINE_BYTES} bytes")
    if rest:
        yield rest


def _inflated(block: Block) -> Iterator[bytes]:
    """Yield the text of a block, a little at a time, whatever its length is said to be."""
    inflate = zlib.decompressobj(wbits=31)
    inflated, left = 0, block.length
    try:
        with block.part.open("rb") as file:
            file.seek(block.offset)
            while not inflate.eof:
                data = inflate.unconsumed_tail or file.read(min(left, _STEP_BYTES))
                left -= 0 if inflate.unconsumed_tail else len(data)
                text = inflate.decompress(data, _STEP_BYTES)
                inflated += len(text)
                if inflated > MAX_BLOCK_BYTES:
                    raise _BlockError("the block is larger than any index block")
                if not (data or text or inflate.eof):
                    raise _BlockError("the block ends in the middle")
                yield text
    except OSError as error:
        raise _BlockError(f"cannot be read: {error.strerror}") from error
    except zlib.error as error:
        raise _BlockError(f"expected a gzip member: {error}") from error


def write_zipnum(lines: Iterable[bytes], path: str | PathLike[str], block_lines: int = BLOCK_LINES) -> int:
    """Write sorted lines, each with its end, as `NAME.idx`, `NAME.loc` and `NAME.cdx.gz`; return how many blocks.

    `path` names the `.idx`. The same lines make the same bytes. Raises InputError if the lines are not sorted by their
    key and date.
    """
    index = Path(path)
    part = index.with_suffix(".cdx.gz")
    # The list gets its name last: what it leads to is there by then, also if we are killed in between.
    with whole_file(index) as listing:
        count = 0
        with whole_file(part) as blocks:
            for count, block in enumerate(_blocks(lines, block_lines), 1):
                _write_block(block, part.name, count, blocks, listing)
        with whole_file(index.with_suffix(".loc")) as locations:
            locations.write(f"{part.name}\t{part.name}\n".encode())
    return count


def _blocks(lines: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    block: list[bytes] = []
    last: list[bytes] = []
    for number, line in enumerate(lines, 1):
        # Not the whole line: rows that were sorted in another format differ in what comes behind.
        head = line.split(b" ", 2)[:2]
        if head < last:
            raise InputError(f"line {number}: not sorted: a ZipNum index needs rows in byte order; sort them first")
        last = head
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
