"""The forms in which archive files come: ARC, zstd, what another writer wrote; and single records with their bodies."""

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
    """Return a record of an ARC with a page in it."""
    line = b"http://example.com/%d 1.2.3.4 20010203040506 text/html %b%d\n" % (number, fields, len(PAGE))
    return line + PAGE + b"\n"


@pytest.mark.parametrize(
    ("first", "fields"), [(ARC_1, b""), (ARC_2, b"200 - - 0 a.arc ")], ids=["version 1", "version 2"]
)
@pytest.mark.parametrize("pack", [member, bytes], ids=["gzip", "plain"])
def test_arc(first: bytes, fields: bytes, pack: type, tmp_path: Path) -> None:
    """Both versions of ARC are read, gzipped or not, and go on after rubbish."""
    parts = [first, arc_record(0, fields), arc_record(1, fields)]
    data = b"".join(pack(part) for part in parts)
    path = tmp_path / "a.arc"
    found, kinds = captures(path, data)
    assert [(c.datetime, c.status, c.mime, c.key) for c in found] == [
        ("20010203040506", 200, "text/html", f"com,example)/{number}") for number in (0, 1)
    ]
    assert kinds == {}
    opened = open_warc_record(path, found[1].offset or 0)
    assert (opened.http_line, opened.body.read()) == ("HTTP/1.1 200 OK", b"<p>hello</p>")
    found, kinds = captures(path, data + b"rubbish\n" * 9 + pack(arc_record(2, fields)))
    assert pages(found) == [0, 1, 2]
    assert kinds == {"garbage": 1}


@pytest.mark.parametrize(
    ("date", "moment"),
    [
        (b"1996", "19960101000000"),
        (b"199610011234", "19961001123400"),
        (b"19961001123456789", "19961001123456"),
        (b"1996100112345678", None),
        (b"199613", None),
    ],
)
def test_arc_dates_of_other_lengths(date: bytes, moment: str | None, tmp_path: Path) -> None:
    """They are padded or cut like all dates; what is none costs its record only."""
    odd = arc_record(1, b"").replace(b"20010203040506", date)
    found, kinds = captures(tmp_path / "a.arc", ARC_1 + arc_record(0, b"") + odd + arc_record(2, b""))
    assert [c.datetime for c in found] == ["20010203040506", *([moment] if moment else []), "20010203040506"]
    assert kinds == ({} if moment else {"bad-date": 1})


@pytest.mark.parametrize("dictionary", [False, True], ids=["plain frames", "with a dictionary"])
def test_zstd(dictionary: bool, tmp_path: Path) -> None:
    """Records in zstd frames are read, also those that need the dictionary at the start of the file."""
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
    found, kinds = captures(path, data)
    assert pages(found) == list(range(8))
    assert kinds == {}
    assert sum(capture.length or 0 for capture in found) + (found[0].offset or 0) == len(data)
    assert open_warc_record(path, found[5].offset or 0).body.read() == b"<p>hello</p>" + bytes(range(5, 95))
    found, kinds = captures(path, data[:-20])
    assert pages(found)[:7] == list(range(7))
    assert kinds["truncated-zstd"] == 1


# warcio leaves its temporary files to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("gzip", [True, False], ids=["gzip", "plain"])
def test_what_warcio_writes(gzip: bool, tmp_path: Path) -> None:
    """Responses, revisits and resources from another writer are read with their digests, and no problem."""
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
    found, kinds = captures(path)
    assert kinds == {}
    assert [(c.uri, c.status, c.mime, c.redirect, c.revisit) for c in found] == [
        ("http://a.com/", 301, "text/html", "/b", False),
        ("http://a.com/", None, None, None, True),
        ("urn:x:log", None, "text/plain", None, False),
    ]
    assert found[1].revisit_of == ("http://a.com/", "20140210000001")
    assert found[0].digest == page.rec_headers.get_header("WARC-Payload-Digest")
    assert [record.type for record in scan(path)[0]] == ["warcinfo", "response", "revisit", "resource"]


def test_other_records_on_demand(tmp_path: Path) -> None:
    """Requests, metadata and warcinfo are captures only where they are asked for."""
    path = tmp_path / "a.warc"
    path.write_bytes(b"".join(record(kind=kind) for kind in ("warcinfo", "request", "metadata", "response")))
    assert len(list(read_warc_captures(path, Problems()))) == 1
    everything = ["warcinfo", "request", "metadata", "response"]
    assert len(list(read_warc_captures(path, Problems(), record_types=everything))) == 4


def test_a_short_record_is_opened_as_far_as_it_goes(tmp_path: Path) -> None:
    """The body of a clipped record comes up to the damage, which is told after it."""
    block = PAGE + bytes(range(256)) * 40
    path = tmp_path / "a.warc.gz"
    path.write_bytes(member(record(block))[:-30])
    opened = open_warc_record(path, 0)
    assert block.endswith(PAGE[-12:] + bytes(range(256)) * 40)
    assert block.partition(b"\r\n\r\n")[2].startswith(opened.body.read())
    assert {problem.kind for problem in opened.problems()} >= {"truncated-gzip"}


def test_records_of_a_shared_member_can_be_opened(tmp_path: Path) -> None:
    """What the scanner says of a record's place in its member leads to it."""
    path = tmp_path / "a.warc.gz"
    path.write_bytes(member(b"".join(record(number=number) for number in range(3))))
    for number, found in enumerate(scan(path)[0]):
        assert (
            open_warc_record(path, found.offset, found.skip).header("warc-target-uri") == f"http://example.com/{number}"
        )


@pytest.mark.parametrize("offset", [1, 10, 10_000])
def test_no_record_there(offset: int, tmp_path: Path) -> None:
    """Where no record begins, an error says so."""
    path = tmp_path / "a.warc"
    path.write_bytes(record())
    with pytest.raises(ArchiveFileError, match=f"expected a record at byte {offset}"):
        open_warc_record(path, offset)
    with pytest.raises(FileNotFoundError):
        open_warc_record(tmp_path / "none", 0)
