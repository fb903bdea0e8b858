"""ZipNum: random access to sorted, compressed blocks."""

import gzip
import itertools
import json
import re
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.index import strategies
from unlost.errors import InputError
from unlost.index import (
    IndexRow,
    ZipNumBlock,
    ZipNumIndex,
    cdx,
    find_index_captures,
    read_index_rows,
    write_zipnum,
    zipnum,
)
from unlost.problems import Problems


def to_sorted_lines(rows: list[IndexRow]) -> list[bytes]:
    """Return the rows as sorted lines."""
    return sorted(cdx.write_cdxj(rows))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(strategies.ROWS, min_size=1, max_size=40), size=st.integers(1, 7), other=strategies.KEYS)
def test_zipnum_lookup_returns_exactly_matching_lines(
    tmp_path: Path, rows: list[IndexRow], size: int, other: str
) -> None:
    """Exact and prefix look-ups return all matching lines and no others, for any block size."""
    lines = to_sorted_lines(rows)
    write_zipnum(lines, tmp_path / "a.idx", size)
    with ZipNumIndex(tmp_path / "a.idx") as index:
        problems = Problems()
        actual = [line.text + b"\n" for block in index.blocks() for line in index.block_lines(block, problems)]
        assert actual == lines
        for key in {row.key.encode() for row in rows} | {other.encode(), b"", b"zzz"}:
            actual = [line + b"\n" for line in index.lines(key, problems=problems)]
            assert actual == [line for line in lines if line.split(b" ")[0] == key]
            prefixed = [line + b"\n" for line in index.lines(key, prefix=True, problems=problems)]
            assert prefixed == [line for line in lines if line.split(b" ")[0].startswith(key)]
        assert problems.counts == {}


def test_zipnum_output_is_deterministic(tmp_path: Path) -> None:
    """The files contain neither time nor folder, and the index has the usual ZipNum columns."""
    lines = [f'com,a)/{i:03d} 2014 {{"url": "http://a.com/{i}"}}\n'.encode() for i in range(10)]
    written = []
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        assert write_zipnum(lines, tmp_path / folder / "a.idx", 4) == 3
        written.append([file.read_bytes() for file in sorted((tmp_path / folder).iterdir())])
    assert written[0] == written[1]
    first = (tmp_path / "x" / "a.idx").read_bytes().splitlines()[0].split(b"\t")
    assert first[:3] == [b"com,a)/000 2014", b"a.cdx.gz", b"0"]
    assert first[4] == b"1"
    assert (tmp_path / "x" / "a.loc").read_bytes() == b"a.cdx.gz\ta.cdx.gz\n"


def test_wacz_zipnum_index_is_read(tmp_path: Path) -> None:
    """WACZ uses JSON objects instead of tabs and names the block file, with any path, in the first line."""
    blocks = [
        gzip.compress(b'com,a)/ 2014 {"url": "http://a.com/"}\n'),
        gzip.compress(b'com,b)/ 2014 {"url": "http://b.com/"}\n'),
    ]
    (tmp_path / "index.cdx.gz").write_bytes(b"".join(blocks))
    listing = ['!meta 0 {"format": "cdxj-gzip-1.0", "filename": "some/where/index.cdx.gz"}']
    offset = 0
    for key, block in zip(("com,a)/", "com,b)/"), blocks, strict=True):
        listing.append(f"{key} 2014 {json.dumps({'offset': offset, 'length': len(block)})}")
        offset += len(block)
    (tmp_path / "index.idx").write_text("\n".join(listing) + "\n")
    problems = Problems()
    assert [row.key for row in read_index_rows(tmp_path / "index.idx", problems)] == ["com,a)/", "com,b)/"]
    assert [capture.uri for capture in find_index_captures(tmp_path / "index.idx", "http://www.b.com", problems)] == [
        "http://b.com/"
    ]
    assert problems.total == 0


def test_zipnum_capture_is_found_under_key_variants(tmp_path: Path) -> None:
    """Keys with trailing slashes and hosts in forward order are found."""
    pages = {"1.2.3.4)/a": "http://1.2.3.4/a", "com,a)": "http://a.com/", "com,a)/b/": "http://www.a.com/B"}
    lines = sorted(f'{key} 2014 {{"url": "{url}"}}\n'.encode() for key, url in pages.items())
    write_zipnum(lines, tmp_path / "a.idx")
    for page in pages.values():
        assert len(list(find_index_captures(tmp_path / "a.idx", page, Problems()))) == 1


def test_zipnum_lookup_of_key_variants_reads_blocks_once(tmp_path: Path) -> None:
    """Captures come in file order, and each damaged block is counted once for all variants of the key."""
    keys = ["com,a)", "com,a)/", "com,a)/", "com,a)/b", "com,a)/b/", "com,a)/b/"]
    lines = [f'{key} 201{i} {{"url": "http://a.com/{i}"}}\n'.encode() for i, key in enumerate(keys)]
    write_zipnum(lines, tmp_path / "a.idx", 1)
    for page, numbers in (("http://a.com/", "012"), ("http://a.com/b", "345")):
        problems = Problems()
        captures = list(find_index_captures(tmp_path / "a.idx", page, problems))
        assert ["http://a.com/" + number for number in numbers] == [capture.uri for capture in captures]
        assert problems.counts == {}
    listed = (tmp_path / "a.idx").read_bytes().splitlines(keepends=True)
    (tmp_path / "a.idx").write_bytes(
        b"garbage\n".join([b"", *listed]).replace(b"com,a)/ 2012\ta.cdx.gz", b"com,a)/ 2012\tx")
    )
    problems = Problems()
    assert len(list(find_index_captures(tmp_path / "a.idx", "http://a.com/", problems))) == 2
    # The index is read from before the first key variant to after the last one.
    assert problems.counts == {"bad-block": 6}


def test_unsorted_zipnum_lines_are_rejected_without_output(tmp_path: Path) -> None:
    """Look-ups in an unsorted index would miss pages."""
    with pytest.raises(InputError, match="line 2: not sorted"):
        write_zipnum([b"b 2014 {}\n", b"a 2014 {}\n"], tmp_path / "a.idx")
    assert list(tmp_path.iterdir()) == []


def make_row(name: bytes) -> bytes:
    """Return the row of a host, with its line end."""
    return b'com,%b)/ 2014 {"url": "http://%b.com/"}\n' % (name, name)


ROW = make_row(b"a")
BLOCK = gzip.compress(ROW)


def test_zipnum_lines_sorted_by_key_and_date_are_accepted(tmp_path: Path) -> None:
    """Keys and dates must be sorted; the rest of the line may be in any order."""
    lines = [b'a 2014 {"url": "https"}\n', b'a 2014 {"url": "http"}\n', b"a 2015 {}\n", b"a! 2014 {}\n"]
    assert write_zipnum(lines, tmp_path / "a.idx") == 1
    with pytest.raises(InputError, match="line 2: not sorted"):
        write_zipnum([b"a 2015 {}\n", b"a 2014 {}\n"], tmp_path / "a.idx")


def test_zipnum_index_file_is_renamed_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted writer never leaves an index without its blocks."""
    names = []
    replace = Path.replace

    def record_replace(self: Path, target: Path) -> Path:
        names.append(target.name)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", record_replace)
    write_zipnum([ROW], tmp_path / "a.idx")
    assert names == ["a.cdx.gz", "a.loc", "a.idx"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"com,a)/ 2014\ta.cdx.gz\tx\t7\t1", "expected `key date`"),
        (b"garbage", "expected `key date`"),
        (b"com,a)/ 2014\tnone.gz\t0\t7\t1", "none.gz.*cannot be read"),
        (b"com,a)/ 2014\t../../../etc/passwd\t0\t7\t1", "passwd.*cannot be read"),
        (b"com,a)/ 2014\ta.cdx.gz\t3\t7\t1", "expected a gzip member"),
        (b"com,a)/ 2014\ta.cdx.gz\t0\t20\t1", "ends in the middle"),
        (b"com,a)/ 2014\ta.cdx.gz\t0\t-5\t1", "expected `key date`"),
        (b"com,a)/ 2014\ta.cdx.gz\t-5\t5\t1", "expected `key date`"),
        (b"com,a)/ 2014\ta.cdx.gz\t0\t%d\t1" % 10**30, "expected `key date`"),
        (b"com,a)/ 2014\ta.cdx.gz\t%d\t%d\t1" % (10**12, 10**18 - 1), "ends in the middle"),
        (b"com,a)/ 2014\ta\0.gz\t0\t5\t1", "expected `key date`"),
        (b'com,a)/ 2014 {"offset": 1e999, "length": 5}', "expected `key date`"),
        (b'com,a)/ 2014 {"offset": 0, "length": 5, "filename": "\\ud800"}', "expected `key date`"),
        (b"com,a)/ 2014 " + b"[" * 100_000, "expected `key date`"),
        (b"x" * (9 << 20), "expected `key date`"),
    ],
    ids=lambda value: str(value[:40]),
)
def test_invalid_zipnum_index_line_affects_only_itself(tmp_path: Path, line: bytes, message: str) -> None:
    """The message has file and byte, and other blocks are read. Paths outside the folder are not followed."""
    (tmp_path / "a.cdx.gz").write_bytes(BLOCK)
    good = b"com,a)/ 2014\ta.cdx.gz\t0\t%d\t1\n" % len(BLOCK)
    (tmp_path / "a.idx").write_bytes(good + line + b"\n" + good)
    problems = Problems()
    assert [row.key for row in read_index_rows(tmp_path / "a.idx", problems)] == ["com,a)/"] * 2
    assert problems.counts == {"bad-block": 1}
    assert re.search(message, str(problems.first["bad-block"]))
    with ZipNumIndex(tmp_path / "a.idx") as index, pytest.raises(InputError, match=message):
        list(index.lines(b"com,a)/"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.idx", b'!meta 0 {"x": 1}\n'),
        ("a.idx", b'!meta 0 {"filename": "\\u0000"}\n'),
        ("a.idx", b"!meta 0 {" + b'"a":[' * 100_000 + b"\n"),
        ("a.loc", b"a.cdx.gz\t\0\n"),
        ("a.loc", b"\t" * (17 << 20)),
    ],
    ids=["meta", "NUL in meta", "deeply nested meta", "NUL in .loc", "long .loc"],
)
def test_invalid_zipnum_header_or_loc_is_rejected(tmp_path: Path, name: str, text: bytes) -> None:
    """The message names the invalid file."""
    (tmp_path / "a.idx").write_bytes(b"")
    (tmp_path / name).write_bytes(text)
    with pytest.raises(InputError, match=rf"{name} \(byte 0\): expected"):
        ZipNumIndex(tmp_path / "a.idx")


def test_zipnum_block_file_name_may_be_invalid_utf8(tmp_path: Path) -> None:
    """Block files are named by bytes, as files are."""
    (tmp_path / "a\udcff").write_bytes(BLOCK)
    (tmp_path / "a.loc").write_bytes(b"x\xfe\ta\xff\n")
    (tmp_path / "a.idx").write_bytes(b"com,a)/ 2014\tx\xfe\t0\t%d\t1\n" % len(BLOCK))
    assert len(list(read_index_rows(tmp_path / "a.idx", Problems()))) == 1


def test_zipnum_lines_before_block_damage_are_read(tmp_path: Path) -> None:
    """Complete lines before the damage are read; the incomplete line is not."""
    lines = [f'com,a)/{i} 2014 {{"url": "http://a.com/{i * i}"}}\n'.encode() for i in range(3000)]
    block = gzip.compress(b"".join(lines))
    (tmp_path / "a.cdx.gz").write_bytes(block[: len(block) // 2])
    (tmp_path / "a.idx").write_bytes(b"com,a)/0 2014\ta.cdx.gz\t0\t%d\t1\n" % len(block))
    problems = Problems()
    rows = list(read_index_rows(tmp_path / "a.idx", problems))
    assert list(cdx.write_cdxj(rows)) == lines[: len(rows)]
    assert len(rows) > 1000
    assert problems.counts == {"bad-block": 1}


def test_zipnum_block_is_split_at_line_feeds_only(tmp_path: Path) -> None:
    """A CR alone is not a line end."""
    (tmp_path / "a.cdx.gz").write_bytes(gzip.compress(b"a 2014 x\ry\r\nb 2014\n"))
    block = ZipNumBlock(b"a", tmp_path / "a.cdx.gz", 0, 1000)
    (tmp_path / "a.idx").write_bytes(b"")
    with ZipNumIndex(tmp_path / "a.idx") as index:
        assert [line.text for line in index.block_lines(block)] == [b"a 2014 x\ry", b"b 2014"]


def test_zipnum_block_of_64_megabytes_is_read_in_bounded_memory(tmp_path: Path) -> None:
    """Lines are produced on demand, and a line without end is abandoned."""
    (tmp_path / "a.idx").write_bytes(b"")
    part = tmp_path / "a.cdx.gz"
    with ZipNumIndex(tmp_path / "a.idx") as index:
        for text, read in ((b"\n" * (64 << 20), 1000), (b"x" * (64 << 20), 0)):
            part.write_bytes(gzip.compress(text, 1))
            tracemalloc.start()
            lines = index.block_lines(ZipNumBlock(b"", part, 0, 10**18 - 1), problems := Problems())
            assert len(list(itertools.islice(lines, 1000))) == read
            assert tracemalloc.get_traced_memory()[1] < 48 << 20
            tracemalloc.stop()
            assert problems.total == (read == 0)


@pytest.mark.parametrize(
    ("part", "offset", "length", "rows", "message"),
    [
        ("none.gz", 0, 7, 1, "none.gz .byte 0.: bad-block: cannot be read: No such file"),
        ("../../../etc/passwd", 0, 7, 1, "passwd .byte 0.: bad-block: cannot be read: No such file"),
        ("a.cdx.gz", 3, 7, 1, "a.cdx.gz .byte 3.: bad-block: expected a gzip member: .*incorrect header"),
        ("a.cdx.gz", 0, 20, 1, "a.cdx.gz .byte 0.: bad-block: expected a gzip member: it ends in the middle"),
        ("a.cdx.gz", 0, -4, 2, "a.cdx.gz .byte 0.: bad-block: expected a gzip member: it ends in the middle"),
    ],
)
def test_damaged_zipnum_block_affects_only_itself(
    tmp_path: Path, part: str, offset: int, length: int, rows: int, message: str
) -> None:
    """It is counted with file and byte, read up to the damage, and the next block is read."""
    blocks = [gzip.compress(make_row(name)) for name in (b"a", b"b")]
    (tmp_path / "a.cdx.gz").write_bytes(b"".join(blocks))
    size = length if length > 0 else len(blocks[0]) + length
    listing = (
        f"com,a)/ 2014\t{part}\t{offset}\t{size}\t1\ncom,b)/ 2014\ta.cdx.gz\t{len(blocks[0])}\t{len(blocks[1])}\t2\n"
    )
    (tmp_path / "a.idx").write_text(listing)
    problems = Problems()
    assert [row.key for row in read_index_rows(tmp_path / "a.idx", problems)][-rows:] == ["com,a)/", "com,b)/"][-rows:]
    assert problems.counts == {"bad-block": 1}
    assert re.search(message, str(problems.first["bad-block"]))


def test_zipnum_block_beyond_size_limit_is_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decompression bomb is read up to the limit; rows before the limit are returned."""
    monkeypatch.setattr(zipnum, "MAX_BLOCK_BYTES", 50_000_000)
    bomb = gzip.compress(ROW + b"x" * 100_000_000 + b"\n", 1)
    (tmp_path / "a.cdx.gz").write_bytes(bomb)
    (tmp_path / "a.idx").write_text(f"com,a)/ 2014\ta.cdx.gz\t0\t{len(bomb)}\t1\n")
    problems = Problems()
    assert [row.key for row in read_index_rows(tmp_path / "a.idx", problems)] == ["com,a)/"]
    assert problems.counts == {"bad-block": 1, "too-long": 1}
    assert problems.first["bad-block"].message.endswith("larger than any index block")


def test_zipnum_loc_uses_first_existing_location(tmp_path: Path) -> None:
    """A `.loc` file may list alternatives for a block file, separated by tabs."""
    lines = [f'com,a)/{i:03d} 2014 {{"url": "http://a.com/{i}"}}\n'.encode() for i in range(10)]
    write_zipnum(lines, tmp_path / "a.idx", 4)
    (tmp_path / "far").mkdir()
    (tmp_path / "a.cdx.gz").rename(tmp_path / "far" / "b.gz")
    for locations in ("far/b.gz", "none.gz\tfar/b.gz", "none.gz\t/none/b.gz\tfar/b.gz\tother.gz", "\tfar/b.gz"):
        (tmp_path / "a.loc").write_text(f"a.cdx.gz\t{locations}\n")
        with ZipNumIndex(tmp_path / "a.idx") as index:
            assert [line + b"\n" for line in index.lines(b"com,a)/007")] == [lines[7]]
    (tmp_path / "a.loc").write_text("a.cdx.gz\tnone.gz\tother.gz\n")
    with ZipNumIndex(tmp_path / "a.idx") as index, pytest.raises(InputError, match=r"none\.gz"):
        list(index.lines(b"com,a)/007"))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.com/x", ["http://a.com:80/x", "https://a.com/x"]),
        ("http://a.com:80/x", ["http://a.com:80/x", "https://a.com/x"]),
        ("https://a.com:80/x", ["https://a.com:80/x"]),
        ("http://a.com:8080/x", ["http://a.com:8080/x"]),
        ("http://straße.de/", ["http://straße.de/"]),
    ],
)
def test_capture_is_found_under_keys_of_other_tools(tmp_path: Path, url: str, expected: list[str]) -> None:
    """ZipNum and CDXJ find the same captures under such keys, and no others."""
    rows = [
        ("com,a):8080/x", "http://a.com:8080/x"),
        ("com,a:443)/x", "https://a.com/x"),
        ("com,a:80)/x", "http://a.com:80/x"),
        ("com,a:80)/x", "https://a.com:80/x"),
        ("de,strasse)/", "http://straße.de/"),
    ]
    lines = sorted(f'{key} 20200102030405 {{"url": "{url}"}}\n'.encode() for key, url in rows)
    write_zipnum(lines, tmp_path / "a.idx", 1)
    (tmp_path / "a.cdxj").write_bytes(b"".join(lines))
    for name in ("a.idx", "a.cdxj"):
        actual = sorted(capture.uri for capture in find_index_captures(tmp_path / name, url, Problems()))
        assert (name, actual) == (name, expected)
