"""What is found in the folder of WARCs after a crash, and what is refused there."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.recover.sample_captures import capture, copy, opened, text_of
from unlost.errors import InputError
from unlost.recover import RecoveryRecord, WarcStore

FIRST = "unlost-00001.warc.gz"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return where the WARCs go."""
    return tmp_path / "warc"


def end(record: RecoveryRecord) -> int:
    """Return where a record ends."""
    return record.offset + record.size


def unfinished(folder: Path) -> tuple[WarcStore, list[RecoveryRecord]]:
    """Return WARCs whose file is still open, with two copies and a revisit."""
    warcs, _ = opened(folder)
    records = [warcs.store(copy(b"one", of=capture(1)), None), warcs.store(copy(b"two", of=capture(2)), None)]
    return warcs, [*records, warcs.store_revisit(capture(3), records[0])]


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_torn_at_every_byte(folder: Path, tmp_path: Path, kept: int) -> None:
    """Wherever the last append broke off: all before it is adopted, nothing else, and the file is whole again."""
    _, records = unfinished(folder)
    data = (folder / f"{FIRST}.open").read_bytes()
    place = tmp_path / "torn"
    for size in range(records[kept].offset, end(records[kept])):
        place.mkdir()
        (place / f"{FIRST}.open").write_bytes(data[:size])
        warcs, adopted = opened(place)
        assert adopted == records[:kept], size
        assert warcs.truncated_bytes == size - records[kept].offset
        assert (place / f"{FIRST}.open").stat().st_size == records[kept].offset
        if size % 40 == 0:  # what comes next is read by everybody
            again = warcs.store(copy(b"three", of=capture(4)), None)
            warcs.close()
            assert opened(place)[1] == [*records[:kept], again]
        else:
            warcs.close()
            assert not kept or "three" not in text_of(place / FIRST)
        shutil.rmtree(place)


def test_torn_in_its_first_record(folder: Path) -> None:
    """A file that was only begun is begun anew, and goes if nothing comes."""
    _, records = unfinished(folder)
    data = (folder / f"{FIRST}.open").read_bytes()
    for size in range(0, records[0].offset + 1, 7):
        (folder / f"{FIRST}.open").write_bytes(data[:size])
        warcs, adopted = opened(folder)
        assert adopted == []
        warcs.close()
        assert list(folder.iterdir()) == []
        (folder / f"{FIRST}.open").write_bytes(data[:size])
        warcs, _ = opened(folder)
        record = warcs.store(copy(), None)
        warcs.close()
        assert opened(folder)[1] == [record]
        assert text_of(folder / FIRST).count("WARC-Type: warcinfo") == 1
        (folder / FIRST).unlink()


def test_any_changed_byte_in_the_last_record_is_survived(folder: Path, tmp_path: Path) -> None:
    """A disk that lost what it was writing: the record goes, or nothing of it has changed."""
    _, records = unfinished(folder)
    data = (folder / f"{FIRST}.open").read_bytes()
    place, gone = tmp_path / "changed", 0
    place.mkdir()
    for offset in range(records[2].offset, len(data)):
        changed = bytearray(data)
        changed[offset] ^= 1 << offset % 8
        (place / f"{FIRST}.open").write_bytes(changed)
        _, adopted = opened(place)
        assert adopted in (records[:2], records), offset  # a gzip header has no checksum, and its date means nothing
        gone += adopted != records
    assert gone > records[2].size - 30


@pytest.mark.parametrize("offset", [16, 20, 60, 700, 100_000, -5])
def test_damage_is_not_taken_for_a_file_of_somebody_else(folder: Path, offset: int) -> None:
    """A large record is looked into before its checksum is reached: it is torn all the same."""
    warcs, records = unfinished(folder)
    last = warcs.store(copy(os.urandom(300_000), of=capture(5, mime="image/png")), None)
    path = folder / f"{FIRST}.open"
    data = bytearray(path.read_bytes())
    data[last.offset + offset if offset > 0 else offset] ^= 0x08
    path.write_bytes(data)
    warcs, adopted = opened(folder)
    assert (adopted, warcs.truncated_bytes) == (records, last.size)
    warcs.close()


@pytest.mark.parametrize("rest", [b"\0" * 4096, b"\x1f\x8b\x08\0\0\0\0\0\0\3" + b"\xff" * 300, b"WARC/1.1\r\n"])
def test_what_a_loss_of_power_leaves_is_cut_off(folder: Path, rest: bytes) -> None:
    """Zeros and rubbish behind the last record."""
    _, records = unfinished(folder)
    with (folder / f"{FIRST}.open").open("ab") as file:
        file.write(rest)
    warcs, adopted = opened(folder, {FIRST: end(records[1])})
    assert adopted == records[2:]
    assert warcs.truncated_bytes == len(rest)
    warcs.close()
    assert opened(folder)[1] == records


def test_only_what_the_state_does_not_know_is_adopted(folder: Path) -> None:
    """In files that it knows in part, and in those that it has never heard of."""
    warcs, _ = opened(folder, max_bytes=1)
    records = [warcs.store(copy(of=capture(number)), None) for number in range(4)]
    warcs.close()
    for count in range(5):
        known = {record.file: end(record) for record in records[:count]}
        assert opened(folder, known)[1] == records[count:]


def test_a_file_that_was_left_open_before_the_last_is_ended(folder: Path) -> None:
    """Only one is written further."""
    _, records = unfinished(folder)
    (folder / f"{FIRST}.open").rename(folder / FIRST)
    warcs, _ = opened(folder)
    records.append(warcs.store(copy(of=capture(9)), None))
    (folder / FIRST).rename(folder / f"{FIRST}.open")
    assert opened(folder)[1] == records
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
    ("change", "known", "said"),
    [
        (_missing, True, "not there: put back"),
        (_short, True, "found 500: put back"),
        (_damaged, False, "damaged at byte"),
        (_foreign, False, "not a WARC of this recovery: move it away"),
        (_twice, False, "move one away"),
    ],
)
def test_what_cannot_be_mended_is_told(folder: Path, change: Callable[[Path], None], known: bool, said: str) -> None:
    """The message names the file and says what to do; the file stays as it is."""
    warcs, records = unfinished(folder)
    warcs.close()
    change(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(InputError, match=f"{re.escape(str(folder / FIRST))}.*{said}"):
        opened(folder, {FIRST: end(records[2])} if known else {})
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("name", ["unlost-0001.warc.gz", "unlost-000001.warc.gz", "mine.warc.gz", f"{FIRST}.gz", "a"])
def test_other_files_are_left_alone(folder: Path, name: str) -> None:
    """Whatever has no name of ours is neither read nor written."""
    folder.mkdir()
    (folder / name).write_bytes(b"mine")
    warcs, adopted = opened(folder)
    record = warcs.store(copy(), None)
    warcs.close()
    assert (adopted, record.file) == ([], FIRST)
    assert (folder / name).read_bytes() == b"mine"


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    """Nothing is written where it leads."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "warc").symlink_to("elsewhere")
    with pytest.raises(InputError, match=r"warc: a link, which is not followed"):
        opened(tmp_path / "warc")
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("name", [FIRST, f"{FIRST}.open"])
@pytest.mark.parametrize("place", ["file", "nowhere", "pipe", "folder", "other-name"])
def test_a_file_that_is_something_else_is_refused(folder: Path, tmp_path: Path, name: str, place: str) -> None:
    """A link, a pipe, a folder, a second name of a file elsewhere: nothing is followed, waited for or changed."""
    outside = tmp_path / "outside"
    warcs, _ = unfinished(folder)
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
        assert len(opened(folder)[1]) == 3  # it is only read
    else:
        with pytest.raises(InputError, match=re.escape(name)):
            opened(folder)
    assert outside.read_bytes() == before
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("name", ["unlost-00002.warc.gz", "unlost-00002.warc.gz.open"])
def test_a_link_that_comes_in_the_middle_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    """Where the next file should go, once the recovery runs."""
    outside = tmp_path / "outside"
    outside.write_bytes(b"mine")
    warcs, _ = opened(folder, max_bytes=1)
    record = warcs.store(copy(), None)
    (folder / name).symlink_to(outside)
    with pytest.raises(InputError, match="unlost-00002"):
        warcs.store(copy(of=capture(2)), None)
    assert outside.read_bytes() == b"mine"
    (folder / name).unlink()
    second = warcs.store(copy(of=capture(2)), None)
    warcs.close()
    assert opened(folder)[1] == [record, second]
