"""What holds for every reader of lines: any compression, any rubbish, bounded memory, and places in every problem."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.index.readers import EXAMPLES, Example
from unlost.errors import InputError
from unlost.problems import Problems

ROOT = Path(__file__).parents[2]
MOST_KIB = 64 << 10

examples = pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)


def zstd(data: bytes) -> bytes:
    """Return a text as `zstd` compresses it."""
    return subprocess.run(["zstd", "-c"], input=data, capture_output=True, check=True).stdout


@examples
@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd], ids=["plain", "gzip", "zstd"])
def test_a_path_is_enough(example: Example, pack: type, tmp_path: Path) -> None:
    """However the file is compressed, its records are read and there is nothing to complain about."""
    path, problems = tmp_path / "a", Problems()
    path.write_bytes(pack(example.first) + pack(example.second))
    assert (example.read(path, problems), problems.counts) == (2, {})


@examples
def test_rubbish_is_counted_or_kept(example: Example, tmp_path: Path) -> None:
    """NULs and bytes that are no UTF-8 cost at most their line; the first of each kind has file, line and byte."""
    path, problems = tmp_path / "a", Problems()
    path.write_bytes(gzip.compress(example.first + example.nul + example.no_utf8))
    assert (example.read(path, problems), problems.counts) == (1 + example.kept, example.problems)
    for problem in problems.first.values():
        assert (problem.file, problem.line, problem.offset) == (str(path), 2, len(example.first))
        assert str(problem).isprintable()


@examples
def test_a_truncated_file_gives_what_is_there(example: Example, tmp_path: Path) -> None:
    """The damage is one problem, at the line that was the last one."""
    path, problems = tmp_path / "a", Problems()
    path.write_bytes(gzip.compress(example.first) + gzip.compress(example.second)[:-4])
    assert example.read(path, problems) == 2
    assert problems.counts == {"truncated": 1}
    assert (problems.first["truncated"].file, problems.first["truncated"].line) == (str(path), 2)


@examples
def test_a_line_that_damage_cut_is_counted(example: Example, tmp_path: Path) -> None:
    """Half a record could pass for a whole one; half a line of a TimeMap may be many entries, and is read."""
    path, problems = tmp_path / "a", Problems()
    # Text that is stored as it is can be cut at any byte.
    path.write_bytes(gzip.compress(example.first + example.second, 0)[: -8 - 2])
    is_timemap = example.first.startswith(b"<")
    assert example.read(path, problems) == 1 + is_timemap
    assert problems.counts == {"truncated": 1} | ({} if is_timemap else {"cut-line": 1})
    assert is_timemap or problems.first["cut-line"].line == 2


@examples
def test_a_missing_file_is_an_error(example: Example, tmp_path: Path) -> None:
    """There is nothing to count."""
    with pytest.raises(InputError, match="none: cannot be read: No such file"):
        example.read(tmp_path / "none", Problems())


@pytest.fixture(scope="module")
def long_line() -> bytes:
    """Return a line of 100 MB as a gzip member."""
    return gzip.compress(b"x" * 100_000_000 + b"\n", 1)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_line_of_100_megabytes_costs_no_memory(name: str, long_line: bytes, tmp_path: Path) -> None:
    """The lines around it are read, it is one problem, and its bytes are never held together."""
    path, example = tmp_path / "a", EXAMPLES[name]
    path.write_bytes(gzip.compress(example.first) + long_line + gzip.compress(example.second))
    command = [sys.executable, "-m", "tests.index.readers", name, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    count, problems, grown = json.loads(done.stdout)
    assert (count, problems) == (2, {"too-long": 1})
    assert grown < MOST_KIB


def test_a_line_of_100_megabytes_in_a_zipnum_costs_no_memory(long_line: bytes, tmp_path: Path) -> None:
    """It is passed over like anywhere else, and the next block is read."""
    example = EXAMPLES["cdxj"]
    blocks = [gzip.compress(example.first), long_line, gzip.compress(example.second)]
    (tmp_path / "a.cdx.gz").write_bytes(b"".join(blocks))
    starts = [sum(map(len, blocks[:place])) for place in range(3)]
    listing = [
        f"com,a)/ 2014\ta.cdx.gz\t{start}\t{len(block)}\t1\n" for start, block in zip(starts, blocks, strict=True)
    ]
    (tmp_path / "a.idx").write_text("".join(listing))
    command = [sys.executable, "-m", "tests.index.readers", "cdxj", str(tmp_path / "a.idx")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    count, problems, grown = json.loads(done.stdout)
    assert (count, problems) == (2, {"too-long": 1})
    assert grown < MOST_KIB


def test_places_behind_a_long_line_are_those_of_the_file(tmp_path: Path) -> None:
    """Also of a TimeMap, which is read as a whole."""
    example, problems = EXAMPLES["link-format"], Problems()
    text = example.first + b"x" * (9 << 20) + b"\r\n" + example.second.replace(b"\n", b"\r\n") + b"<a>; rel=memento"
    (tmp_path / "a").write_bytes(text)
    assert example.read(tmp_path / "a", problems) == 2
    assert problems.counts == {"too-long": 1, "no-date": 1}
    assert [(problem.line, problem.offset) for problem in problems.first.values()] == [
        (2, len(example.first)),
        (4, text.index(b"<a>")),
    ]


def test_lines_of_8_megabytes_are_read_one_by_one(tmp_path: Path) -> None:
    """Many long lines take no more memory than one."""
    path = tmp_path / "a"
    member = gzip.compress(b"http://a.com/" + b"x" * (7 << 20) + b"\n", 1)
    path.write_bytes(member * 40)
    command = [sys.executable, "-m", "tests.index.readers", "url list", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    count, problems, grown = json.loads(done.stdout)
    assert (count, problems) == (40, {})
    assert grown < MOST_KIB
