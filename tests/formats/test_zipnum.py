"""ZipNum: random access to sorted, compressed blocks."""

import gzip
import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.formats import strategies
from unlost.errors import InputError
from unlost.formats import Problems, cdxj, zipnum
from unlost.formats.index import find_captures, read_rows
from unlost.formats.row import Row
from unlost.formats.zipnum import ZipNum, write_zipnum


def lines_of(rows: list[Row]) -> list[bytes]:
    """Return the rows as sorted lines."""
    return sorted(cdxj.write_rows(rows))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(strategies.ROWS, min_size=1, max_size=40), size=st.integers(1, 7), wanted=strategies.KEYS)
def test_every_key_is_found_and_no_other(tmp_path: Path, rows: list[Row], size: int, wanted: str) -> None:
    """A look-up finds exactly the lines of a key, or of all that begin with it, wherever blocks begin."""
    lines = lines_of(rows)
    write_zipnum(lines, tmp_path / "a.idx", size)
    with ZipNum(tmp_path / "a.idx") as index:
        problems = Problems()
        found = [line.text + b"\n" for block in index.blocks() for line in index.block_lines(block, problems)]
        assert found == lines
        for key in {row.key.encode() for row in rows} | {wanted.encode(), b"", b"zzz"}:
            found = [line + b"\n" for line in index.lines(key, problems)]
            assert found == [line for line in lines if line.split(b" ")[0] == key]
            below = [line + b"\n" for line in index.lines(key, problems, prefix=True)]
            assert below == [line for line in lines if line.split(b" ")[0].startswith(key)]
        assert problems.counts == {}


def test_the_same_lines_make_the_same_bytes(tmp_path: Path) -> None:
    """No clock and no name in what is written; and the list has what the field's lists have."""
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


def test_the_dialect_of_wacz_is_read(tmp_path: Path) -> None:
    """Objects instead of tabs, and the part named in the first line, with whatever path its writer had."""
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
    assert [row.key for row in read_rows(tmp_path / "index.idx", problems)] == ["com,a)/", "com,b)/"]
    assert [capture.uri for capture in find_captures(tmp_path / "index.idx", "http://www.b.com", problems)] == [
        "http://b.com/"
    ]
    assert problems.total == 0


def test_pages_are_found_under_every_spelling(tmp_path: Path) -> None:
    """An index that ends its keys in slashes or writes addresses forwards still has the page."""
    keys = ["1.2.3.4)/a", "com,a)", "com,a)/b/"]
    lines = sorted(f'{key} 2014 {{"url": "http://x.com/"}}\n'.encode() for key in keys)
    write_zipnum(lines, tmp_path / "a.idx")
    for page in ("http://1.2.3.4/a", "http://a.com/", "http://www.a.com/B"):
        assert len(list(find_captures(tmp_path / "a.idx", page, Problems()))) == 1


def test_unsorted_lines_are_refused_and_nothing_is_left(tmp_path: Path) -> None:
    """A look-up in an unsorted index would miss pages."""
    with pytest.raises(InputError, match="line 2: not sorted"):
        write_zipnum([b"b 2014 {}\n", b"a 2014 {}\n"], tmp_path / "a.idx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("listing", "message"),
    [
        (b"com,a)/ 2014\ta.cdx.gz\tx\t7\t1\n", "expected `key date`"),
        (b"rubbish\n", "expected `key date`"),
        (b'!meta 0 {"x": 1}\n', "behind !meta"),
        (b"x" * (9 << 20), "expected lines of less than"),
    ],
    ids=["offset", "rubbish", "meta", "a long line"],
)
def test_bad_lists_are_named(tmp_path: Path, listing: bytes, message: str) -> None:
    """The message has the file and the byte."""
    (tmp_path / "a.idx").write_bytes(listing)
    with pytest.raises(InputError, match=message):
        list(read_rows(tmp_path / "a.idx", Problems()))


ROW = b'com,%b)/ 2014 {"url": "http://%b.com/"}\n'


@pytest.mark.parametrize(
    ("part", "offset", "length", "rows", "message"),
    [
        ("none.gz", 0, 7, 1, "none.gz .byte 0.: bad-block: expected a gzip member: No such file"),
        ("../../../etc/passwd", 0, 7, 1, "passwd .byte 0.: bad-block: expected a gzip member: No such file"),
        ("a.cdx.gz", 3, 7, 1, "a.cdx.gz .byte 3.: bad-block: expected a gzip member: .*incorrect header"),
        ("a.cdx.gz", 0, 20, 1, "a.cdx.gz .byte 0.: bad-block: expected a gzip member: it ends in the middle"),
        ("a.cdx.gz", 0, -4, 2, "a.cdx.gz .byte 0.: bad-block: expected a gzip member: it ends in the middle"),
    ],
)
def test_a_bad_block_costs_itself(tmp_path: Path, part: str, offset: int, length: int, rows: int, message: str) -> None:
    """It is counted, with its part and byte, as far as it can be read it is, and the next one is read."""
    blocks = [gzip.compress(ROW % (name, name)) for name in (b"a", b"b")]
    (tmp_path / "a.cdx.gz").write_bytes(b"".join(blocks))
    size = length if length > 0 else len(blocks[0]) + length
    listing = (
        f"com,a)/ 2014\t{part}\t{offset}\t{size}\t1\ncom,b)/ 2014\ta.cdx.gz\t{len(blocks[0])}\t{len(blocks[1])}\t2\n"
    )
    (tmp_path / "a.idx").write_text(listing)
    problems = Problems()
    assert [row.key for row in read_rows(tmp_path / "a.idx", problems)][-rows:] == ["com,a)/", "com,b)/"][-rows:]
    assert problems.counts == {"bad-block": 1}
    assert re.search(message, str(problems.first["bad-block"]))


def test_a_block_that_never_ends_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bomb is read as far as any block may go, its line of 100 MB is passed over, and the rows before it are kept."""
    monkeypatch.setattr(zipnum, "MAX_BLOCK_BYTES", 50_000_000)
    bomb = gzip.compress(ROW % (b"a", b"a") + b"x" * 100_000_000 + b"\n", 1)
    (tmp_path / "a.cdx.gz").write_bytes(bomb)
    (tmp_path / "a.idx").write_text(f"com,a)/ 2014\ta.cdx.gz\t0\t{len(bomb)}\t1\n")
    problems = Problems()
    assert [row.key for row in read_rows(tmp_path / "a.idx", problems)] == ["com,a)/"]
    assert problems.counts == {"bad-block": 1, "too-long": 1}
    assert problems.first["bad-block"].message.endswith("larger than any index block")
