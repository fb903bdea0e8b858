"""Tests of opening a folder of WARCs after a crash: what is adopted, truncated or refused."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.recovery.sample_captures import capture, make_fetched_capture, open_store, text_of
from unlost.errors import InputError
from unlost.recovery import RecoveryRecord, WarcStore

FIRST = "unlost-00001.warc.gz"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of the WARCs."""
    return tmp_path / "warc"


def end(record: RecoveryRecord) -> int:
    """Return the offset after a record."""
    return record.offset + record.size


def make_unfinished_store(folder: Path) -> tuple[WarcStore, list[RecoveryRecord]]:
    """Return a store whose file is open, with two captures and a revisit."""
    warcs, _ = open_store(folder)
    records = [
        warcs.store(make_fetched_capture(b"one", of=capture(1)), None),
        warcs.store(make_fetched_capture(b"two", of=capture(2)), None),
    ]
    return warcs, [*records, warcs.store_revisit(capture(3), records[0])]


@pytest.mark.parametrize("complete", [0, 1, 2])
def test_incomplete_last_record_is_truncated(folder: Path, tmp_path: Path, complete: int) -> None:
    """Wherever the last append is cut, all records before it are adopted and the rest is truncated."""
    _, records = make_unfinished_store(folder)
    data = (folder / f"{FIRST}.open").read_bytes()
    place = tmp_path / "torn"
    for size in range(records[complete].offset, end(records[complete])):
        place.mkdir()
        (place / f"{FIRST}.open").write_bytes(data[:size])
        warcs, adopted = open_store(place)
        assert adopted == records[:complete], size
        assert warcs.truncated_bytes == size - records[complete].offset
        assert (place / f"{FIRST}.open").stat().st_size == records[complete].offset
        if size % 40 == 0:  # what is stored next can be read
            again = warcs.store(make_fetched_capture(b"three", of=capture(4)), None)
            warcs.close()
            assert open_store(place)[1] == [*records[:complete], again]
        else:
            warcs.close()
            assert not complete or "three" not in text_of(place / FIRST)
        shutil.rmtree(place)


def test_file_without_complete_record_is_restarted(folder: Path) -> None:
    """A file without a complete record is written again, and removed if nothing is stored."""
    _, records = make_unfinished_store(folder)
    data = (folder / f"{FIRST}.open").read_bytes()
    for size in range(0, records[0].offset + 1, 7):
        (folder / f"{FIRST}.open").write_bytes(data[:size])
        warcs, adopted = open_store(folder)
        assert adopted == []
        warcs.close()
        assert list(folder.iterdir()) == []
        (folder / f"{FIRST}.open").write_bytes(data[:size])
        warcs, _ = open_store(folder)
        record = warcs.store(make_fetched_capture(), None)
        warcs.close()
        assert open_store(folder)[1] == [record]
        assert text_of(folder / FIRST).count("WARC-Type: warcinfo") == 1
        (folder / FIRST).unlink()


def test_last_record_with_changed_byte_is_dropped(folder: Path, tmp_path: Path) -> None:
    """A record with a changed byte is dropped, unless its content is unaffected."""
    _, records = make_unfinished_store(folder)
    data = (folder / f"{FIRST}.open").read_bytes()
    place, gone = tmp_path / "changed", 0
    place.mkdir()
    for offset in range(records[2].offset, len(data)):
        changed = bytearray(data)
        changed[offset] ^= 1 << offset % 8
        (place / f"{FIRST}.open").write_bytes(changed)
        _, adopted = open_store(place)
        assert adopted in (records[:2], records), offset  # a gzip header has no checksum, and its date means nothing
        gone += adopted != records
    assert gone > records[2].size - 30


@pytest.mark.parametrize("offset", [16, 20, 60, 700, 100_000, -5])
def test_damaged_large_last_record_is_truncated(folder: Path, offset: int) -> None:
    """A damaged large record is truncated, and the file is not mistaken for a foreign one."""
    warcs, records = make_unfinished_store(folder)
    last = warcs.store(make_fetched_capture(os.urandom(300_000), of=capture(5, mime="image/png")), None)
    path = folder / f"{FIRST}.open"
    data = bytearray(path.read_bytes())
    data[last.offset + offset if offset > 0 else offset] ^= 0x08
    path.write_bytes(data)
    warcs, adopted = open_store(folder)
    assert (adopted, warcs.truncated_bytes) == (records, last.size)
    warcs.close()


@pytest.mark.parametrize("rest", [b"\0" * 4096, b"\x1f\x8b\x08\0\0\0\0\0\0\3" + b"\xff" * 300, b"WARC/1.1\r\n"])
def test_trailing_garbage_is_truncated(folder: Path, rest: bytes) -> None:
    """Zeros and garbage after the last record are truncated."""
    _, records = make_unfinished_store(folder)
    with (folder / f"{FIRST}.open").open("ab") as file:
        file.write(rest)
    warcs, adopted = open_store(folder, {FIRST: end(records[1])})
    assert adopted == records[2:]
    assert warcs.truncated_bytes == len(rest)
    warcs.close()
    assert open_store(folder)[1] == records


def test_only_unknown_records_are_adopted(folder: Path) -> None:
    """Records are adopted from files that the state knows in part or not at all."""
    warcs, _ = open_store(folder, max_bytes=1)
    records = [warcs.store(make_fetched_capture(of=capture(number)), None) for number in range(4)]
    warcs.close()
    for count in range(5):
        known = {record.file: end(record) for record in records[:count]}
        assert open_store(folder, known)[1] == records[count:]


def test_open_file_before_the_last_is_closed(folder: Path) -> None:
    """Only the last file stays open."""
    _, records = make_unfinished_store(folder)
    (folder / f"{FIRST}.open").rename(folder / FIRST)
    warcs, _ = open_store(folder)
    records.append(warcs.store(make_fetched_capture(of=capture(9)), None))
    (folder / FIRST).rename(folder / f"{FIRST}.open")
    assert open_store(folder)[1] == records
    assert sorted(path.name for path in folder.iterdir()) == [FIRST, "unlost-00002.warc.gz.open"]


def _missing(folder: Path) -> None:
    (folder / FIRST).unlink()


def _short(folder: Path) -> None:
    os.truncate(folder / FIRST, 500)


def _damaged(folder: Path) -> None:
    data = bytearray((folder / FIRST).read_bytes())
    data[-100] ^= 0xFF
    (folder / FIRST).write_bytes(data)


def _foreign(folder: Path) -> None:
    import gzip

    (folder / FIRST).write_bytes(gzip.compress(b"WARC/1.1\r\nWARC-Type: response\r\nContent-Length: 0\r\n\r\n\r\n\r\n"))


def _twice(folder: Path) -> None:
    shutil.copy(folder / FIRST, folder / f"{FIRST}.open")


@pytest.mark.parametrize(
    ("change", "known", "message"),
    [
        (_missing, True, "not there: put back"),
        (_short, True, "found 500: put back"),
        (_damaged, False, "damaged at byte"),
        (_foreign, False, "not a WARC of this recovery: move it away"),
        (_twice, False, "move one away"),
    ],
)
def test_irreparable_file_is_reported_and_unchanged(
    folder: Path, change: Callable[[Path], None], known: bool, message: str
) -> None:
    """The message names the file and says what to do; the file is not changed."""
    warcs, records = make_unfinished_store(folder)
    warcs.close()
    change(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(InputError, match=f"{re.escape(str(folder / FIRST))}.*{message}"):
        open_store(folder, {FIRST: end(records[2])} if known else {})
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("name", ["unlost-0001.warc.gz", "unlost-000001.warc.gz", "mine.warc.gz", f"{FIRST}.gz", "a"])
def test_files_with_other_names_are_ignored(folder: Path, name: str) -> None:
    """Files with other names are neither read nor written."""
    folder.mkdir()
    (folder / name).write_bytes(b"mine")
    warcs, adopted = open_store(folder)
    record = warcs.store(make_fetched_capture(), None)
    warcs.close()
    assert (adopted, record.file) == ([], FIRST)
    assert (folder / name).read_bytes() == b"mine"


def test_symbolic_link_as_folder_is_refused(tmp_path: Path) -> None:
    """Nothing is written to the target of the link."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "warc").symlink_to("elsewhere")
    with pytest.raises(InputError, match=r"warc: a link, which is not followed"):
        open_store(tmp_path / "warc")
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("name", [FIRST, f"{FIRST}.open"])
@pytest.mark.parametrize("place", ["file", "nowhere", "pipe", "folder", "other-name"])
def test_special_file_is_refused(folder: Path, tmp_path: Path, name: str, place: str) -> None:
    """Links, pipes, folders and hard links are not followed, waited for or changed."""
    outside = tmp_path / "outside"
    warcs, _ = make_unfinished_store(folder)
    warcs.close()
    (folder / FIRST).rename(outside)
    before = outside.read_bytes()
    if place == "pipe":
        os.mkfifo(folder / name)
    elif place == "folder":
        (folder / name).mkdir()
    elif place == "other-name":
        (folder / name).hardlink_to(outside)
    else:
        (folder / name).symlink_to(outside if place == "file" else tmp_path / "nowhere")
    if (place, name) == ("other-name", FIRST):
        assert len(open_store(folder)[1]) == 3  # it is only read
    else:
        with pytest.raises(InputError, match=re.escape(name)):
            open_store(folder)
    assert outside.read_bytes() == before
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("name", ["unlost-00002.warc.gz", "unlost-00002.warc.gz.open"])
def test_symbolic_link_at_next_file_name_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    """A link that appears where the next file would be created is refused."""
    outside = tmp_path / "outside"
    outside.write_bytes(b"mine")
    warcs, _ = open_store(folder, max_bytes=1)
    record = warcs.store(make_fetched_capture(), None)
    (folder / name).symlink_to(outside)
    with pytest.raises(InputError, match="unlost-00002"):
        warcs.store(make_fetched_capture(of=capture(2)), None)
    assert outside.read_bytes() == b"mine"
    (folder / name).unlink()
    second = warcs.store(make_fetched_capture(of=capture(2)), None)
    warcs.close()
    assert open_store(folder)[1] == [record, second]
