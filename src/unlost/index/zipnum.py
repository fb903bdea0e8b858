"""ZipNum: a sorted index in compressed blocks, with a list of the blocks' first keys for random access.

Both dialects are read: tab-separated block lists with an optional `.loc` file (Wayback, Common Crawl), and block lists
of JSON objects (WACZ). The first is written, since pywb serves only that.
"""

import io
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Self

from unlost.atomic import atomic_files
from unlost.errors import InputError
from unlost.problems import Problem, Problems, unreadable_error
from unlost.text_lines import MAX_LINE_BYTES, Line, read_stream_lines

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BLOCK_LINES = 3000
"""Lines a block, as the field has them."""

MAX_BLOCK_BYTES = 256 << 20
"""A block that inflates to more is read no further: 3000 lines of an index never do."""

_READ_BYTES = 64 << 10  # of a block at a time
_SKIP_BYTES = 1 << 20  # what the rest of a long line of the list is read by
_MAX_LOCATIONS_BYTES = 16 << 20  # of a `.loc` file: a line for each part, and the largest indexes have some hundred
_BAD_BLOCK = "bad-block"


class ZipNumBlock(NamedTuple):
    """One compressed block: the key of its first line, the file that it is in, where, and how long, in bytes."""

    key: bytes
    part: Path
    offset: int
    length: int


class ZipNumIndex:
    """An index of blocks, opened by its `.idx` file. Keys are searched as the index spells them.

    Nothing is held in memory but a line and what is inflated at a time. Raises InputError, naming the file and the
    byte, for what is no such index.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self._file = self.path.open("rb")
        except OSError as error:
            raise unreadable_error(path, error) from error
        self._size = self.path.stat().st_size
        try:
            self._locations = self._read_locations()
            self._resolved_parts: dict[str, Path | None] = {}
            self._default_part = self._read_meta()
        except OSError as error:
            self.close()
            raise unreadable_error(error.filename or path, error) from error
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

    def blocks(self, first: bytes = b"", problems: Problems | None = None) -> Iterator[ZipNumBlock]:
        """Yield the blocks that may hold keys from `first` on, in order.

        problems: gets lines of the list that cannot be read, as `bad-block`; without it they raise InputError.
        """
        return (block for _, block, _ in self._iter_blocks(self._find_last_before(first), problems))

    def lines(self, *keys: bytes, prefix: bool = False, problems: Problems | None = None) -> Iterator[bytes]:
        """Yield the lines, without their ends, whose key is one of these; with `prefix`, begins with one.

        They come in the order of the index, and each block is read once. problems: as for `blocks` and `block_lines`.
        """
        place = 0
        for key in sorted(keys):
            # Other keys may have been looked for here already.
            place = max(place, self._find_last_before(key))
            for begin, block, end in self._iter_blocks(place, problems):
                place = begin
                if not (block.key <= key or (prefix and block.key.startswith(key))):
                    break
                for line in self.block_lines(block, problems):
                    found = line.text.split(b" ", 1)[0]
                    if found in keys or (prefix and found.startswith(keys)):
                        yield line.text
                place = end

    def block_lines(self, block: ZipNumBlock, problems: Problems | None = None) -> Iterator[Line]:
        """Yield the lines of a block, with numbers and offsets that begin with it, in bounded memory.

        problems: gets `too-long` lines, which are passed over, and `bad-block` for a block that is not there, no gzip
        member, damaged, or too large; the lines before the damage are yielded. Their file is the part, their offset
        that of the block in it. Without it, they raise InputError.
        """
        name = str(block.part)
        found = Problems()
        try:
            with block.part.open("rb") as file:
                file.seek(block.offset)
                yield from read_stream_lines(
                    io.BufferedReader(_InflatedStream(file, block.length), _READ_BYTES), found, name
                )
        except OSError as error:
            found.add(Problem(_BAD_BLOCK, name, None, block.offset, f"cannot be read: {error.strerror}"))
        except (zlib.error, EOFError) as error:
            found.add(Problem(_BAD_BLOCK, name, None, block.offset, f"expected a gzip member: {error}"))
        for kind, first in found.first.items():
            _report_or_raise(Problem(kind, name, None, block.offset, first.message), problems, found.counts[kind])

    def _iter_blocks(self, place: int, problems: Problems | None) -> Iterator[tuple[int, ZipNumBlock, int]]:
        """Yield the blocks that are listed from a place on, each with where its line begins and ends."""
        while True:
            # Blocks may be looked up while others are being read: the file's own place is anybody's.
            begin = place
            line, place = self._read_line(begin)
            if not line:
                return
            if line.startswith(b"!") or not line.strip():
                continue
            try:
                block = self._parse_block(line)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                message = "expected `key date`, part, offset and length between tabs, or an object"
                _report_or_raise(Problem(_BAD_BLOCK, str(self.path), None, begin, message), problems)
            else:
                yield begin, block, place

    def _find_last_before(self, key: bytes) -> int:
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
            rest = self._file.readline(_SKIP_BYTES)
        return line, self._file.tell()

    def _parse_block(self, line: bytes) -> ZipNumBlock:
        """Read a line of the list. Raises what JSON and tuples do; whoever calls it says where."""
        if len(line) > MAX_LINE_BYTES:
            raise ValueError("too long")
        if b"\t" in line:
            head, part, offset, length = line.rstrip().split(b"\t")[:4]
            # Only the user's own .loc file may point out of the folder.
            where = self._resolve_part(os.fsdecode(part)) or self._sibling_file(os.fsdecode(part))
            return ZipNumBlock(head.split(b" ", 1)[0], where, _parse_byte_count(offset), _parse_byte_count(length))
        key, _, fields = line.split(b" ", 2)
        values = json.loads(fields)
        where = self._sibling_file(values.get("filename", self._default_part))
        return ZipNumBlock(key, where, _parse_byte_count(values["offset"]), _parse_byte_count(values["length"]))

    def _sibling_file(self, name: str) -> Path:
        """Return the file of that name in the folder of the list. Raises ValueError for what cannot be a name."""
        if b"\0" in os.fsencode(name):
            raise ValueError("no name")
        return self.path.parent / Path(name).name

    def _resolve_part(self, part: str) -> Path | None:
        """Return the first location of a part that exists, else the first one; None if the `.loc` file has none."""
        if part not in self._resolved_parts:
            paths = self._locations.get(part, ())
            self._resolved_parts[part] = next((path for path in paths if path.is_file()), next(iter(paths), None))
        return self._resolved_parts[part]

    def _read_locations(self) -> dict[str, tuple[Path, ...]]:
        """Return the locations of each part, alternatives in their order, from the `.loc` file of the same name."""
        file = self.path.with_suffix(".loc")
        if not file.is_file():
            return {}
        with file.open("rb") as opened:
            text = opened.read(_MAX_LOCATIONS_BYTES + 1)
        if len(text) > _MAX_LOCATIONS_BYTES or b"\0" in text:
            raise InputError(f"{file} (byte 0): expected lines of a name, a tab and a path, found something else")
        rows = (os.fsdecode(line).split("\t") for line in text.splitlines() if b"\t" in line)
        return {row[0]: tuple(file.parent / path for path in row[1:] if path) for row in rows}

    def _read_meta(self) -> str:
        """Return the one part of the dialect of objects."""
        first, _ = self._read_line(0)
        if first.startswith(b"!meta"):
            try:
                # Some tools write the path that they were given: the part is always beside the list.
                return self._sibling_file(str(json.loads(first[first.index(b"{") :])["filename"])).name
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise InputError(f"{self.path} (byte 0): expected an object with `filename` behind !meta") from error
        return self.path.with_suffix(".cdx.gz").name


class _InflatedStream(io.RawIOBase):
    """The text of the member at a file's place. Raises zlib.error or EOFError where it is damaged, and not before."""

    def __init__(self, file: BinaryIO, length: int) -> None:
        self._file = file
        self._stored = length
        self._room = MAX_BLOCK_BYTES
        self._inflate = zlib.decompressobj(wbits=31)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer).cast("B")
        text = b""
        while not text and not self._inflate.eof:
            stored = self._inflate.unconsumed_tail or self._file.read(min(_READ_BYTES, self._stored))
            if not self._inflate.unconsumed_tail:
                self._stored -= len(stored)
            text = self._inflate.decompress(stored, len(view))
            if not (stored or text or self._inflate.eof):
                raise EOFError("it ends in the middle")
        self._room -= len(text)
        if self._room < 0:
            raise EOFError("it is larger than any index block")
        view[: len(text)] = text
        return len(text)


def _report_or_raise(problem: Problem, problems: Problems | None, times: int = 1) -> None:
    """Count a problem, or raise it if nobody counts."""
    if problems is None:
        raise InputError(f"{problem.file} (byte {problem.offset}): {problem.message}")
    problems.add(problem, times)


def _parse_byte_count(value: object) -> int:
    """Return a number of bytes. Raises ValueError."""
    text = value.decode() if isinstance(value, bytes) else str(value)
    # 18 digits fit 63 bits, which is what files have.
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ValueError("no number of bytes")
    return int(text)


def zipnum_paths(path: str | PathLike[str]) -> tuple[Path, Path, Path]:
    """Return the files of a ZipNum that is written: its blocks, the `.loc` file, and the list of blocks itself."""
    index = Path(path)
    return index.with_suffix(".cdx.gz"), index.with_suffix(".loc"), index


def write_zipnum(lines: Iterable[bytes], path: str | PathLike[str], block_lines: int = BLOCK_LINES) -> int:
    """Write sorted lines, each with its end, as `NAME.idx`, `NAME.loc` and `NAME.cdx.gz`; return how many blocks.

    `path` names the `.idx`. The same lines make the same bytes. Raises InputError if the lines are not sorted by their
    key and date.
    """
    part, *_ = files = zipnum_paths(path)
    count = 0
    # None gets its name before all are written. The list is the last, so that what it points to exists after a kill.
    with atomic_files(files) as (blocks, locations, listing):
        locations.write(f"{part.name}\t{part.name}\n".encode())
        for count, (head, block) in enumerate(compress_blocks(lines, block_lines), 1):
            place = f"{part.name}\t{blocks.tell()}\t{len(block)}\t{count}"
            listing.write(head + f"\t{place}\n".encode())
            blocks.write(block)
    return count


def compress_blocks(lines: Iterable[bytes], block_lines: int = BLOCK_LINES) -> Iterator[tuple[bytes, bytes]]:
    """Yield sorted lines, each with its end, in gzip members: key and date of the first line, and the member.

    Raises InputError if the lines are not sorted by their key and date.
    """
    for block in _group_lines(lines, block_lines):
        # No name and no time in the member's header: the same lines make the same bytes.
        deflate = zlib.compressobj(wbits=31)
        data = deflate.compress(b"".join(block)) + deflate.flush()
        yield b" ".join(block[0].split(b" ", 2)[:2]), data


def _group_lines(lines: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
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
