"""Reading and writing CDX and CDXJ."""

import gzip
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.index import strategies
from tests.real_data import DATA
from unlost.errors import InputError
from unlost.index import IndexRow, cdx, read_index_captures, read_index_rows
from unlost.index import cdx as index_cdx
from unlost.problems import Problems

SAMPLE = b'com,a)/ 20140210000001 {"url": "http://a.com/", "status": "200", "offset": "7", "filename": "a.warc.gz"}\n'


def read(path: Path) -> tuple[list[IndexRow], dict[str, int]]:
    """Return the rows of a file, without their places, and the problems by kind."""
    problems = Problems()
    rows = [IndexRow(row.key, row.timestamp, row.fields) for row in read_index_rows(path, problems)]
    return rows, problems.counts


TMP = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@TMP
@given(rows=st.lists(strategies.ROWS, max_size=8))
def test_cdxj_reads_back(tmp_path: Path, rows: list[IndexRow]) -> None:
    """What is written as CDXJ is read again, field for field."""
    file = tmp_path / "a.cdxj"
    file.write_bytes(b"".join(index_cdx.write_cdxj(rows)))
    assert read(file) == (rows, {})


@TMP
@pytest.mark.parametrize("layout", [cdx.CDX9, cdx.CDX10, cdx.CDX11], ids=["9", "10", "11"])
@given(rows=st.lists(strategies.ROWS, min_size=1, max_size=8))
def test_cdx_reads_back_with_and_without_its_header(
    tmp_path: Path, layout: cdx.CdxLayout, rows: list[IndexRow]
) -> None:
    """What is written as CDX is read again, as far as it has columns for it."""
    kept = [IndexRow(r.key, r.timestamp, {n: v for n, v in r.fields.items() if n in layout.columns}) for r in rows]
    lines = list(cdx.write_cdx(rows, layout))
    for text in (lines, lines[1:]):
        file = tmp_path / "a.cdx"
        file.write_bytes(b"".join(text))
        assert read(file) == (kept, {})


def test_any_declared_order_of_columns_is_read(tmp_path: Path) -> None:
    """The header's first byte is the delimiter, its letters name the columns, also those that nobody knows."""
    file = tmp_path / "a.cdx"
    file.write_bytes(b"\tCDX\tb\tg\tV\tQ\ta\ts\n2014\tx.arc\t7\tde\thttp://a.com/B c\t404\n")
    (row,), problems = read(file)
    assert problems == {}
    assert row.fields == {"filename": "x.arc", "offset": "7", "cdx-Q": "de", "url": "http://a.com/B c", "status": "404"}
    assert row.to_capture().key == "com,a)/b%20c"


def test_wget_names_the_address_twice(tmp_path: Path) -> None:
    """Its first column is the address, not a key."""
    file = tmp_path / "a.cdx"
    file.write_bytes(b" CDX a b a m s k r M V g u\nhttp://a.com/ 2014 http://a.com/ text/html 200 X - - 7 a.warc <u>\n")
    (row,), _ = read(file)
    assert row.to_capture().key == "com,a)/"


def test_openwayback_rows(tmp_path: Path) -> None:
    """Four columns, ISO dates, keys with parentheses, and a reference instead of file and offset."""
    file = tmp_path / "a.cdxj"
    file.write_bytes(
        b"!OpenWayback-CDXJ 1.0\n"
        b'(com,example,)/ 2014-02-10T00:00:01.01Z revisit {"uri": "http://www.example.com/", "hsc": 200, '
        b'"ref": "warcfile:a.warc.gz#17", "sha": "AB", "rle": 5, "rou": "http://example.com/", "rod": "2013"}\n'
    )
    problems = Problems()
    (capture,) = read_index_captures(file, problems)
    assert problems.total == 0
    assert (capture.key, capture.datetime, capture.status) == ("com,example)/", "20140210000001", 200)
    assert (capture.filename, capture.offset, capture.length, capture.digest) == ("a.warc.gz", 17, 5, "AB")
    assert capture.revisit
    assert capture.revisit_of == ("http://example.com/", "20130101000000")


def zstd(data: bytes) -> bytes:
    """Return a text as `zstd` compresses it."""
    return subprocess.run(["zstd", "-c"], input=data, capture_output=True, check=True).stdout


@pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gzip", "zstd"])
@pytest.mark.parametrize("cut", [0, 50], ids=["one", "two"])
def test_compressed_files_read_alike(tmp_path: Path, pack: Callable[[bytes], bytes], cut: int) -> None:
    """In one member or frame or in several, with padding behind or not."""
    plain, packed = tmp_path / "a.cdxj", tmp_path / "a.cdxj.gz"
    plain.write_bytes(SAMPLE * 100)
    text = SAMPLE * 100
    packed.write_bytes(pack(text[:cut]) + pack(text[cut:]) + b"\0" * cut)
    assert read(packed) == read(plain)
    assert len(read(packed)[0]) == 100


def test_truncated_zstd_keeps_what_came_before(tmp_path: Path) -> None:
    """To the last whole block, and the damage is one problem."""
    file = tmp_path / "a.cdxj.zst"
    whole = zstd(b"".join(SAMPLE.replace(b"com,a", f"com,a{i}".encode()) for i in range(5000)))
    file.write_bytes(whole[:-9])
    rows, problems = read(file)
    assert problems.pop("truncated") == 1
    assert len(rows) > 1000
    assert problems == {"cut-line": 1}, "the line in which it broke off"
    file.write_bytes(whole + b"rubbish")
    rows, problems = read(file)
    assert (len(rows), problems) == (5000, {"trailing-garbage": 1})


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (b"\x00\x01\x02\xff" * 100 + b"\n" + SAMPLE, {"binary": 1}),
        (b"one two three\n" + SAMPLE, {"bad-field-count": 1}),
        (b'com,a)/ 2014 {"url": \n' + SAMPLE, {"bad-json": 1}),
        (b'com,a)/ 2014 {"a": ' + b"[" * 100_000 + b"\n" + SAMPLE, {"bad-json": 1}),
        (b"com,a)/ 2014 {}{\n" + SAMPLE, {"bad-json": 1}),
        (b" CDX\n" + SAMPLE, {"bad-header": 1}),
        (b"x" * (9 << 20) + b"\n" + SAMPLE, {"too-long": 1}),
        (SAMPLE.replace(b"20140210000001", b"20149999"), {"bad-date": 1}),
        (SAMPLE.replace(b'"7"', b'"x"'), {"bad-number": 1}),
        (SAMPLE.replace(b"com,a)/", b")/"), {"bad-address": 1}),
    ],
)
def test_bad_lines_are_counted_and_the_rest_is_read(tmp_path: Path, text: bytes, kinds: dict[str, int]) -> None:
    """Each kind of rubbish has its word, its line and its offset; the next line is read."""
    file = tmp_path / "a.cdxj"
    file.write_bytes(text + SAMPLE)
    problems = Problems()
    captures = list(read_index_captures(file, problems))
    assert problems.counts == kinds
    assert len(captures) >= 1
    (first,) = problems.first.values()
    assert (first.line, first.offset) == (1, 0)
    assert str(first).isprintable()


def test_invalid_utf8_is_kept_as_it_is(tmp_path: Path) -> None:
    """A Latin-1 address survives reading and writing."""
    file = tmp_path / "a.cdx"
    line = b"com,a)/%fc 2014 http://a.com/\xfc text/html 200 X - 7 a.warc\n"
    file.write_bytes(line)
    problems = Problems()
    rows = list(read_index_rows(file, problems))
    assert list(cdx.write_cdx(rows, cdx.CDX9))[1] == line
    assert rows[0].to_capture().key == "com,a)/%fc"


def test_bytes_that_are_no_text_are_escaped_in_captures(tmp_path: Path) -> None:
    """The address of a capture can be written as JSON and read by anybody; also where it must stand for the key."""
    file = tmp_path / "a.cdx"
    file.write_bytes(b" CDX a b r\nhttp://a.com/\xfc 2014 http://b.com/\xfd\n")
    (row,), _ = read(file)
    assert (row.to_capture().uri, row.to_capture().redirect) == ("http://a.com/%FC", "http://b.com/%FD")
    assert next(index_cdx.write_cdxj([row])).startswith(b"com,a)/%fc 2014 {")


@pytest.mark.parametrize("escape", [b"\\ud800", b"\\uDFFF", b"\\udc00"])
def test_half_a_surrogate_pair_is_bad_json(tmp_path: Path, escape: bytes) -> None:
    """It stands for no character, and no file could be written with it; a whole pair is one."""
    file = tmp_path / "a.cdxj"
    file.write_bytes(SAMPLE.replace(b"a.com/", b"a.com/" + escape) + SAMPLE.replace(b"a.com/", b"\\ud83d\\ude00.com/"))
    problems = Problems()
    assert [capture.uri for capture in read_index_captures(file, problems)] == ["http://\U0001f600.com/"]
    assert problems.counts == {"bad-json": 1}


def test_keys_may_have_white_space_that_only_unicode_knows(tmp_path: Path) -> None:
    """Columns end at a space, not at a no-break or ideographic one."""
    file = tmp_path / "a.cdxj"
    file.write_bytes(SAMPLE.replace(b"com,a)/", "com,a)/\u00a0\u3000x".encode()))
    (row,), problems = read(file)
    assert (row.key, row.timestamp, problems) == ("com,a)/\u00a0\u3000x", "20140210000001", {})


def test_nobody_can_write_rows_of_their_own(tmp_path: Path) -> None:
    """What would end a line or a column is escaped, whatever its source allowed."""
    source, target = tmp_path / "a.cdx", tmp_path / "b.cdx"
    source.write_bytes(b"\tCDX\tN\tb\ta\tm\ncom,a)/x y\t2014\thttp://a.com/x y\t\x0btext\n")
    (row,), _ = read(source)
    evil = IndexRow(row.key, "2014\n1", {**row.fields, "digest": "X\ncom,evil)/ 2014 - - - - - - - - -\r"})
    for lines in (index_cdx.write_cdxj([evil]), cdx.write_cdx([evil]), cdx.write_cdx([evil], cdx.CDX9)):
        target.write_bytes(b"".join(lines))
        (found,), problems = read(target)
        assert (found.key, found.timestamp, problems) == ("com,a)/x%20y", "2014%0A1", {})


def test_rows_without_a_key_are_written_with_one(tmp_path: Path) -> None:
    """Wget's files have none, and rows without it could neither be read again nor found."""
    source, target = tmp_path / "a.cdx", tmp_path / "b"
    source.write_bytes(b" CDX a b m\nhttp://www.A.com/b 2014 text/html\ndns:a.com 2014 text/dns\n")
    rows, _ = read(source)
    for lines in (index_cdx.write_cdxj(rows), cdx.write_cdx(rows)):
        target.write_bytes(b"".join(lines))
        assert [row.key for row in read(target)[0]] == ["com,a)/b", "dns:a.com"]


def test_a_byte_order_mark_hides_no_header(tmp_path: Path) -> None:
    """The columns are those that the header behind it names."""
    file = tmp_path / "a.cdx"
    file.write_bytes(b"\xef\xbb\xbf CDX a b N m s k r V g\nhttp://a.com/ 2014 com,a)/ text/html 200 X - 7 a.warc\n")
    (row,), problems = read(file)
    assert (row.key, row.fields["url"], problems) == ("com,a)/", "http://a.com/", {})


def test_digests_have_the_spelling_of_those_of_archive_files(tmp_path: Path) -> None:
    """Else a page in an index and the same page in its WARC would seem to differ."""
    file = tmp_path / "a.cdx"
    file.write_bytes(b"com,a)/ 2014 http://a.com/ text/html 200 3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ - 7 a.warc\n")
    assert read(file)[0][0].to_capture().digest == "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"


def test_problems_are_printable(tmp_path: Path) -> None:
    """No terminal acts on what a file, or its name, has in it."""
    file = tmp_path / "a\x1b[31m\udcff.cdxj"
    file.write_bytes(b'com,a)/ 2014\xff\x1b[31m {"url": "http://a.com/"}\n')
    problems = Problems()
    assert not list(read_index_captures(file, problems))
    assert str(problems.first["bad-date"]).isprintable()


def test_truncated_gzip_keeps_what_came_before(tmp_path: Path) -> None:
    """The damage is one problem, with the place to which the text could be read."""
    file = tmp_path / "a.cdxj.gz"
    whole = gzip.compress(b"".join(SAMPLE.replace(b"com,a", f"com,a{i}".encode()) for i in range(5000)))
    file.write_bytes(whole[: len(whole) // 2])
    rows, problems = read(file)
    assert problems.pop("truncated") == 1
    assert len(rows) > 1000
    assert problems == {"cut-line": 1}, "the line in which it broke off"


@pytest.mark.parametrize("cut", range(1, 9))
def test_half_a_row_is_no_row(tmp_path: Path, cut: int) -> None:
    """It could pass for a whole one with half the name of a file; in a sound file, the last line needs no end."""
    file = tmp_path / "a.cdx.gz"
    row = b"com,a)/ 2014 http://a.com/ text/html 200 X - 7 a-long-name.warc.gz\n"
    # Text that is stored as it is can be cut at any byte.
    file.write_bytes(gzip.compress(row + row, 0)[: -8 - cut])
    rows, problems = read(file)
    assert ([row.fields["filename"] for row in rows], problems) == (
        ["a-long-name.warc.gz"],
        {"cut-line": 1, "truncated": 1},
    )
    file.write_bytes(gzip.compress((row + row)[:-cut]))
    assert len(read(file)[0]) == 2


def test_headers_behind_rows_are_counted(tmp_path: Path) -> None:
    """They may have been meant as rows; above all rows, and where files were put together, headers are headers."""
    file = tmp_path / "a.cdxj"
    file.write_bytes(b"!meta {}\n# comment\n" + SAMPLE + b"!com,a)/ 2014 {}\n@x\n" + SAMPLE + b"#\n\n")
    rows, problems = read(file)
    assert (len(rows), problems) == (2, {"late-header": 3})
    header = b" CDX N b a m s k r V g\n# comment\n"
    file.write_bytes(header + b"com,a)/ 2014 http://a.com/ text/html 200 X - 7 a.warc\n" + header[:23])
    rows, problems = read(file)
    assert (len(rows), problems) == (1, {})


def test_corrupt_gzip_keeps_what_came_before(tmp_path: Path) -> None:
    """A wrong checksum is told at the end of the text that it belongs to."""
    file = tmp_path / "a.cdxj.gz"
    whole = bytearray(gzip.compress(SAMPLE * 10))
    whole[-8:-4] = (zlib.crc32(SAMPLE) ^ 1).to_bytes(4, "little")
    file.write_bytes(whole)
    rows, problems = read(file)
    assert (len(rows), problems) == (10, {"corrupt": 1})


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    """There is nothing to count."""
    with pytest.raises(InputError, match="cannot be read: No such file"):
        list(read_index_rows(tmp_path / "none", Problems()))


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "captures", "web_pages", "revisits"),
    [
        ("archive-org-2008.cdx", 822, 783, 0),
        ("archive-org-root.cdx11.gz", 2144, 2144, 211),
        ("magazine.cdxj", 65, 65, 0),
    ],
)
def test_real_indexes_are_read_to_the_last_row(name: str, captures: int, web_pages: int, revisits: int) -> None:
    """Every row is a capture, and `dns:` and `warcinfo` rows are told from web pages."""
    problems = Problems()
    found = list(read_index_captures(DATA / "cdx" / name, problems))
    assert problems.counts == {}
    assert len(found) == captures
    assert sum(capture.key is not None for capture in found) == web_pages
    assert sum(capture.revisit for capture in found) == revisits
