"""A folder of archive files as an archive."""

import gzip
import os
import stat
import zipfile
from pathlib import Path

import brotli
import pytest

from tests.archives.archive_files import body_of, collect_all, digest_of, files, page, revisit, run, write
from tests.virtual_clock import VirtualClock
from tests.warc.warcs import member, record
from unlost.errors import FailedError, UriError, UsageError

# warcio relies on the garbage collector to close its temporary files.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

HOME = "http://example.com/"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNLOST_HOME", str(tmp_path / "home"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with two WARCs, one of them in a subfolder, and another file."""
    top = tmp_path / "warcs"
    write(
        top / "a.warc.gz",
        page(HOME, "2014-02-10T00:00:01Z", b"first"),
        page("http://example.com/gone", "2014-02-10T00:00:02Z", b"no", status="404 Not Found"),
        page("http://shop.example.com/", "2014-02-11T00:00:00Z", b"shop"),
    )
    write(
        top / "deep" / "b.warc",
        page(HOME, "2016-05-05T00:00:00Z", b"second"),
        page("http://example.com/a/b.css", "2016-05-05T00:00:01Z", b"css", [("Content-Type", "text/css; charset=x")]),
        page("http://example.com/ab", "2016-05-05T00:00:02Z", b"ab"),
        page("http://example.com/a/", "2016-05-05T00:00:03Z", b"folder"),
        gzip=False,
    )
    (top / "notes.txt").write_text("not an archive")
    return top


def test_captures_of_a_page_are_ordered_by_date(folder: Path) -> None:
    """All files are searched, and captures name their file and archive."""
    results = collect_all(files(folder).captures("https://www.EXAMPLE.com"))
    assert [(c.datetime, c.status, c.mime, c.filename, c.archive) for c in results] == [
        ("20140210000001", 200, "text/html", "a.warc.gz", "mine"),
        ("20160505000000", 200, "text/html", "deep/b.warc", "mine"),
    ]
    assert results[0].migrated is False
    assert results[0].urim is None


def test_folder_lists_captures_by_prefix_and_date(folder: Path) -> None:
    """Prefixes, hosts, domains and dates select captures of any status."""
    here = files(folder)

    def pages(prefix: str, first: str | None = None, last: str | None = None) -> list[str]:
        return [capture.uri.removeprefix("http://") for capture in collect_all(here.list_prefix(prefix, first, last))]

    assert pages("http://example.com/a/") == ["example.com/a/", "example.com/a/b.css"]
    assert pages("http://example.com/a") == ["example.com/a/", "example.com/a/b.css", "example.com/ab"]
    assert len(pages("http://example.com")) == 6
    assert pages("*.example.com")[-1] == "shop.example.com/"
    assert pages("*.example.com", "2014", "20140210") == ["example.com/", "example.com/gone"]
    assert pages("http://example.org") == []


def test_list_longer_than_a_page_of_the_index(tmp_path: Path) -> None:
    """Each capture is listed once, also captures of one URL and second."""
    text = b"".join(record(number=number % 7) for number in range(1_203))
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "a.warc").write_bytes(text)
    results = collect_all(files(tmp_path / "w").list_prefix("http://example.com"))
    assert len(results) == 1_203
    assert len({capture.offset for capture in results}) == 1_203
    assert [capture.key for capture in results] == sorted(str(capture.key) for capture in results)


def test_closest_capture_to_partial_date_is_returned(folder: Path) -> None:
    """A partial date is a period; without a date the last capture is returned."""
    here = files(folder)
    assert body_of(run(here.get(HOME))) == b"second"
    assert body_of(run(here.get(HOME, "2014"))) == b"first"
    assert body_of(run(here.get(HOME, "20150301"))) == b"first"
    assert body_of(run(here.get(HOME, "20150601"))) == b"second"
    assert run(here.get("http://example.com/never")) is None
    assert run(here.last_capture_date(HOME)) == "20160505000000"
    assert run(here.last_capture_date("http://example.com/never")) is None


def test_year_is_closest_to_captures_near_its_end(tmp_path: Path) -> None:
    """Five days after a year are closer than twelve days before it."""
    write(
        tmp_path / "w" / "a.warc.gz",
        page(HOME, "2014-12-20T00:00:00Z", b"before"),
        page(HOME, "2016-01-05T00:00:00Z", b"after"),
    )
    assert body_of(run(files(tmp_path / "w").get(HOME, "2015"))) == b"after"


def test_capture_has_the_headers_of_its_record(folder: Path) -> None:
    """Status, type and headers are those captured, also for error pages."""
    here = files(folder)
    fetched = run(here.get("http://example.com/gone"))
    assert fetched is not None
    assert (fetched.capture.status, fetched.header("content-type"), fetched.truncated) == (404, "text/html", None)
    assert fetched.capture.archive == "mine"
    assert body_of(fetched) == b"no"


def test_fetch_returns_the_named_record(tmp_path: Path) -> None:
    """Two records of one URL and second are distinguished by file and offset."""
    timestamp = "2014-02-10T00:00:01Z"
    write(tmp_path / "w" / "a.warc.gz", page(HOME, timestamp, b"one"), page(HOME, timestamp, b"two"))
    here = files(tmp_path / "w")
    results = collect_all(here.captures(HOME))
    assert [body_of(run(here.fetch(capture))) for capture in results] == [b"one", b"two"]


def test_capture_of_another_archive_is_fetched_by_date(folder: Path) -> None:
    """A capture without a file returns the closest record."""
    from unlost.capture import Capture

    here = files(folder)
    requested = Capture(HOME, "com,example)/", "20160101000000")
    assert body_of(run(here.fetch(requested))) == b"second"
    assert run(here.fetch(Capture("http://never.example/", "example,never)/", "20160101000000"))) is None


def test_codings_are_decoded(tmp_path: Path) -> None:
    """Chunked and compressed bodies are decoded; falsely declared codings are ignored."""
    compressed = gzip.compress(b"hello")
    coded = [("Transfer-Encoding", "chunked"), ("Content-Encoding", "gzip")]
    write(
        tmp_path / "w" / "a.warc.gz",
        page(HOME, "2014-02-10T00:00:01Z", b"%x\r\n%s\r\n0\r\n\r\n" % (len(compressed), compressed), coded),
        page(HOME, "2015-02-10T00:00:01Z", b"not coded", coded),
        page(HOME, "2016-02-10T00:00:01Z", b"\x1f\x9d\x90\x00", [("Content-Encoding", "compress")]),
        page(HOME, "2016-03-10T00:00:01Z", brotli.compress(b"in br"), [("Content-Encoding", "br")]),
    )
    here = files(tmp_path / "w")
    assert body_of(run(here.get(HOME, "2014"))) == b"hello"
    assert body_of(run(here.get(HOME, "2015"))) == b"not coded"
    with pytest.raises(FailedError, match="`compress`") as raised:
        run(here.fetch(collect_all(here.captures(HOME))[2]))
    assert raised.value.kind == "malformed"
    assert body_of(run(here.get(HOME, "20160210000001"))) == b"in br", "what cannot be read gives way"


def test_bomb_is_too_large(tmp_path: Path) -> None:
    """Bodies and records beyond the limit raise an error."""
    bomb = gzip.compress(bytes(1 << 20))
    write(
        tmp_path / "w" / "a.warc.gz",
        page(HOME, "2014-02-10T00:00:01Z", bomb, [("Content-Encoding", "gzip")]),
        page(HOME, "2015-02-10T00:00:01Z", bytes(1 << 20)),
    )
    here = files(tmp_path / "w", max_bytes=1 << 16)
    for capture in collect_all(here.captures(HOME)):
        with pytest.raises(FailedError) as raised:
            run(here.fetch(capture))
        assert raised.value.kind == "too-large"


def test_revisit_has_the_body_of_its_original(tmp_path: Path) -> None:
    """The original is found by URL and date in any file, or by digest."""
    write(tmp_path / "w" / "a.warc.gz", page(HOME, "2014-02-10T00:00:01Z", b"body"))
    digest = digest_of(b"body")
    write(
        tmp_path / "w" / "b.warc.gz",
        revisit(HOME, "2015-01-01T00:00:00Z", digest, (HOME, "2014-02-10T00:00:01Z")),
        revisit("http://example.com/same", "2015-01-01T00:00:00Z", digest, None),
        revisit(HOME, "2016-01-01T00:00:00Z", "sha1:OTHER", (HOME, "2014-02-10T00:00:01Z"), "304 Not Modified"),
        revisit("http://example.com/lost", "2015-01-01T00:00:00Z", digest_of(b"?"), None),
    )
    here = files(tmp_path / "w")
    for uri, date, status, again in (
        (HOME, "2015", 200, "yes"),
        ("http://example.com/same", None, 200, "yes"),
        (HOME, "2016", 200, None),
    ):
        fetched = run(here.get(uri, date))
        assert fetched is not None
        assert (fetched.capture.status, fetched.header("x-again"), fetched.capture.revisit) == (status, again, True)
        assert fetched.capture.revisit_of == (HOME, "20140210000001")
        assert fetched.capture.datetime[:4] in ("2015", "2016")
        assert body_of(fetched) == b"body"
    with pytest.raises(FailedError, match="as before"):
        run(here.get("http://example.com/lost"))


def test_changed_files_are_indexed_again(folder: Path) -> None:
    """Added, changed and deleted files are noticed within ten seconds."""
    clock = VirtualClock()
    here = files(folder, clock=clock)
    assert len(collect_all(here.captures(HOME))) == 2
    write(folder / "c.warc", page(HOME, "2017-01-01T00:00:00Z", b"third"), gzip=False)
    write(folder / "a.warc.gz", page(HOME, "2018-01-01T00:00:00Z", b"fourth"))
    (folder / "deep" / "b.warc").unlink()
    assert len(collect_all(here.captures(HOME))) == 2
    clock.advance(11)
    assert [capture.datetime[:4] for capture in collect_all(here.captures(HOME))] == ["2017", "2018"]
    assert body_of(run(here.get(HOME))) == b"fourth"


def test_moved_record_is_found_again(folder: Path) -> None:
    """A capture whose file was rewritten is fetched by date from its new position."""
    here = files(folder, clock=VirtualClock())
    before = collect_all(here.captures(HOME))[0]
    write(
        folder / "a.warc.gz",
        page("http://example.com/new", "2013-01-01T00:00:00Z", b"new" * 99),
        page(HOME, "2014-02-10T00:00:01Z", b"first"),
    )
    assert body_of(run(here.fetch(before))) == b"first"


def test_only_changed_files_are_read(folder: Path) -> None:
    """Another client of the folder reads only changed files."""
    read: list[str] = []
    collect_all(files(folder, on_file=read.append).captures(HOME))
    assert read == ["a.warc.gz", "notes.txt", "deep/b.warc"]
    read.clear()
    collect_all(files(folder, on_file=read.append).captures(HOME))
    assert read == []
    os.utime(folder / "a.warc.gz", ns=(1, 1))
    collect_all(files(folder, on_file=read.append).captures(HOME))
    assert read == ["a.warc.gz"]


def test_single_file_is_an_archive(folder: Path) -> None:
    """A path to a file is accepted."""
    here = files(folder / "a.warc.gz")
    assert [capture.filename for capture in collect_all(here.captures(HOME))] == ["a.warc.gz"]
    assert body_of(run(here.get(HOME))) == b"first"


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "deflated"])
def test_wacz_records_are_fetched(folder: Path, packing: int) -> None:
    """Stored WARCs are read inside the ZIP, others from an extracted file."""
    inside = folder / "a.warc.gz"
    with zipfile.ZipFile(folder / "c.wacz", "w") as archive:
        archive.write(inside, "archive/x.warc.gz", packing)
        archive.write(folder / "deep" / "b.warc", "archive/y.warc", packing)
    inside.unlink()
    here = files(folder)
    results = collect_all(here.captures(HOME))
    assert sorted(str(capture.filename) for capture in results) == [
        "c.wacz/archive/x.warc.gz",
        "c.wacz/archive/y.warc",
        "deep/b.warc",
    ]
    assert [body_of(run(here.fetch(capture))) for capture in results] == [b"first", b"second", b"second"]
    assert body_of(run(here.get("http://example.com/gone"))) == b"no"


def test_records_in_shared_gzip_member_are_fetched(tmp_path: Path) -> None:
    """Each record of a WARC compressed as a whole can be read."""
    text = b"".join(record(b"HTTP/1.1 200 OK\r\n\r\npage %d" % number, number=number) for number in range(5))
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "a.warc.gz").write_bytes(member(text))
    here = files(tmp_path / "w")
    assert [body_of(run(here.get(f"http://example.com/{number}"))) for number in range(5)] == [
        b"page %d" % number for number in range(5)
    ]


def test_damaged_file_serves_readable_records(tmp_path: Path) -> None:
    """Records before the damage are served, truncated bodies are marked, and problems are counted."""
    data = b"".join(member(record(number=number)) for number in range(3))
    last = member(record(b"HTTP/1.1 200 OK\r\n\r\n" + os.urandom(2000), number=3))
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "a.warc.gz").write_bytes(data + last[:-700])
    (tmp_path / "w" / "b.wacz").write_bytes(b"PK\x03\x04 no directory")
    here = files(tmp_path / "w")
    assert len(collect_all(here.list_prefix("http://example.com"))) == 4
    fetched = run(here.get("http://example.com/3"))
    assert fetched is not None
    assert fetched.truncated == "damage"
    assert 0 < len(body_of(fetched)) < 2000
    problems = run(here.problems())
    assert problems.counts["truncated-gzip"] == 1
    assert problems.counts["unreadable"] == 1
    assert "b.wacz" in problems.first["unreadable"].file


def test_truncated_body_is_reported(tmp_path: Path) -> None:
    """WARC-Truncated is passed on."""
    write(tmp_path / "w" / "a.warc.gz", page(HOME, "2014-02-10T00:00:01Z", fields={"WARC-Truncated": "length"}))
    fetched = run(files(tmp_path / "w").get(HOME))
    assert fetched is not None
    assert fetched.truncated == "length"


def test_resource_record_is_fetched(tmp_path: Path) -> None:
    """Its only header is Content-Type."""
    (tmp_path / "w").mkdir()
    text = record(b"plain", kind="resource", extra=b"Content-Type: text/plain\r\n")
    (tmp_path / "w" / "a.warc").write_bytes(text)
    fetched = run(files(tmp_path / "w").get("http://example.com/0"))
    assert fetched is not None
    assert fetched.headers == (("Content-Type", "text/plain"),)
    assert body_of(fetched) == b"plain"


def test_arc_records_are_fetched(tmp_path: Path) -> None:
    """ARC records are captures, too."""
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nold"
    head = b"filedesc://a.arc 0.0.0.0 19970101000000 text/plain 76\n1 0 InternetArchive\n"
    head += b"URL IP-address Archive-date Content-type Archive-length\n\n"
    row = b"http://example.com/ 1.2.3.4 19970203040506 text/html %d\n" % len(block)
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "a.arc").write_bytes(head + row + block + b"\n")
    fetched = run(files(tmp_path / "w").get(HOME))
    assert fetched is not None
    assert fetched.capture.datetime == "19970203040506"
    assert body_of(fetched) == b"old"


def test_pipes_links_and_unusual_file_names_are_handled(folder: Path) -> None:
    """Pipes and link cycles do not block, and names may be any bytes."""
    os.mkfifo(folder / "pipe.warc.gz")
    (folder / "deep" / "up").symlink_to(folder)
    (folder / "dead.warc").symlink_to(folder / "nowhere")
    unusual = os.fsencode(folder) + b"/\xff.warc.gz"
    Path(os.fsdecode(unusual)).write_bytes((folder / "a.warc.gz").read_bytes())
    here = files(folder)
    results = collect_all(here.captures(HOME))
    assert sorted(str(capture.filename) for capture in results) == ["\\xff.warc.gz", "a.warc.gz", "deep/b.warc"]
    assert [len(body_of(run(here.fetch(capture)))) for capture in results] == [5, 5, 6]


def test_missing_or_empty_folder_is_distinguished(tmp_path: Path, folder: Path) -> None:
    """A missing folder or another file type is an error, an empty folder is not."""
    with pytest.raises(FailedError, match="cannot be read") as raised:
        collect_all(files(tmp_path / "none").captures(HOME))
    assert raised.value.kind == "unreachable"
    for name in ("notes.txt", "pipe"):
        if name == "pipe":
            os.mkfifo(folder / name)
        with pytest.raises(FailedError, match="expected a folder") as raised:
            collect_all(files(folder / name).captures(HOME))
        assert raised.value.kind == "malformed"
    (tmp_path / "empty").mkdir()
    assert collect_all(files(tmp_path / "empty").list_prefix("*.com")) == []
    with pytest.raises(UriError):
        collect_all(files(folder).captures("dns:example.com"))
    from unlost.archives import WarcFilesClient
    from unlost.registry import Archive, ArchiveKind

    with pytest.raises(UsageError):
        WarcFilesClient(Archive("mine", "My files", ArchiveKind.FILES))


def test_unreadable_file_is_counted_until_it_is_readable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other files are served, and the file is read once permissions allow it."""
    from unlost.index import is_archive_file

    clock = VirtualClock()

    def refused(path: Path) -> bool:
        from unlost.errors import InputError

        if Path(path).name == "a.warc.gz":
            raise InputError(f"{path}: cannot be read: Permission denied")
        return is_archive_file(path)

    monkeypatch.setattr("unlost.archives.warc_file_index.is_archive_file", refused)  # root may read everything
    here = files(folder, clock=clock)
    assert [capture.filename for capture in collect_all(here.captures(HOME))] == ["deep/b.warc"]
    assert run(here.problems()).counts == {"unreadable": 1}
    monkeypatch.setattr("unlost.archives.warc_file_index.is_archive_file", is_archive_file)
    (folder / "a.warc.gz").chmod(stat.S_IRUSR)
    clock.advance(11)
    assert len(collect_all(here.captures(HOME))) == 2
    assert run(here.problems()).counts == {}
