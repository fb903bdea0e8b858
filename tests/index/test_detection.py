"""Input formats are detected from magic bytes and many lines; ambiguous input is rejected."""

import gzip
from pathlib import Path

import pytest

from unlost.errors import InputError
from unlost.index import SAMPLED_LINES, classify_line, detect_line_kind, detect_query_format, reject_unsupported_formats
from unlost.mementomap import detect_input_kind, refuse_mixed_kinds

CDXJ = b'com,a)/%d 20140102030405 {"url": "http://a.com/%d", "mime": "text/html"}\n'
CDX = b"com,a)/%d 20140102030405 http://a.com/%d text/html 200 AAAA - - 10 20 a.warc.gz\n"
INDEX = b"".join(CDXJ % (n, n) for n in range(30))
URLS = b"".join(b"http://a.com/%d\n" % n for n in range(30))


def write_file(tmp_path: Path, data: bytes, name: str = "file") -> Path:
    """Write a file with this content and return its path."""
    path = tmp_path / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    "stray", [b"garbage", b"http://a.com/", b"a b c d", b"a b c d e f g h i", b"com,a)/ 7", b"com,a\0 2014 {}"]
)
def test_detection_with_stray_first_line_uses_later_lines(stray: bytes, tmp_path: Path) -> None:
    """One unrecognised first line does not change the detected kind."""
    assert detect_input_kind(write_file(tmp_path, stray + b"\n" + INDEX)) == "index"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (INDEX, "index"),
        (b"".join(CDX % (n, n) for n in range(9)), "index"),
        (INDEX + b"".join(CDX % (n, n) for n in range(30)), "index"),
        (b" CDX N b a\n" + URLS, "index"),
        (URLS, "urls"),
        (b"# a list\n" + URLS, "urls"),
        (b"1356998400\tpics\thttp://a.com/\n", "urls"),
        (b'1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 7\n', "log"),
        (b"com,a)/ 7\ncom,b)/* 300+/20-\n", "map"),
        (b'!fields {"keys": ["surt"]}\nanything\n', "map"),
        (b"", "index"),
    ],
)
def test_line_kind_of_plain_and_gzip_files_is_detected(text: bytes, kind: str, tmp_path: Path) -> None:
    """Plain and compressed files yield the same kind."""
    assert detect_line_kind(write_file(tmp_path, text)) == kind
    assert detect_line_kind(write_file(tmp_path, gzip.compress(text), "file.gz")) == kind


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (URLS + CDXJ % (1, 1), "lines of different kinds"),
        (URLS[:200] + b"a b c\n" * 30, "lines of different kinds"),
        (b"a b c\nd e f\n", "expected lines of CDX or CDXJ"),
        (b'{"uri": "http://a.com/"}\n', "expected lines of CDX or CDXJ"),
        (bytes(range(256)) * 9, "binary"),
        (INDEX.replace(b"\n", b"\r"), "bare CR"),
        (b" CDX N b a\rcom,a)/ 2014 http://a.com/\r", "bare CR"),
        (b"com,a)/ 20140102030405\tpart-0\t0\t1234\t1\n", r"\.idx"),
    ],
)
def test_ambiguous_line_kind_is_rejected(text: bytes, message: str, tmp_path: Path) -> None:
    """Mixed, unknown or binary content raises an error that names the cause."""
    with pytest.raises(InputError, match=message):
        detect_line_kind(write_file(tmp_path, text))


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        (b"PAR1\x15\x04", "a.parquet", "Parquet.*--engine spark"),
        (b"BZh91AY&SY", "a.cdx.bz2", "bzip2 -d"),
        (b"\xfd7zXZ\0\0", "a.xz", "xz -d"),
        (b"SQLite format 3\0", "a.db", "SQLite"),
        ("http://a.com/\n".encode("utf-16"), "a.txt", "UTF-16"),
        (INDEX, "ALL.summary", r"\.idx"),
    ],
)
def test_unsupported_format_is_rejected(data: bytes, name: str, message: str, tmp_path: Path) -> None:
    """Unsupported formats are recognised by magic bytes or file name."""
    with pytest.raises(InputError, match=message):
        reject_unsupported_formats(write_file(tmp_path, data, name))
    with pytest.raises(InputError, match=message):
        detect_input_kind(tmp_path / name)


def test_line_with_json_object_is_not_a_url() -> None:
    """A line with a JSON object is not a URL, whatever precedes the object."""
    assert classify_line(b'http://a.com/ {"url": 1}') == "other"
    assert classify_line(b'x {"url": 1}') == "other"


def test_mixed_input_kinds_are_rejected(tmp_path: Path) -> None:
    """Each file is detected separately. CDX and CDXJ may be combined, URL lists and indexes may not."""
    cdx, cdxj, urls = (
        write_file(tmp_path, data, name) for data, name in ((CDX % (1, 1), "a.cdx"), (INDEX, "b.cdxj"), (URLS, "c.txt"))
    )
    assert [detect_input_kind(each) for each in (cdx, cdxj, urls)] == ["index", "index", "urls"]
    refuse_mixed_kinds({"a.cdx": "index", "b.idx": "zipnum", "c.warc": "archive"})
    refuse_mixed_kinds({"a.txt": "urls", "b.txt": "urls"})
    with pytest.raises(InputError, match=r"c\.txt: a list of URLs, but a\.cdx is an index.*--input mixed"):
        refuse_mixed_kinds({"a.cdx": "index", "c.txt": "urls"})


def test_detection_of_large_file_samples_first_lines(tmp_path: Path) -> None:
    """Detection reads at most `SAMPLED_LINES` lines."""
    assert detect_line_kind(write_file(tmp_path, URLS * (SAMPLED_LINES // 30 + 1) + INDEX)) == "urls"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b"", "urls"),
        (b"# nothing\n", "urls"),
        (URLS, "urls"),
        (b"a b c\n", "urls"),
        (b'{"uri": "http://a.com/"}\n', "json"),
        (b'1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 7\n', "log"),
    ],
)
def test_query_format_of_logs_and_lists_is_detected(text: bytes, kind: str, tmp_path: Path) -> None:
    """Logs, URL lists and JSON Lines are detected."""
    assert detect_query_format(write_file(tmp_path, text)) == kind


@pytest.mark.parametrize("text", [INDEX, b"garbage\n" + INDEX, b'!fields {"keys": ["surt"]}\n', b"!meta {}\n"])
def test_query_format_of_index_or_map_is_rejected(text: bytes, tmp_path: Path) -> None:
    """An index read as a list of misses would exclude the pages that it contains."""
    with pytest.raises(InputError, match="not a log or a list of URLs"):
        detect_query_format(write_file(tmp_path, text))
