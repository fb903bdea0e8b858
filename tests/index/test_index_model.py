"""The core's readers of index files agree with the slow model, however the text is stored and damaged."""

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


def pieces(text: bytes, cuts: list[int]) -> list[bytes]:
    """Cut a text at these places."""
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[a:b] for a, b in pairwise(places)]


@st.composite
def gzip_files(draw: st.DrawFn) -> bytes:
    """Draw a text in gzip members, with padding between and behind them."""
    parts = pieces(draw(TEXTS), draw(st.lists(st.integers(0, 200), max_size=3)))
    members = [model.gzip_member(part, draw(st.sampled_from([0, 6]))) for part in parts]
    return b"".join(member + draw(st.sampled_from([b"", b"", b"\0", b"\0" * 600])) for member in members)


@st.composite
def zstd_files(draw: st.DrawFn) -> bytes:
    """Draw a text in zstd frames of raw blocks and runs, with skippable frames and padding."""
    frames = []
    for part in pieces(draw(TEXTS), draw(st.lists(st.integers(0, 200), max_size=2))):
        frame = model.zstd_frame(pieces(part, draw(st.lists(st.integers(0, 200), max_size=2))))
        skipped = draw(st.sampled_from([b"", b"", b"\x50\x2a\x4d\x18\2\0\0\0ab", b"\x5f\x2a\x4d\x18\0\0\0\0"]))
        frames.append(skipped + frame + draw(st.sampled_from([b"", b"", b"\0" * 9])))
    return b"".join(frames)


FILES = gzip_files() | zstd_files()


def agree(data: bytes, limit: int) -> str | None:
    """Compare what both find in a file; return the damage."""
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
def test_plain_files(data: bytes, limit: int) -> None:
    """Any bytes are lines, with their numbers, offsets and text; those that are too long come cut."""
    agree(data, limit)


@given(FILES, LIMITS)
def test_sound_files(data: bytes, limit: int) -> None:
    """However members and frames are cut, the lines are those of the text."""
    assert agree(data, limit) is None


@given(FILES, LIMITS, st.integers(0, 2000))
def test_files_that_were_cut_off(data: bytes, limit: int, cut: int) -> None:
    """Everything that can be had of what is there is read, to the byte."""
    agree(data[: cut % (len(data) + 1)], limit)


@given(FILES, LIMITS, st.binary(min_size=1, max_size=12))
def test_files_with_rubbish_behind(data: bytes, limit: int, rubbish: bytes) -> None:
    """Rubbish costs nothing that comes before it."""
    agree(data + rubbish, limit)


@given(gzip_files(), LIMITS, st.integers(0, 2000), st.integers(1, 255))
def test_gzip_files_with_a_changed_byte(data: bytes, limit: int, place: int, change: int) -> None:
    """What comes before the damage is kept to the byte, and the kind is told."""
    changed = bytearray(data)
    changed[place % len(changed)] ^= change
    agree(bytes(changed), limit)


@given(TEXTS, LIMITS)
def test_both_readers_of_lines_agree(text: bytes, limit: int) -> None:
    """What is already open is cut into the same lines as a file."""
    problems = Problems()
    found = list(read_stream_lines(BytesIO(text), problems, "x", limit))
    expected = model.lines_of(text, limit)
    assert found == [line[:3] for line in expected if not line.too_long]
    assert problems.counts.get("too-long", 0) == sum(line.too_long for line in expected)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_what_fuzzing_starts_from(path: Path) -> None:
    """So are the files that fuzzing starts from, and what it once found."""
    # The first byte is the limit, see the target.
    limit, data = path.read_bytes()[0], path.read_bytes()[1:]
    agree(data, limit)


def test_the_model_knows_frames_as_others_write_them() -> None:
    """The frames of the model are read by `zstd`, to the same text."""
    frame = model.zstd_frame([b"abc", b"xxxxx", b"", b"d"])
    done = subprocess.run(["zstd", "-dc"], input=frame, capture_output=True, check=True)
    assert done.stdout == b"abcxxxxxd" == model.text_of(frame)[0]


@pytest.mark.parametrize("options", [["-1"], ["-9", "--long=27"], ["--no-check"]], ids=" ".join)
def test_what_zstd_writes(options: list[str]) -> None:
    """Compressed blocks are read to their lines, in several frames; cut off, to the last whole block."""
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
        kept = [line for batch in iter(lambda: reader.batch(9999), []) for line in batch]
        assert reader.damage == "truncated"
        # A block of zstd has at most 128 KiB of text.
        assert kept[-1][1] > len(texts[0]) + len(texts[1]) - (128 << 10) - 99


def test_batches_are_bounded_by_their_bytes(tmp_path: Path) -> None:
    """However many lines are asked for, a batch holds some MiB."""
    (tmp_path / "a").write_bytes((b"x" * (1 << 20) + b"\n") * 30)
    reader = _core.LineReader(tmp_path / "a", 8 << 20)
    assert [len(batch) for batch in iter(lambda: reader.batch(4096), [])] == [1] * 30
