"""Properties of all line readers: any compression, invalid lines, bounded memory, positions in problems."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.index.line_readers import EXAMPLES, ReaderExample
from unlost.errors import InputError
from unlost.problems import Problems

ROOT = Path(__file__).parents[2]
MAX_GROWTH_KIB = 64 << 10

examples = pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)


def compress_zstd(data: bytes) -> bytes:
    """Compress data with the `zstd` command."""
    return subprocess.run(["zstd", "-c"], input=data, capture_output=True, check=True).stdout


@examples
@pytest.mark.parametrize("compress", [bytes, gzip.compress, compress_zstd], ids=["plain", "gzip", "zstd"])
def test_reader_given_path_reads_any_compression(example: ReaderExample, compress: type, tmp_path: Path) -> None:
    """Plain, gzip and zstd files yield all records without problems."""
    path, problems = tmp_path / "a", Problems()
    path.write_bytes(compress(example.first) + compress(example.second))
    assert (example.read(path, problems), problems.counts) == (2, {})


@examples
def test_line_with_invalid_bytes_is_counted_or_read(example: ReaderExample, tmp_path: Path) -> None:
    """NULs and invalid UTF-8 affect at most their line; the first of each kind is reported with its position."""
    path, problems = tmp_path / "a", Problems()
    path.write_bytes(gzip.compress(example.first + example.nul + example.invalid_utf8))
    assert (example.read(path, problems), problems.counts) == (1 + example.readable, example.problems)
    for problem in problems.first.values():
        assert (problem.file, problem.line, problem.offset) == (str(path), 2, len(example.first))
        assert str(problem).isprintable()


@examples
def test_truncated_file_yields_records_before_damage(example: ReaderExample, tmp_path: Path) -> None:
    """The damage is one problem, reported at the last line."""
    path, problems = tmp_path / "a", Problems()
    path.write_bytes(gzip.compress(example.first) + gzip.compress(example.second)[:-4])
    assert example.read(path, problems) == 2
    assert problems.counts == {"truncated": 1}
    assert (problems.first["truncated"].file, problems.first["truncated"].line) == (str(path), 2)


@examples
def test_incomplete_last_line_is_counted(example: ReaderExample, tmp_path: Path) -> None:
    """An incomplete record is rejected. An incomplete TimeMap line may contain many entries and is read."""
    path, problems = tmp_path / "a", Problems()
    # Uncompressed deflate blocks can be cut at any byte.
    path.write_bytes(gzip.compress(example.first + example.second, 0)[: -8 - 2])
    assert example.read(path, problems) == 1
    assert problems.counts == {"truncated": 1, "cut-line": 1}
    assert problems.first["cut-line"].line == 2


@examples
def test_missing_file_raises_error(example: ReaderExample, tmp_path: Path) -> None:
    """A missing file raises `InputError`."""
    with pytest.raises(InputError, match="none: cannot be read: No such file"):
        example.read(tmp_path / "none", Problems())


@pytest.fixture(scope="module")
def long_line() -> bytes:
    """Return a line of 100 MB as a gzip member."""
    return gzip.compress(b"x" * 100_000_000 + b"\n", 1)


@pytest.mark.parametrize("name", EXAMPLES)
def test_line_of_100_megabytes_is_skipped_in_bounded_memory(name: str, long_line: bytes, tmp_path: Path) -> None:
    """Adjacent lines are read, and the long line is never held in memory."""
    path, example = tmp_path / "a", EXAMPLES[name]
    path.write_bytes(gzip.compress(example.first) + long_line + gzip.compress(example.second))
    command = [sys.executable, "-m", "tests.index.line_readers", name, str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    count, problems, growth_kib = json.loads(result.stdout)
    assert (count, problems) == (2, {"too-long": 1})
    assert growth_kib < MAX_GROWTH_KIB


def test_zipnum_line_of_100_megabytes_is_skipped_in_bounded_memory(long_line: bytes, tmp_path: Path) -> None:
    """The long line is skipped, and the next block is read."""
    example = EXAMPLES["cdxj"]
    blocks = [gzip.compress(example.first), long_line, gzip.compress(example.second)]
    (tmp_path / "a.cdx.gz").write_bytes(b"".join(blocks))
    starts = [sum(map(len, blocks[:place])) for place in range(3)]
    listing = [
        f"com,a)/ 2014\ta.cdx.gz\t{start}\t{len(block)}\t1\n" for start, block in zip(starts, blocks, strict=True)
    ]
    (tmp_path / "a.idx").write_text("".join(listing))
    command = [sys.executable, "-m", "tests.index.line_readers", "cdxj", str(tmp_path / "a.idx")]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    count, problems, growth_kib = json.loads(result.stdout)
    assert (count, problems) == (2, {"too-long": 1})
    assert growth_kib < MAX_GROWTH_KIB


def test_problem_after_long_line_has_file_position(tmp_path: Path) -> None:
    """Line and offset are those of the file."""
    example, problems = EXAMPLES["ukvs"], Problems()
    text = example.first + b"x" * (9 << 20) + b"\r\n" + example.second + example.nul
    (tmp_path / "a").write_bytes(text)
    assert example.read(tmp_path / "a", problems) == 2
    assert problems.counts == {"too-long": 1, "bad-row": 1}
    assert [(problem.line, problem.offset) for problem in problems.first.values()] == [
        (2, len(example.first)),
        (4, text.index(example.nul)),
    ]


def test_many_long_lines_are_read_in_bounded_memory(tmp_path: Path) -> None:
    """Many long lines need no more memory than one."""
    path = tmp_path / "a"
    member = gzip.compress(b"http://a.com/" + b"x" * (7 << 20) + b"\n", 1)
    path.write_bytes(member * 40)
    command = [sys.executable, "-m", "tests.index.line_readers", "url list", str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    count, problems, growth_kib = json.loads(result.stdout)
    assert (count, problems) == (40, {})
    assert growth_kib < MAX_GROWTH_KIB
