"""The core's line readers agree with the Python model for any compression and any damage."""

import subprocess
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.models import index as model
from unlost import _core
from unlost.problems import Problems
from unlost.text_lines import read_stream_lines

CORPUS = sorted((Path(__file__).parents[2] / "rust" / "fuzz" / "corpus" / "lines").iterdir())

_keys = st.sampled_from(
    [b"com,a)/", b"com,a)/b", b"com,b)/", b"", b" ", b" CDX N b a", b"!meta", b"#", b"\tCDX", b"aCDX"]
)
_ends = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n", b"\r", b""])
_rows = st.builds(lambda key, rest, end: key + rest + end, _keys, st.sampled_from([b"", b" 2014", b"x"]), _ends)
_marks = st.sampled_from([b"", b"", b"\xef\xbb\xbf"])
TEXTS = st.builds(
    lambda mark, rows: mark + b"".join(rows), _marks, st.lists(_rows | st.binary(max_size=12), max_size=12)
)
LIMITS = st.integers(1, 30)


def split_at(text: bytes, cuts: list[int]) -> list[bytes]:
    """Split a text at these offsets."""
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[a:b] for a, b in pairwise(places)]


@st.composite
def gzip_files(draw: st.DrawFn) -> bytes:
    """Draw a text in gzip members, with padding between and after them."""
    chunks = split_at(draw(TEXTS), draw(st.lists(st.integers(0, 200), max_size=3)))
    members = [model.gzip_member(part, draw(st.sampled_from([0, 6]))) for part in chunks]
    return b"".join(member + draw(st.sampled_from([b"", b"", b"\0", b"\0" * 600])) for member in members)


@st.composite
def zstd_files(draw: st.DrawFn) -> bytes:
    """Draw a text in zstd frames of raw blocks and runs, with skippable frames and padding."""
    frames = []
    for part in split_at(draw(TEXTS), draw(st.lists(st.integers(0, 200), max_size=2))):
        frame = model.zstd_frame(split_at(part, draw(st.lists(st.integers(0, 200), max_size=2))))
        skipped = draw(st.sampled_from([b"", b"", b"\x50\x2a\x4d\x18\2\0\0\0ab", b"\x5f\x2a\x4d\x18\0\0\0\0"]))
        frames.append(skipped + frame + draw(st.sampled_from([b"", b"", b"\0" * 9])))
    return b"".join(frames)


FILES = gzip_files() | zstd_files()


def assert_readers_agree(data: bytes, limit: int) -> str | None:
    """Compare the lines of core and model for a file, and return the damage."""
    with NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        reader = _core.LineReader(file.name, limit)
        lines: list[tuple[int, int, bytes, bool, bool]] = []
        while batch := reader.batch(3):
            assert len(batch) <= 3
            lines += batch
        assert reader.position <= len(data)
        column = _core.key_column(file.name, limit)
    text, damage = model.text_of(data)
    expected = model.lines_of(text, limit, damage)
    assert lines == expected
    assert (reader.damage, column.damage) == (damage, damage)
    assert (column.rows, column.skipped, column.keys, column.first_unsorted) == model.key_column(expected)
    return damage


@given(TEXTS, LIMITS)
@example(b"\x1f\x8b", 9)
@example(b"\x28\xb5\x2f\xfd", 9)
def test_lines_of_plain_file_agree_with_model(data: bytes, limit: int) -> None:
    """Arbitrary bytes are split into lines with numbers and offsets; overlong lines are truncated."""
    assert_readers_agree(data, limit)


@given(FILES, LIMITS)
def test_lines_of_compressed_file_agree_with_model(data: bytes, limit: int) -> None:
    """Member and frame boundaries do not affect the lines."""
    assert assert_readers_agree(data, limit) is None


@given(FILES, LIMITS, st.integers(0, 2000))
def test_lines_of_truncated_file_agree_with_model(data: bytes, limit: int, cut: int) -> None:
    """Every byte before the truncation is read."""
    assert_readers_agree(data[: cut % (len(data) + 1)], limit)


@given(FILES, LIMITS, st.binary(min_size=1, max_size=12))
def test_lines_before_trailing_garbage_agree_with_model(data: bytes, limit: int, garbage: bytes) -> None:
    """Trailing garbage does not affect the lines before it."""
    assert_readers_agree(data + garbage, limit)


@given(gzip_files(), LIMITS, st.integers(0, 2000), st.integers(1, 255))
def test_lines_of_corrupt_gzip_agree_with_model(data: bytes, limit: int, place: int, change: int) -> None:
    """Lines before the damage are read, and the kind of damage is reported."""
    changed = bytearray(data)
    changed[place % len(changed)] ^= change
    assert_readers_agree(bytes(changed), limit)


@given(TEXTS, LIMITS)
def test_stream_line_reader_agrees_with_model(text: bytes, limit: int) -> None:
    """An open stream is split into the same lines as a file."""
    problems = Problems()
    actual = list(read_stream_lines(BytesIO(text), problems, "x", limit))
    expected = model.lines_of(text, limit)
    assert actual == [line[:3] for line in expected if not line.too_long]
    assert problems.counts.get("too-long", 0) == sum(line.too_long for line in expected)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_lines_of_fuzzing_corpus_agree_with_model(path: Path) -> None:
    """The seeds of the fuzz target, including former findings, agree with the model."""
    # The first byte is the limit, see the target.
    limit, data = path.read_bytes()[0], path.read_bytes()[1:]
    assert_readers_agree(data, limit)


def test_zstd_frame_of_model_is_decoded_by_zstd() -> None:
    """The `zstd` command decompresses the model's frames to the same text."""
    frame = model.zstd_frame([b"abc", b"xxxxx", b"", b"d"])
    done = subprocess.run(["zstd", "-dc"], input=frame, capture_output=True, check=True)
    assert done.stdout == b"abcxxxxxd" == model.text_of(frame)[0]


@pytest.mark.parametrize("options", [["-1"], ["-9", "--long=27"], ["--no-check"]], ids=" ".join)
def test_output_of_zstd_command_is_read(options: list[str]) -> None:
    """Compressed blocks in several frames are read; a truncated file up to its last complete block."""
    texts = [
        b"".join(b"com,a)/%d %d\n" % (number % 9999, number) for number in range(start, 60_000)) for start in (0, 7)
    ]
    frames = [
        subprocess.run(["zstd", "-c", *options], input=text, capture_output=True, check=True).stdout for text in texts
    ]
    expected = model.lines_of(b"".join(texts), 99)
    with NamedTemporaryFile() as file:
        Path(file.name).write_bytes(b"".join(frames))
        reader = _core.LineReader(file.name, 99)
        assert [line for batch in iter(lambda: reader.batch(9999), []) for line in batch] == expected
        assert (reader.damage, reader.position) == (None, sum(map(len, frames)))
        Path(file.name).write_bytes(b"".join(frames)[:-9])
        reader = _core.LineReader(file.name, 99)
        truncated = [line for batch in iter(lambda: reader.batch(9999), []) for line in batch]
        assert reader.damage == "truncated"
        # A block of zstd has at most 128 KiB of text.
        assert truncated[-1][1] > len(texts[0]) + len(texts[1]) - (128 << 10) - 99


def test_line_batch_is_bounded_by_bytes(tmp_path: Path) -> None:
    """A batch contains at most some MiB, whatever number of lines is requested."""
    (tmp_path / "a").write_bytes((b"x" * (1 << 20) + b"\n") * 30)
    reader = _core.LineReader(tmp_path / "a", 8 << 20)
    assert [len(batch) for batch in iter(lambda: reader.batch(4096), [])] == [1] * 30
