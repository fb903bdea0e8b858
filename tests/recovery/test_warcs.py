"""Tests of WARC files of a recovery: other tools can read them, and captures are read back unchanged."""

import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from tests.recovery.sample_captures import (
    body_of,
    capture,
    captures,
    expected_headers,
    fetched_captures,
    make_fetched_capture,
    open_store,
    text_of,
)
from tests.virtual_clock import VirtualClock
from unlost.archives import FetchedCapture
from unlost.capture import Capture
from unlost.errors import ArchiveFileError, DateError, InputError, UriError
from unlost.http import new_body
from unlost.problems import Problems
from unlost.recovery import RecoveryRecord, WarcStore
from unlost.warc import read_warc_captures


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of the WARCs."""
    return tmp_path / "warc"


def read_with_warcio(folder: Path) -> Iterator[tuple[str, str, bytes]]:
    """Yield type, URL and payload of every record; warcio verifies all digests."""
    for file in sorted(folder.iterdir()):
        with file.open("rb") as opened_file:
            for record in ArchiveIterator(opened_file, check_digests="raise"):
                yield record.rec_type, record.rec_headers.get_header("WARC-Target-URI"), record.content_stream().read()


@settings(max_examples=100)
@given(st.lists(fetched_captures, min_size=1, max_size=4), captures)
def test_stored_capture_is_read_back_unchanged(given_captures: list[FetchedCapture], index: Capture) -> None:
    """Any capture opens as it was stored, and after a crash its record is adopted unchanged."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "warc"
        warcs, adopted = open_store(folder)
        assert adopted == []
        records = []
        for each in given_captures:
            body = each.body.read()
            record = warcs.store(each, index)
            assert each.body.tell() == 0
            records.append(record)
            again = warcs.open(record)
            assert again.body.read() == body
            assert again.headers == tuple(expected_headers(each.headers))
            assert (again.truncated, again.source) == (each.truncated, each.source)
            came = replace(each.capture, digest=record.capture.digest, length=len(body), revisit=False, revisit_of=None)
            assert again.capture == record.capture == came
            assert record.listed_digest == index.digest
        records.append(warcs.store_revisit(index, records[0]))
        assert open_store(folder)[1] == records
        assert open_store(folder, {records[0].file: records[0].offset + records[0].size})[1] == records[1:]
        warcs.close()
        assert open_store(folder)[1] == records
        problems = Problems()
        found = [each for file in folder.iterdir() for each in read_warc_captures(file, problems)]
        assert [each.offset for each in found] == [each.offset for each in records]
        assert [each.digest for each in found] == [each.capture.digest for each in records]
        assert set(problems.counts) <= {"bad-uri"}
        assert [kind for kind, _, _ in read_with_warcio(folder)].count("metadata") == len(records)


def test_other_readers_read_stored_captures(folder: Path) -> None:
    """Both readers find URLs, dates, statuses, types and bodies; all digests are correct."""
    warcs, _ = open_store(folder)
    warcs.store(make_fetched_capture(b"first", of=capture(1)), None)
    warcs.store(make_fetched_capture(b"", of=capture(2, status=301, redirect="http://lost.example/1")), None)
    warcs.store(make_fetched_capture(b"x" * 100_000, of=capture(3, status=404, mime="image/png")), None)
    warcs.close()
    problems = Problems()
    found = list(read_warc_captures(folder / "unlost-00001.warc.gz", problems))
    assert problems.counts == {}
    assert [(each.uri, each.key, each.datetime, each.status) for each in found] == [
        ("http://lost.example/1", "example,lost)/1", "20140210000001", 200),
        ("http://lost.example/2", "example,lost)/2", "20140210000001", 301),
        ("http://lost.example/3", "example,lost)/3", "20140210000001", 404),
    ]
    assert found[1].redirect == "http://lost.example/1"
    records = list(read_with_warcio(folder))
    assert [kind for kind, _, _ in records] == ["warcinfo", *["response", "metadata"] * 3]
    assert [payload for kind, _, payload in records if kind == "response"] == [b"first", b"", b"x" * 100_000]


def test_record_has_its_provenance(folder: Path) -> None:
    """Archive, URI-M, source, dates and listed digest are in the record and its metadata."""
    warcs, _ = open_store(folder)
    of = capture(1, digest="sha1:INDEX", migrated=True)
    warcs.store(FetchedCapture(of, (), make_fetched_capture().body, "damage", "http://raw.example/1"), of)
    warcs.close()
    text = text_of(folder / "unlost-00001.warc.gz")
    for line in (
        "WARC-Date: 2014-02-10T00:00:01Z",
        "WARC-Truncated: unspecified",
        "WARC-Source-URI: http://raw.example/1",
        "WARC-Creation-Date: 2023-11-14T22:13:20Z",
        "Unlost-Archive: a",
        "Unlost-URI-M: http://a.example/20140210000001/1",
        "Unlost-Listed-Digest: sha1:INDEX",
    ):
        assert text.count(f"\r\n{line}\r\n") == 1, line
    about = text[text.index("WARC-Type: metadata") :]
    for line in (
        "archive: a",
        "stored: 20140210000001",
        "recovered: 20231114221320",
        "migrated: yes",
        "truncated: damage",
    ):
        assert f"\r\n{line}\r\n" in about, line


def test_unknown_status_is_recorded(folder: Path) -> None:
    """The HTTP head needs a status; the metadata says that it is unknown."""
    warcs, _ = open_store(folder)
    record = warcs.store(make_fetched_capture(of=capture(status=None)), None)
    assert warcs.open(record).capture.status is None
    warcs.close()
    text = text_of(folder / record.file)
    assert "HTTP/1.1 200 OK" in text
    assert "\r\nstatus: unknown\r\n" in text


def test_equal_bodies_are_stored_once(folder: Path) -> None:
    """A revisit has body and headers of its original; a revisit of a revisit refers to the same original."""
    warcs, _ = open_store(folder, max_bytes=1)
    body = os.urandom(5000)
    first = warcs.store(make_fetched_capture(body, (("Content-Type", "text/html; charset=x"), ("A", "b"))), None)
    second = warcs.store_revisit(capture(2, status=None, mime=None, archive="b", digest="sha1:INDEX"), first)
    third = warcs.store_revisit(capture(3), second)
    warcs.close()
    assert len({first.file, second.file, third.file}) == 3
    assert second.size < 1000
    for record in (second, third):
        again = warcs.open(record)
        assert again.body.read() == body
        assert again.headers == (("Content-Type", "text/html; charset=x"), ("A", "b"))
        assert (again.capture.status, again.capture.mime, again.capture.revisit) == (200, "text/html", True)
        assert again.capture.revisit_of == (first.capture.uri, first.capture.datetime)
        assert again.capture.digest == first.capture.digest
    assert (second.listed_digest, second.capture.archive) == ("sha1:INDEX", "b")
    assert open_store(folder)[1] == [first, second, third]


def test_revisit_has_its_own_status_and_redirect(folder: Path) -> None:
    """Captures that share a body keep their own index fields."""
    warcs, _ = open_store(folder)
    first = warcs.store(
        make_fetched_capture(b"", (("A", "b"),), of=capture(1, status=301, redirect="http://lost.example/a")), None
    )
    second = warcs.store_revisit(capture(2, status=302, mime=None, redirect="http://lost.example/b"), first)
    third = warcs.store_revisit(capture(3, status=200), first)
    assert warcs.open(second).header("Location") == "http://lost.example/b"
    assert warcs.open(third).header("Location") is None
    warcs.close()
    found = list(read_warc_captures(folder / first.file, Problems()))
    assert [(each.status, each.redirect) for each in found] == [
        (301, "http://lost.example/a"),
        (302, "http://lost.example/b"),
        (200, None),
    ]


def test_full_files_are_closed(folder: Path) -> None:
    """An open file has another name; a closed file is never changed."""
    warcs, _ = open_store(folder, max_bytes=60_000)
    records = [
        warcs.store(make_fetched_capture(os.urandom(10_000), of=capture(n, mime="image/png")), None) for n in range(12)
    ]
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["unlost-00001.warc.gz", "unlost-00002.warc.gz", "unlost-00003.warc.gz.open"]
    warcs.close()
    assert all(path.stat().st_size <= 60_000 for path in folder.iterdir())
    again, adopted = open_store(folder)
    assert adopted == records
    again.store(make_fetched_capture(), None)
    again.close()
    assert max(path.name for path in folder.iterdir()) == "unlost-00004.warc.gz"
    assert all(text_of(path).startswith("WARC/1.1\r\nWARC-Type: warcinfo\r\n") for path in folder.iterdir())


def test_run_without_captures_leaves_no_file(folder: Path) -> None:
    """This also holds if the only capture is rejected."""
    warcs, _ = open_store(folder)
    warcs.close()
    with pytest.raises(DateError):
        warcs.store(make_fetched_capture(of=replace(capture(), datetime="20140230000000")), None)
    warcs.close()
    assert list(folder.iterdir()) == []


def test_output_is_deterministic(tmp_path: Path) -> None:
    """The file depends on no host, process or system clock."""
    texts = []
    for name in ("a", "b"):
        warcs, _ = open_store(tmp_path / name)
        record = warcs.store(make_fetched_capture(), None)
        warcs.store_revisit(capture(2), record)
        warcs.close()
        texts.append((tmp_path / name / record.file).read_bytes())
    assert texts[0] == texts[1]
    assert os.uname().nodename.encode() not in texts[0]


def test_large_body_uses_bounded_memory(folder: Path) -> None:
    """A body of 64 MB is stored and opened with 8 MB."""
    import tracemalloc

    body = new_body()
    for _ in range(64):
        body.write(bytes(1 << 19) + os.urandom(1 << 19))
    warcs, _ = open_store(folder)
    tracemalloc.start()
    try:
        record = warcs.store(FetchedCapture(capture(mime="video/mp4"), (), body), None)
        again = warcs.open(record)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert again.body.seek(0, os.SEEK_END) == record.capture.length == 64 << 20
    assert open_store(folder)[1] == [record]
    warcs.close()
    body.close()
    again.body.close()


def test_captures_can_be_opened_during_storing(folder: Path) -> None:
    """Another thread opens them, also while a file is renamed."""
    warcs, _ = open_store(folder, max_bytes=30_000)
    stored: SimpleQueue[tuple[RecoveryRecord, bytes] | None] = SimpleQueue()

    def open_all() -> int:
        count = 0
        for record, body in iter(stored.get, None):
            for _ in range(3):
                assert body_of(warcs, record) == body
            count += 1
        return count

    with ThreadPoolExecutor(1) as threads:
        counted = threads.submit(open_all)
        for number in range(100):
            body = os.urandom(5000)
            stored.put((warcs.store(make_fetched_capture(body, of=capture(number)), None), body))
        warcs.close()
        stored.put(None)
        assert counted.result(30) == 100
    assert len(list(folder.iterdir())) > 20


@pytest.mark.parametrize("uri", ["", "http://lost.example/" + "a" * 70_000, "\ud800" * 10_000])
def test_invalid_url_is_refused(folder: Path, uri: str) -> None:
    """Other captures are unaffected."""
    warcs, _ = open_store(folder)
    with pytest.raises(UriError):
        warcs.store(make_fetched_capture(of=replace(capture(), uri=uri)), None)
    with pytest.raises(UriError):
        warcs.store(make_fetched_capture(of=capture(redirect="http://lost.example/" + "a" * 70_000)), None)
    record = warcs.store(make_fetched_capture(), None)
    warcs.close()
    assert open_store(folder)[1] == [record]


def test_changed_record_is_reported(folder: Path) -> None:
    """A changed byte, a wrong offset and a missing file raise errors instead of returning another body."""
    warcs, _ = open_store(folder)
    record, other = (
        warcs.store(make_fetched_capture(b"one"), None),
        warcs.store(make_fetched_capture(b"two", of=capture(2)), None),
    )
    warcs.close()
    path = folder / record.file
    with pytest.raises(ArchiveFileError, match="byte"):
        warcs.open(replace(record, offset=other.offset))
    with pytest.raises(ArchiveFileError, match="byte"):
        warcs.open(replace(record, offset=record.offset + 1))
    data = bytearray(path.read_bytes())
    data[record.offset + 200] ^= 1
    path.write_bytes(data)
    with pytest.raises(ArchiveFileError, match="damage"):
        warcs.open(record)
    assert body_of(warcs, other) == b"two"
    path.unlink()
    with pytest.raises(InputError, match="not there"):
        warcs.open(other)


def test_storing_before_adopting_is_refused(folder: Path) -> None:
    """Otherwise an incomplete record would stay in the middle of a file."""
    warcs = WarcStore(folder, VirtualClock(), "unlost/0")
    adopting = warcs.replay_unknown_records({})
    with pytest.raises(RuntimeError):
        warcs.store(make_fetched_capture(), None)
    assert list(adopting) == []
    assert isinstance(warcs.store(make_fetched_capture(), None), RecoveryRecord)
    warcs.sync()
    warcs.close()
