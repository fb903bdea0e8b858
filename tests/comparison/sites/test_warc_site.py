"""Tests of sites in archive files: selected captures, skipped records, and reading bodies."""

import gzip
import hashlib
import io
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import brotli
import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from tests.warc.wacz_files import wacz
from tests.warc.warcs import PAGE, member, record
from unlost.comparison import Site, open_site, readable_bytes
from unlost.errors import ArchiveFileError

MOMENT = "2014-02-10T00:00:01Z"


def sha1(body: bytes) -> bytes:
    """Return the SHA-1 digest of a body."""
    return hashlib.sha1(body, usedforsecurity=False).digest()


def response(body: bytes, *, status: str = "200 OK", fields: str = "Content-Type: text/html\r\n") -> bytes:
    """Return the block of a response."""
    return f"HTTP/1.1 {status}\r\n{fields}\r\n".encode() + body


def site(folder: Path, *records: bytes, name: str = "a.warc", ignore_case: bool = False) -> Site:
    """Write records to a file and read it as a site."""
    (folder / name).write_bytes(b"".join(records))
    return open_site(folder / name, ignore_case=ignore_case)


def page(path: str, body: bytes = b"<p>a page", *, date: str = MOMENT, **more: str) -> bytes:
    """Return the record of a page."""
    return record(response(body, **more), uri=f"http://www.example.com/{path}", date=date)


def test_resources_equal_the_records_of_warcio(tmp_path: Path) -> None:
    """Name, URL, dates, type, digest and size of response and resource records."""
    with (tmp_path / "a.warc.gz").open("wb") as out:
        writer = WARCWriter(out, gzip=True)
        body = gzip.compress(b"<p>a page")
        fields = [
            ("Content-Type", "Text/HTML; charset=iso-8859-1"),
            ("Content-Encoding", "gzip"),
            ("Last-Modified", "Sun, 09 Feb 2014 00:00:01 GMT"),
        ]
        head = StatusAndHeaders("200 OK", fields, protocol="HTTP/1.1")
        for each in (
            writer.create_warc_record(
                "https://example.com/A", "response", payload=io.BytesIO(body), http_headers=head,
                warc_headers_dict={"WARC-Date": MOMENT},
            ),
            writer.create_warc_record(
                "http://example.com/logo", "resource", payload=io.BytesIO(b"PNG"), warc_content_type="image/png",
                warc_headers_dict={"WARC-Date": MOMENT},
            ),
            writer.create_warcinfo_record("a.warc.gz", {}),
        ):  # fmt: skip
            writer.write_record(each)
            each.raw_stream.close()
    found = open_site(tmp_path / "a.warc.gz")
    first, second = found.resources["example.com/A"], found.resources["example.com/logo"]
    assert (first.uri, first.datetime, first.modified) == ("https://example.com/A", "20140210000001", "20140209000001")
    assert (first.mime, first.digest, first.size, first.migrated) == ("text/html", sha1(b"<p>a page"), 9, None)
    assert (second.mime, second.digest, second.size, second.modified) == ("image/png", sha1(b"PNG"), 3, None)
    assert (found.skipped, found.problems.total, found.listed, found.requests) == (
        {"warcinfo": 1},
        0,
        frozenset(),
        None,
    )
    whole = found.read_body(first, 100)
    assert (whole.content, whole.charset, whole.is_truncated) == (b"<p>a page", "iso-8859-1", False)
    part = found.read_body(second, 2)
    assert (part.content, part.charset, part.is_truncated) == (b"PN", None, True)


def test_latest_capture_with_a_body_is_used(tmp_path: Path) -> None:
    """In any order; an empty capture is used only if there is no other, an error never."""
    found = site(
        tmp_path,
        page("", b"new", date="2014-02-12T00:00:00Z"),
        page("index.html", b"old", date="2014-02-11T00:00:00Z"),
        page("", b"", date="2014-02-13T00:00:00Z"),
        page("", b"gone", date="2014-02-14T00:00:00Z", status="404 Not Found"),
        page("empty", b""),
    )
    assert found.resources.keys() == {"example.com/", "example.com/empty"}
    assert found.resources["example.com/"].digest == sha1(b"new")
    assert found.resources["example.com/empty"].size == 0
    assert found.skipped == {"error": 1}


def test_skipped_records_are_counted_by_reason(tmp_path: Path) -> None:
    """Redirects, errors, responses without body or status, other record types, other schemes."""
    found = site(
        tmp_path,
        page("a", status="301 Moved"),
        page("b", status="503 Busy"),
        page("c", status="304 Not Modified"),
        page("d", b"", status="204 No Content"),
        record(b"no http", uri="http://example.com/e"),
        record(b"x", uri="dns:example.com"),
        record(b"x", kind="metadata"),
        record(b"x", kind="request"),
        record(b"x", kind="made-up"),
        record(PAGE, uri="http://"),
        page("f", date="yesterday"),
    )
    assert found.skipped == {
        "redirect": 1, "error": 1, "not-modified": 1, "no-body": 1, "no-status": 1, "foreign-scheme": 1, "metadata": 1,
        "request": 1, "other": 1, "no-address": 1,
    }  # fmt: skip
    assert found.problems.counts == {"bad-http": 1, "bad-uri": 1, "bad-date": 1}
    assert [(each.name, each.datetime) for each in found.resources.values()] == [("example.com/f", None)]


def test_revisits_resolve_to_the_body_they_refer_to(tmp_path: Path) -> None:
    """By URL and date, else by digest, of earlier or later records; unresolved revisits are skipped."""
    digest = b"WARC-Payload-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ\r\n"
    named = b"WARC-Refers-To-Target-URI: http://example.com/b\r\nWARC-Refers-To-Date: 2014-02-10T00:00:01Z\r\n"

    def revisit(path: str, extra: bytes, block: bytes = b"") -> bytes:
        uri = f"http://example.com/{path}"
        return record(block, kind="revisit", uri=uri, extra=extra, date="2015-01-01T00:00:00Z")

    found = site(
        tmp_path,
        revisit("early", digest),
        record(response(b"one"), uri="http://example.com/a", extra=digest),
        record(response(b"two"), uri="http://example.com/b"),
        record(response(b"three"), uri="http://example.com/b", date="2014-03-01T00:00:00Z"),
        revisit("a", digest.upper().replace(b"SHA1", b"sha1")),
        revisit("b", named),
        revisit("typed", digest, response(b"", fields="Content-Type: text/css\r\n")),
        revisit("lost", b"WARC-Payload-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\n"),
        revisit("moved", digest, response(b"", status="302 Found")),
    )
    bodies = {name.partition("/")[2]: found.read_body(each, 100).content for name, each in found.resources.items()}
    assert bodies == {"a": b"one", "b": b"two", "early": b"one", "typed": b"one"}
    assert {each.datetime for each in found.resources.values()} == {"20150101000000"}
    assert found.resources["example.com/typed"].mime == "text/css"
    assert found.skipped == {"revisit-without-body": 1, "redirect": 1}


def test_truncated_records_are_skipped(tmp_path: Path) -> None:
    """Short records, records marked as truncated, and incomplete codings are counted."""
    packed = gzip.compress(b"<p>a page" * 100)[:-9]
    found = site(
        tmp_path,
        record(response(packed, fields="Content-Encoding: gzip\r\n")),
        record(PAGE, extra=b"WARC-Truncated: length\r\n"),
        page("whole"),
        record(PAGE, length=9_999),
    )
    assert found.resources.keys() == {"example.com/whole"}
    assert found.skipped == {"cut": 3}
    assert found.problems.counts == {"cut-coding": 1, "short-block": 1}


@pytest.mark.parametrize("place", [12, 40, 60, 100, -20, -6, -1])
def test_reading_continues_after_damage(place: int, tmp_path: Path) -> None:
    """A changed byte in a gzip member, in header, data or checksum, loses only the records of that member."""
    members = [member(page(str(number), b"%d" % number * 500)) for number in range(600)]
    changed = (1, 127, 254, 256, 599)
    for number in changed:
        damaged = bytearray(members[number])
        damaged[place if place >= 0 else len(damaged) + place] ^= 0x01
        members[number] = bytes(damaged)
    found = site(tmp_path, *members, name="a.warc.gz")
    assert found.resources.keys() == {f"example.com/{number}" for number in range(600) if number not in changed}
    assert found.problems.total >= 5


def test_a_body_with_an_unknown_coding_stays_encoded(tmp_path: Path) -> None:
    """A problem is reported."""
    body = b"\x1f\x9d\x90\0\0"
    found = site(tmp_path, record(response(body, fields="Content-Encoding: compress\r\n"), uri="http://a.com/"))
    assert found.read_body(found.resources["a.com/"], 100).content == body
    assert (found.resources["a.com/"].digest, found.problems.counts) == (sha1(body), {"bad-coding": 1})


def test_a_decompression_bomb_is_truncated(tmp_path: Path) -> None:
    """Both when the site is read and when the body is read."""
    bomb = brotli.compress(bytes(1 << 26), quality=1)
    found = site(tmp_path, record(response(bomb, fields="Content-Encoding: br\r\n"), uri="http://a.com/"))
    assert found.problems.counts == {"coding-too-long": 1}
    body = found.read_body(found.resources["a.com/"], 10)
    assert (body.content, body.is_truncated) == (bytes(10), True)


def test_a_folder_of_archives_is_one_site(tmp_path: Path) -> None:
    """Including a WACZ and a duplicate file; progress runs from zero to the total."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.warc").write_bytes(page("a") + page("both", b"old"))
    (tmp_path / "deep" / "a.warc.gz").write_bytes(member(page("a")) + member(page("b")))
    wacz(
        tmp_path / "z.wacz",
        {"archive/c.warc.gz": member(page("c")), "archive/d.warc": page("both", b"new", date="2015")},
    )
    read: list[int] = []
    found = open_site(tmp_path, on_read=read.append)
    assert found.resources.keys() == {f"example.com/{name}" for name in ("a", "b", "c", "both")}
    assert found.read_body(found.resources["example.com/both"], 9).content == b"new"
    assert found.read_body(found.resources["example.com/b"], 99).content == b"<p>a page"
    assert read == sorted(read)
    assert 0 < read[-1] <= readable_bytes(tmp_path)


def test_a_deflated_wacz_is_read_but_for_its_bodies(tmp_path: Path) -> None:
    """Digests are available; reading a body raises an error with advice."""
    found = open_site(wacz(tmp_path / "a.wacz", {"archive/a.warc": page("a")}, zipfile.ZIP_DEFLATED))
    with pytest.raises(ArchiveFileError, match="take the WARC out of the ZIP"):
        found.read_body(found.resources["example.com/a"], 10)


def test_a_file_changed_in_the_meantime_is_reported(tmp_path: Path) -> None:
    """Reading a body raises an error."""
    found = site(tmp_path, page("a"), page("b"))
    (tmp_path / "a.warc").write_bytes(page("a") + b"rubbish" * 99)
    with pytest.raises(ArchiveFileError, match="expected a record at byte"):
        found.read_body(found.resources["example.com/b"], 10)
    (tmp_path / "a.warc").unlink()
    with pytest.raises(FileNotFoundError):
        found.read_body(found.resources["example.com/b"], 10)


def test_letter_case_may_be_ignored(tmp_path: Path) -> None:
    """Pages whose URLs differ only in letter case become one."""
    assert len(site(tmp_path, page("a"), page("A")).resources) == 2
    assert site(tmp_path, page("a"), page("A"), ignore_case=True).resources.keys() == {"example.com/a"}


def test_hostile_urls_are_skipped(tmp_path: Path) -> None:
    """Empty URLs, URLs of megabytes, and URLs with invalid bytes do not stop reading."""
    nasty = ("a" * (3 << 20), "%ff%00", "\x1b[2J", "..%2f..%2fetc", "?" * 5_000, "\u202e")
    found = site(tmp_path, *(page(path) for path in nasty), page("last"))
    assert "example.com/last" in found.resources
    assert len(found.resources) + sum(found.skipped.values()) + found.problems.counts.get("header-too-long", 0) >= 7


def test_bodies_are_read_by_several_threads(tmp_path: Path) -> None:
    """Concurrently with another site."""
    found = site(tmp_path, *(page(str(number), b"%d" % number) for number in range(200)))
    other = threading.Thread(target=open_site, args=(tmp_path / "a.warc",))
    other.start()
    with ThreadPoolExecutor(8) as pool:
        bodies = pool.map(lambda each: (each.name, found.read_body(each, 99).content), found.resources.values())
        assert all(name == f"example.com/{body.decode()}" for name, body in bodies)
    other.join()
