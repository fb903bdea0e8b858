"""CDX and CDXJ files are read and written."""

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


def read_rows(path: Path) -> tuple[list[IndexRow], dict[str, int]]:
    """Return the rows of a file, without their positions, and the problem counts."""
    problems = Problems()
    rows = [IndexRow(row.key, row.timestamp, row.fields) for row in read_index_rows(path, problems)]
    return rows, problems.counts


TMP = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@TMP
@given(rows=st.lists(strategies.ROWS, max_size=8))
def test_cdxj_round_trip_preserves_all_fields(tmp_path: Path, rows: list[IndexRow]) -> None:
    """Rows written as CDXJ are read back unchanged."""
    file = tmp_path / "a.cdxj"
    file.write_bytes(b"".join(index_cdx.write_cdxj(rows)))
    assert read_rows(file) == (rows, {})


@TMP
@pytest.mark.parametrize("layout", [cdx.CDX9, cdx.CDX10, cdx.CDX11], ids=["9", "10", "11"])
@given(rows=st.lists(strategies.ROWS, min_size=1, max_size=8))
def test_cdx_round_trip_preserves_known_columns(tmp_path: Path, layout: cdx.CdxLayout, rows: list[IndexRow]) -> None:
    """Rows written as CDX are read back with the fields of the layout, with and without the header."""
    expected = [IndexRow(r.key, r.timestamp, {n: v for n, v in r.fields.items() if n in layout.columns}) for r in rows]
    lines = list(cdx.write_cdx(rows, layout))
    for text in (lines, lines[1:]):
        file = tmp_path / "a.cdx"
        file.write_bytes(b"".join(text))
        assert read_rows(file) == (expected, {})


def test_cdx_with_custom_column_order_is_read(tmp_path: Path) -> None:
    """The header's first byte is the delimiter; its letters name the columns, including unknown ones."""
    file = tmp_path / "a.cdx"
    file.write_bytes(b"\tCDX\tb\tg\tV\tQ\ta\ts\n2014\tx.arc\t7\tde\thttp://a.com/B c\t404\n")
    (row,), problems = read_rows(file)
    assert problems == {}
    assert row.fields == {"filename": "x.arc", "offset": "7", "cdx-Q": "de", "url": "http://a.com/B c", "status": "404"}
    assert row.to_capture().key == "com,a)/b%20c"


def test_wget_cdx_without_key_column_yields_keys(tmp_path: Path) -> None:
    """The first column of Wget's CDX is the URL, not a SURT."""
    file = tmp_path / "a.cdx"
    file.write_bytes(b" CDX a b a m s k r M V g u\nhttp://a.com/ 2014 http://a.com/ text/html 200 X - - 7 a.warc <u>\n")
    (row,), _ = read_rows(file)
    assert row.to_capture().key == "com,a)/"


def test_openwayback_cdxj_row_is_parsed(tmp_path: Path) -> None:
    """OpenWayback writes four columns, ISO dates, SURTs in parentheses, and one field for file and offset."""
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


def compress_zstd(data: bytes) -> bytes:
    """Compress data with the `zstd` command."""
    return subprocess.run(["zstd", "-c"], input=data, capture_output=True, check=True).stdout


@pytest.mark.parametrize("compress", [gzip.compress, compress_zstd], ids=["gzip", "zstd"])
@pytest.mark.parametrize("cut", [0, 50], ids=["one", "two"])
def test_compressed_index_yields_same_rows_as_plain(
    tmp_path: Path, compress: Callable[[bytes], bytes], cut: int
) -> None:
    """Files of one or two gzip members or zstd frames, with or without padding, yield the same rows."""
    plain, compressed = tmp_path / "a.cdxj", tmp_path / "a.cdxj.gz"
    plain.write_bytes(SAMPLE * 100)
    text = SAMPLE * 100
    compressed.write_bytes(compress(text[:cut]) + compress(text[cut:]) + b"\0" * cut)
    assert read_rows(compressed) == read_rows(plain)
    assert len(read_rows(compressed)[0]) == 100


def test_truncated_zstd_yields_rows_before_damage(tmp_path: Path) -> None:
    """All rows of complete blocks are read, and the damage is counted once."""
    file = tmp_path / "a.cdxj.zst"
    whole = compress_zstd(b"".join(SAMPLE.replace(b"com,a", f"com,a{i}".encode()) for i in range(5000)))
    file.write_bytes(whole[:-9])
    rows, problems = read_rows(file)
    assert problems.pop("truncated") == 1
    assert len(rows) > 1000
    assert problems == {"cut-line": 1}, "the incomplete last line"
    file.write_bytes(whole + b"garbage")
    rows, problems = read_rows(file)
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
def test_invalid_line_is_counted_and_rest_is_read(tmp_path: Path, text: bytes, kinds: dict[str, int]) -> None:
    """Each invalid line is counted with kind, line and offset, and the next line is read."""
    file = tmp_path / "a.cdxj"
    file.write_bytes(text + SAMPLE)
    problems = Problems()
    captures = list(read_index_captures(file, problems))
    assert problems.counts == kinds
    assert len(captures) >= 1
    (first,) = problems.first.values()
    assert (first.line, first.offset) == (1, 0)
    assert str(first).isprintable()


def test_invalid_utf8_in_cdx_round_trip_is_preserved(tmp_path: Path) -> None:
    """A Latin-1 URL is written with the same bytes."""
    file = tmp_path / "a.cdx"
    line = b"com,a)/%fc 2014 http://a.com/\xfc text/html 200 X - 7 a.warc\n"
    file.write_bytes(line)
    problems = Problems()
    rows = list(read_index_rows(file, problems))
    assert list(cdx.write_cdx(rows, cdx.CDX9))[1] == line
    assert rows[0].to_capture().key == "com,a)/%fc"


def test_invalid_utf8_in_capture_is_percent_encoded(tmp_path: Path) -> None:
    """The URLs of a capture are valid text, also when a URL replaces the missing key."""
    file = tmp_path / "a.cdx"
    file.write_bytes(b" CDX a b r\nhttp://a.com/\xfc 2014 http://b.com/\xfd\n")
    (row,), _ = read_rows(file)
    assert (row.to_capture().uri, row.to_capture().redirect) == ("http://a.com/%FC", "http://b.com/%FD")
    assert next(index_cdx.write_cdxj([row])).startswith(b"com,a)/%fc 2014 {")


@pytest.mark.parametrize("escape", [b"\\ud800", b"\\uDFFF", b"\\udc00"])
def test_lone_surrogate_in_cdxj_is_bad_json(tmp_path: Path, escape: bytes) -> None:
    """A lone surrogate is rejected; a complete pair is decoded."""
    file = tmp_path / "a.cdxj"
    file.write_bytes(SAMPLE.replace(b"a.com/", b"a.com/" + escape) + SAMPLE.replace(b"a.com/", b"\\ud83d\\ude00.com/"))
    problems = Problems()
    assert [capture.uri for capture in read_index_captures(file, problems)] == ["http://\U0001f600.com/"]
    assert problems.counts == {"bad-json": 1}


def test_unicode_white_space_in_key_is_preserved(tmp_path: Path) -> None:
    """Columns are separated by spaces only, not by no-break or ideographic spaces."""
    file = tmp_path / "a.cdxj"
    file.write_bytes(SAMPLE.replace(b"com,a)/", "com,a)/\u00a0\u3000x".encode()))
    (row,), problems = read_rows(file)
    assert (row.key, row.timestamp, problems) == ("com,a)/\u00a0\u3000x", "20140210000001", {})


def test_line_breaks_in_fields_are_escaped(tmp_path: Path) -> None:
    """Field values cannot inject rows or columns."""
    source, target = tmp_path / "a.cdx", tmp_path / "b.cdx"
    source.write_bytes(b"\tCDX\tN\tb\ta\tm\ncom,a)/x y\t2014\thttp://a.com/x y\t\x0btext\n")
    (row,), _ = read_rows(source)
    malicious = IndexRow(row.key, "2014\n1", {**row.fields, "digest": "X\ncom,evil)/ 2014 - - - - - - - - -\r"})
    for lines in (index_cdx.write_cdxj([malicious]), cdx.write_cdx([malicious]), cdx.write_cdx([malicious], cdx.CDX9)):
        target.write_bytes(b"".join(lines))
        (restored,), problems = read_rows(target)
        assert (restored.key, restored.timestamp, problems) == ("com,a)/x%20y", "2014%0A1", {})


def test_rows_without_key_are_written_with_computed_key(tmp_path: Path) -> None:
    """Wget's CDX files have no key column; written rows get a computed key."""
    source, target = tmp_path / "a.cdx", tmp_path / "b"
    source.write_bytes(b" CDX a b m\nhttp://www.A.com/b 2014 text/html\ndns:a.com 2014 text/dns\n")
    rows, _ = read_rows(source)
    for lines in (index_cdx.write_cdxj(rows), cdx.write_cdx(rows)):
        target.write_bytes(b"".join(lines))
        assert [row.key for row in read_rows(target)[0]] == ["com,a)/b", "dns:a.com"]


def test_cdx_header_after_byte_order_mark_is_read(tmp_path: Path) -> None:
    """The header after a byte order mark names the columns."""
    file = tmp_path / "a.cdx"
    file.write_bytes(b"\xef\xbb\xbf CDX a b N m s k r V g\nhttp://a.com/ 2014 com,a)/ text/html 200 X - 7 a.warc\n")
    (row,), problems = read_rows(file)
    assert (row.key, row.fields["url"], problems) == ("com,a)/", "http://a.com/", {})


def test_capture_digest_from_cdx_has_algorithm_prefix(tmp_path: Path) -> None:
    """A digest without prefix is read as `sha1:`, as in WARC files."""
    file = tmp_path / "a.cdx"
    file.write_bytes(b"com,a)/ 2014 http://a.com/ text/html 200 3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ - 7 a.warc\n")
    assert read_rows(file)[0][0].to_capture().digest == "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"


def test_problem_with_control_characters_is_printable(tmp_path: Path) -> None:
    """Control characters in content or file names are escaped in messages."""
    file = tmp_path / "a\x1b[31m\udcff.cdxj"
    file.write_bytes(b'com,a)/ 2014\xff\x1b[31m {"url": "http://a.com/"}\n')
    problems = Problems()
    assert not list(read_index_captures(file, problems))
    assert str(problems.first["bad-date"]).isprintable()


def test_truncated_gzip_yields_rows_before_damage(tmp_path: Path) -> None:
    """All rows before the damage are read, and the damage is counted once."""
    file = tmp_path / "a.cdxj.gz"
    whole = gzip.compress(b"".join(SAMPLE.replace(b"com,a", f"com,a{i}".encode()) for i in range(5000)))
    file.write_bytes(whole[: len(whole) // 2])
    rows, problems = read_rows(file)
    assert problems.pop("truncated") == 1
    assert len(rows) > 1000
    assert problems == {"cut-line": 1}, "the incomplete last line"


@pytest.mark.parametrize("cut", range(1, 9))
def test_incomplete_last_row_of_truncated_gzip_is_rejected(tmp_path: Path, cut: int) -> None:
    """A row cut by truncation is counted as `cut-line`. In a complete file the last line needs no line end."""
    file = tmp_path / "a.cdx.gz"
    row = b"com,a)/ 2014 http://a.com/ text/html 200 X - 7 a-long-name.warc.gz\n"
    # Uncompressed deflate blocks can be cut at any byte.
    file.write_bytes(gzip.compress(row + row, 0)[: -8 - cut])
    rows, problems = read_rows(file)
    assert ([row.fields["filename"] for row in rows], problems) == (
        ["a-long-name.warc.gz"],
        {"cut-line": 1, "truncated": 1},
    )
    file.write_bytes(gzip.compress((row + row)[:-cut]))
    assert len(read_rows(file)[0]) == 2


def test_header_after_rows_is_counted(tmp_path: Path) -> None:
    """Headers after rows are counted as `late-header`, except the header of a concatenated CDX file."""
    file = tmp_path / "a.cdxj"
    file.write_bytes(b"!meta {}\n# comment\n" + SAMPLE + b"!com,a)/ 2014 {}\n@x\n" + SAMPLE + b"#\n\n")
    rows, problems = read_rows(file)
    assert (len(rows), problems) == (2, {"late-header": 3})
    header = b" CDX N b a m s k r V g\n# comment\n"
    file.write_bytes(header + b"com,a)/ 2014 http://a.com/ text/html 200 X - 7 a.warc\n" + header[:23])
    rows, problems = read_rows(file)
    assert (len(rows), problems) == (1, {})


def test_gzip_with_wrong_checksum_yields_all_rows(tmp_path: Path) -> None:
    """A wrong checksum is counted once, after all rows."""
    file = tmp_path / "a.cdxj.gz"
    whole = bytearray(gzip.compress(SAMPLE * 10))
    whole[-8:-4] = (zlib.crc32(SAMPLE) ^ 1).to_bytes(4, "little")
    file.write_bytes(whole)
    rows, problems = read_rows(file)
    assert (len(rows), problems) == (10, {"corrupt": 1})


def test_missing_index_file_raises_error(tmp_path: Path) -> None:
    """A missing file raises `InputError`."""
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
def test_real_index_yields_all_captures(name: str, captures: int, web_pages: int, revisits: int) -> None:
    """Every row is a capture; `dns:` and `warcinfo` rows have no key."""
    problems = Problems()
    captures_read = list(read_index_captures(DATA / "cdx" / name, problems))
    assert problems.counts == {}
    assert len(captures_read) == captures
    assert sum(capture.key is not None for capture in captures_read) == web_pages
    assert sum(capture.revisit for capture in captures_read) == revisits
