"""ZipNum: a sorted index in compressed blocks, with a list of the blocks' first keys for random access.

Two dialects are read: tab-separated block lists with an optional `.loc` file (Wayback, Common Crawl), and block lists
of JSON objects (WACZ). The first one is written, because pywb supports only that.
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
"""The usual number of lines per block."""

MAX_BLOCK_BYTES = 256 << 20
"""Decompressed size at which reading a block stops; 3000 index lines never reach it."""

_READ_BYTES = 64 << 10  # of a block at a time
_SKIP_BYTES = 1 << 20  # chunks in which the rest of an overlong line is skipped
_MAX_LOCATIONS_BYTES = 16 << 20  # of a `.loc` file: one line per part, and the largest indexes have hundreds of parts
_BAD_BLOCK = "bad-block"


class ZipNumBlock(NamedTuple):
    """One compressed block: the key of its first line, its file, and its offset and length there in bytes."""

    key: bytes
    part: Path
    offset: int
    length: int


class ZipNumIndex:
    """A ZipNum index, opened by its `.idx` file. Keys are compared as the index spells them.

    Only one line and one buffer of decompressed text are held in memory. Raises InputError, with the file and the byte
    offset, for invalid files.
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
        """Close the block list."""
        self.close()

    def close(self) -> None:
        """Close the block list."""
        self._file.close()

    def blocks(self, first: bytes = b"", problems: Problems | None = None) -> Iterator[ZipNumBlock]:
        """Yield the blocks that may contain keys from `first` on, in order.

        Invalid lines of the block list are added to `problems` as `bad-block`; without it, they raise InputError.
        """
        return (block for _, block, _ in self._iter_blocks(self._find_last_before(first), problems))

    def lines(self, *keys: bytes, prefix: bool = False, problems: Problems | None = None) -> Iterator[bytes]:
        """Yield the lines, without line ends, whose key is one of `keys`; with `prefix`, begins with one of them.

        Lines are in the order of the index, and each block is read once. `problems` is as in `blocks` and
        `block_lines`.
        """
        position = 0
        for key in sorted(keys):
            # Blocks before this position were searched for the previous keys.
            position = max(position, self._find_last_before(key))
            for begin, block, end in self._iter_blocks(position, problems):
                position = begin
                if not (block.key <= key or (prefix and block.key.startswith(key))):
                    break
                for line in self.block_lines(block, problems):
                    line_key = line.text.split(b" ", 1)[0]
                    if line_key in keys or (prefix and line_key.startswith(keys)):
                        yield line.text
                position = end

    def block_lines(self, block: ZipNumBlock, problems: Problems | None = None) -> Iterator[Line]:
        """Yield the lines of a block, with numbers and offsets relative to it, in bounded memory.

        Args:
            block: The block.
            problems: Collects `too-long` lines, which are skipped, and `bad-block` for a block that is missing,
                damaged, too large or not a gzip member; the lines before the damage are yielded. None to raise
                InputError instead.
        """
        name = str(block.part)
        block_problems = Problems()
        try:
            with block.part.open("rb") as file:
                file.seek(block.offset)
                yield from read_stream_lines(
                    io.BufferedReader(_InflatedStream(file, block.length), _READ_BYTES), block_problems, name
                )
        except OSError as error:
            block_problems.add(Problem(_BAD_BLOCK, name, None, block.offset, f"cannot be read: {error.strerror}"))
        except (zlib.error, EOFError) as error:
            block_problems.add(Problem(_BAD_BLOCK, name, None, block.offset, f"expected a gzip member: {error}"))
        for kind, first in block_problems.first.items():
            _report_or_raise(
                Problem(kind, name, None, block.offset, first.message), problems, block_problems.counts[kind]
            )

    def _iter_blocks(self, position: int, problems: Problems | None) -> Iterator[tuple[int, ZipNumBlock, int]]:
        """Yield the blocks from a position of the list on, each with the begin and the end of its line."""
        while True:
            # The position is not taken from the file, which other iterators move.
            begin = position
            line, position = self._read_line(begin)
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
                yield begin, block, position

    def _find_last_before(self, key: bytes) -> int:
        """Return the offset of the last line whose key is smaller than `key`, or 0.

        Smaller and not equal, because several blocks may begin with the same key, and the block before the first of
        them may end with it.
        """
        low, high = 0, self._size
        offset = 0
        while low < high:
            middle = (low + high) // 2
            start = self._read_line(middle - 1)[1] if middle else 0
            line, following = self._read_line(start)
            if line and line.split(b" ", 1)[0] < key:
                offset, low = start, following
            else:
                high = middle
        return offset

    def _read_line(self, offset: int) -> tuple[bytes, int]:
        """Return the line at an offset (truncated if it is too long), and the offset of the next one."""
        self._file.seek(offset)
        line = chunk = self._file.readline(MAX_LINE_BYTES + 1)
        while len(line) > MAX_LINE_BYTES and chunk and not chunk.endswith(b"\n"):
            chunk = self._file.readline(_SKIP_BYTES)
        return line, self._file.tell()

    def _parse_block(self, line: bytes) -> ZipNumBlock:
        """Parse a line of the block list. Raises ValueError, KeyError, TypeError, AttributeError or RecursionError."""
        if len(line) > MAX_LINE_BYTES:
            raise ValueError("too long")
        if b"\t" in line:
            head, part, offset, length = line.rstrip().split(b"\t")[:4]
            # Only the `.loc` file, which the user wrote, may refer to other folders.
            path = self._resolve_part(os.fsdecode(part)) or self._sibling_file(os.fsdecode(part))
            return ZipNumBlock(head.split(b" ", 1)[0], path, _parse_byte_count(offset), _parse_byte_count(length))
        key, _, fields = line.split(b" ", 2)
        values = json.loads(fields)
        path = self._sibling_file(values.get("filename", self._default_part))
        return ZipNumBlock(key, path, _parse_byte_count(values["offset"]), _parse_byte_count(values["length"]))

    def _sibling_file(self, name: str) -> Path:
        """Return the file of that name in the folder of the block list. Raises ValueError for an invalid name."""
        if b"\0" in os.fsencode(name):
            raise ValueError("no name")
        return self.path.parent / Path(name).name

    def _resolve_part(self, part: str) -> Path | None:
        """Return the first existing location of a part, else its first one; None if the `.loc` file has none."""
        if part not in self._resolved_parts:
            paths = self._locations.get(part, ())
            self._resolved_parts[part] = next((path for path in paths if path.is_file()), next(iter(paths), None))
        return self._resolved_parts[part]

    def _read_locations(self) -> dict[str, tuple[Path, ...]]:
        """Return the alternative locations of each part, in order, from the `.loc` file of the same name."""
        file = self.path.with_suffix(".loc")
        if not file.is_file():
            return {}
        with file.open("rb") as stream:
            text = stream.read(_MAX_LOCATIONS_BYTES + 1)
        if len(text) > _MAX_LOCATIONS_BYTES or b"\0" in text:
            raise InputError(f"{file} (byte 0): expected lines of a name, a tab and a path, found something else")
        rows = (os.fsdecode(line).split("\t") for line in text.splitlines() if b"\t" in line)
        return {row[0]: tuple(file.parent / path for path in row[1:] if path) for row in rows}

    def _read_meta(self) -> str:
        """Return the name of the only part in the JSON dialect."""
        first, _ = self._read_line(0)
        if first.startswith(b"!meta"):
            try:
                # Some tools write a path, but the part is always next to the block list.
                return self._sibling_file(str(json.loads(first[first.index(b"{") :])["filename"])).name
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise InputError(f"{self.path} (byte 0): expected an object with `filename` behind !meta") from error
        return self.path.with_suffix(".cdx.gz").name


class _InflatedStream(io.RawIOBase):
    """Decompresses a gzip member. Raises zlib.error or EOFError when it reaches damage."""

    def __init__(self, file: BinaryIO, length: int) -> None:
        self._file = file
        self._remaining_input = length
        self._remaining_output = MAX_BLOCK_BYTES
        self._inflate = zlib.decompressobj(wbits=31)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer).cast("B")
        text = b""
        while not text and not self._inflate.eof:
            compressed = self._inflate.unconsumed_tail or self._file.read(min(_READ_BYTES, self._remaining_input))
            if not self._inflate.unconsumed_tail:
                self._remaining_input -= len(compressed)
            text = self._inflate.decompress(compressed, len(view))
            if not (compressed or text or self._inflate.eof):
                raise EOFError("it ends in the middle")
        self._remaining_output -= len(text)
        if self._remaining_output < 0:
            raise EOFError("it is larger than any index block")
        view[: len(text)] = text
        return len(text)


def _report_or_raise(problem: Problem, problems: Problems | None, times: int = 1) -> None:
    """Add a problem, or raise it as InputError if `problems` is None."""
    if problems is None:
        raise InputError(f"{problem.file} (byte {problem.offset}): {problem.message}")
    problems.add(problem, times)


def _parse_byte_count(value: object) -> int:
    """Parse a number of bytes. Raises ValueError."""
    text = value.decode() if isinstance(value, bytes) else str(value)
    # 18 digits fit into 63 bits, the range of file offsets.
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ValueError("no number of bytes")
    return int(text)


def zipnum_paths(path: str | PathLike[str]) -> tuple[Path, Path, Path]:
    """Return the paths of a ZipNum to write: the blocks, the `.loc` file, and the block list."""
    index = Path(path)
    return index.with_suffix(".cdx.gz"), index.with_suffix(".loc"), index


def write_zipnum(lines: Iterable[bytes], path: str | PathLike[str], block_lines: int = BLOCK_LINES) -> int:
    """Write sorted lines, each with its line end, as a ZipNum; return the number of blocks.

    `path` is the `.idx`; the `.loc` and `.cdx.gz` are written next to it. Equal lines yield equal bytes. Raises
    InputError if the lines are not sorted by key and date.
    """
    part, *_ = files = zipnum_paths(path)
    count = 0
    # All files are written before the first is renamed. The block list is renamed last, so that what it refers to
    # exists even after a kill.
    with atomic_files(files) as (blocks, locations, listing):
        locations.write(f"{part.name}\t{part.name}\n".encode())
        for count, (head, block) in enumerate(compress_blocks(lines, block_lines), 1):
            location = f"{part.name}\t{blocks.tell()}\t{len(block)}\t{count}"
            listing.write(head + f"\t{location}\n".encode())
            blocks.write(block)
    return count


def compress_blocks(lines: Iterable[bytes], block_lines: int = BLOCK_LINES) -> Iterator[tuple[bytes, bytes]]:
    """Yield blocks of sorted lines: key and date of the first line, and the gzip member.

    Raises InputError if the lines, each with its line end, are not sorted by key and date.
    """
    for block in _group_lines(lines, block_lines):
        # zlib writes the gzip header without name and time, so equal lines yield equal bytes.
        deflate = zlib.compressobj(wbits=31)
        data = deflate.compress(b"".join(block)) + deflate.flush()
        yield b" ".join(block[0].split(b" ", 2)[:2]), data


def _group_lines(lines: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    block: list[bytes] = []
    previous: list[bytes] = []
    for number, line in enumerate(lines, 1):
        # Only key and date are compared: rows sorted in another format differ in the order of the rest.
        head = line.split(b" ", 2)[:2]
        if head < previous:
            raise InputError(f"line {number}: not sorted: a ZipNum index needs rows in byte order; sort them first")
        previous = head
        block.append(line)
        if len(block) == size:
            yield block
            block = []
    if block:
        yield block
