"""Formats of archive files: ARC, zstd, warcio's output; single records with their bodies."""

import io
import subprocess
from pathlib import Path

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from tests.warc.warcs import PAGE, captures, member, pages, record, scan
from unlost.errors import ArchiveFileError
from unlost.problems import Problems
from unlost.warc import open_warc_record, read_warc_captures

ARC_1 = b"filedesc://a.arc 0.0.0.0 20010203040506 text/plain 76\n1 0 InternetArchive\n"
ARC_1 += b"URL IP-address Archive-date Content-type Archive-length\n\n"
ARC_2 = b"filedesc://a.arc 0.0.0.0 20010203040506 text/plain 200 - - 0 a.arc 122\n2 0 InternetArchive\n"
ARC_2 += b"URL IP-address Archive-date Content-type Result-code Checksum Location Offset Filename Archive-length\n\n"


def arc_record(number: int, fields: bytes) -> bytes:
    """Return an ARC record that contains a page."""
    line = b"http://example.com/%d 1.2.3.4 20010203040506 text/html %b%d\n" % (number, fields, len(PAGE))
    return line + PAGE + b"\n"


@pytest.mark.parametrize(
    ("first", "fields"), [(ARC_1, b""), (ARC_2, b"200 - - 0 a.arc ")], ids=["version 1", "version 2"]
)
@pytest.mark.parametrize("compress", [member, bytes], ids=["gzip", "plain"])
def test_arc_file_of_both_versions_is_read(first: bytes, fields: bytes, compress: type, tmp_path: Path) -> None:
    """Both versions are read, gzipped or not, also after garbage."""
    parts = [first, arc_record(0, fields), arc_record(1, fields)]
    data = b"".join(compress(part) for part in parts)
    path = tmp_path / "a.arc"
    actual, kinds = captures(path, data)
    assert [(c.datetime, c.status, c.mime, c.key) for c in actual] == [
        ("20010203040506", 200, "text/html", f"com,example)/{number}") for number in (0, 1)
    ]
    assert kinds == {}
    opened = open_warc_record(path, actual[1].offset or 0)
    assert (opened.http_line, opened.body.read()) == ("HTTP/1.1 200 OK", b"<p>hello</p>")
    actual, kinds = captures(path, data + b"garbage\n" * 9 + compress(arc_record(2, fields)))
    assert pages(actual) == [0, 1, 2]
    assert kinds == {"garbage": 1}


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        (b"1996", "19960101000000"),
        (b"199610011234", "19961001123400"),
        (b"19961001123456789", "19961001123456"),
        (b"1996100112345678", None),
        (b"199613", None),
    ],
)
def test_arc_date_of_unusual_length_is_normalized(date: bytes, expected: str | None, tmp_path: Path) -> None:
    """Dates are padded or truncated to 14 digits; an invalid date affects only its record."""
    unusual = arc_record(1, b"").replace(b"20010203040506", date)
    actual, kinds = captures(tmp_path / "a.arc", ARC_1 + arc_record(0, b"") + unusual + arc_record(2, b""))
    assert [c.datetime for c in actual] == ["20010203040506", *([expected] if expected else []), "20010203040506"]
    assert kinds == ({} if expected else {"bad-date": 1})


@pytest.mark.parametrize("dictionary", [False, True], ids=["plain frames", "with a dictionary"])
def test_zstd_warc_with_and_without_dictionary_is_read(dictionary: bool, tmp_path: Path) -> None:
    """Records in zstd frames are read; frames may need the dictionary at the start of the file."""
    texts = [record(number=number, block=PAGE + bytes(range(number, number + 90))) for number in range(8)]
    (tmp_path / "dictionary").write_bytes(b"".join(texts))
    with_dictionary = ["-D", str(tmp_path / "dictionary")] if dictionary else []
    data = b""
    if dictionary:
        plain = (tmp_path / "dictionary").read_bytes()
        data = b"\x5d\x2a\x4d\x18" + len(plain).to_bytes(4, "little") + plain
    for text in texts:
        data += subprocess.run(["zstd", "-c", *with_dictionary], input=text, capture_output=True, check=True).stdout
    path = tmp_path / "a.warc.zst"
    actual, kinds = captures(path, data)
    assert pages(actual) == list(range(8))
    assert kinds == {}
    assert sum(capture.length or 0 for capture in actual) + (actual[0].offset or 0) == len(data)
    assert open_warc_record(path, actual[5].offset or 0).body.read() == b"<p>hello</p>" + bytes(range(5, 95))
    actual, kinds = captures(path, data[:-20])
    assert pages(actual)[:7] == list(range(7))
    assert kinds["truncated-zstd"] == 1


# warcio leaves its temporary files to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("gzip", [True, False], ids=["gzip", "plain"])
def test_warc_written_by_warcio_is_read(gzip: bool, tmp_path: Path) -> None:
    """Responses, revisits and resources are read with their digests and without problems."""
    path = tmp_path / "a.warc.gz"
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=gzip, warc_version="1.1")
        file_info = writer.create_warcinfo_record("a.warc.gz", {"software": "a test"})
        head = StatusAndHeaders("301 Moved", [("Content-Type", "text/html"), ("Location", "/b")], protocol="HTTP/1.1")
        page = writer.create_warc_record("http://a.com/", "response", io.BytesIO(b"moved"), http_headers=head)
        digest = page.rec_headers.get_header("WARC-Payload-Digest")
        again = writer.create_revisit_record("http://a.com/", digest, "http://a.com/", "2014-02-10T00:00:01Z")
        file_only = writer.create_warc_record(
            "urn:x:log", "resource", io.BytesIO(b"log"), warc_content_type="text/plain"
        )
        for each in (file_info, page, again, file_only):
            writer.write_record(each)
    actual, kinds = captures(path)
    assert kinds == {}
    assert [(c.uri, c.status, c.mime, c.redirect, c.revisit) for c in actual] == [
        ("http://a.com/", 301, "text/html", "/b", False),
        ("http://a.com/", None, None, None, True),
        ("urn:x:log", None, "text/plain", None, False),
    ]
    assert actual[1].revisit_of == ("http://a.com/", "20140210000001")
    assert actual[0].digest == page.rec_headers.get_header("WARC-Payload-Digest")
    assert [record.type for record in scan(path)[0]] == ["warcinfo", "response", "revisit", "resource"]


def test_record_types_option_selects_other_records(tmp_path: Path) -> None:
    """Requests, metadata and warcinfo are captures only if they are requested."""
    path = tmp_path / "a.warc"
    path.write_bytes(b"".join(record(kind=kind) for kind in ("warcinfo", "request", "metadata", "response")))
    assert len(list(read_warc_captures(path, Problems()))) == 1
    everything = ["warcinfo", "request", "metadata", "response"]
    assert len(list(read_warc_captures(path, Problems(), record_types=everything))) == 4


def test_truncated_record_is_opened_up_to_damage(tmp_path: Path) -> None:
    """The body ends at the damage, which is reported afterwards."""
    block = PAGE + bytes(range(256)) * 40
    path = tmp_path / "a.warc.gz"
    path.write_bytes(member(record(block))[:-30])
    opened = open_warc_record(path, 0)
    assert block.endswith(PAGE[-12:] + bytes(range(256)) * 40)
    assert block.partition(b"\r\n\r\n")[2].startswith(opened.body.read())
    assert {problem.kind for problem in opened.problems()} >= {"truncated-gzip"}


def test_record_in_shared_gzip_member_is_opened_by_skip(tmp_path: Path) -> None:
    """Offset and skip reported by the scanner open the record."""
    path = tmp_path / "a.warc.gz"
    path.write_bytes(member(b"".join(record(number=number) for number in range(3))))
    for number, actual in enumerate(scan(path)[0]):
        assert (
            open_warc_record(path, actual.offset, actual.skip).header("warc-target-uri")
            == f"http://example.com/{number}"
        )


@pytest.mark.parametrize("offset", [1, 10, 10_000])
def test_open_at_invalid_offset_raises_error(offset: int, tmp_path: Path) -> None:
    """The error names the offset at which no record begins."""
    path = tmp_path / "a.warc"
    path.write_bytes(record())
    with pytest.raises(ArchiveFileError, match=f"expected a record at byte {offset}"):
        open_warc_record(path, offset)
    with pytest.raises(FileNotFoundError):
        open_warc_record(tmp_path / "none", 0)
