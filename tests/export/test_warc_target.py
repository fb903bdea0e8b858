"""Tests of a recovery as WARC: content, and reading it with other tools."""

import gzip
import json
import shutil
import sqlite3
import zlib
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.cli.run import unlost
from tests.export.conftest import SampleRecovery
from tests.export.small_recovery import GIF, PARKED, SAME, make_site, recover_small_site
from tests.external import pywb
from tests.recovery.recovery_runner import SITE, RecoveryRunner
from tests.recovery.sample_site import PAGES
from tests.recovery.stub_archive import Stub
from unlost.errors import InputError, UsageError
from unlost.export import ArchiveFileResult, write_warc
from unlost.recovery.state import RecoveryState, StateReader
from unlost.warc import compress_member


def read_records(path: Path) -> list[tuple[str, str, str, bytes]]:
    """Return type, URL, date and payload of each record; warcio verifies all digests."""
    found = []
    with path.open("rb") as file:
        for record in ArchiveIterator(file, check_digests="raise"):
            header = record.rec_headers.get_header
            body = record.content_stream().read()
            found.append((record.rec_type, header("WARC-Target-URI") or "", header("WARC-Date"), body))
    return found


def gzip_members(path: Path) -> list[bytes]:
    """Return the raw gzip members of a file."""
    data, found = path.read_bytes(), []
    while data:
        unpacker = zlib.decompressobj(31)
        unpacker.decompress(data)
        assert unpacker.eof
        found.append(data[: len(data) - len(unpacker.unused_data)])
        data = unpacker.unused_data
    return found


def test_warc_has_chosen_captures_with_metadata(tmp_path: Path, recovery: Path) -> None:
    """It has no rejected or unchosen captures."""
    done = write_warc(recovery, tmp_path / "a.warc.gz")
    first, *others = read_records(tmp_path / "a.warc.gz")
    assert first[0] == "warcinfo"
    assert b"software: unlost/" in first[3]
    assert {kind for kind, _, _, _ in others[1::2]} == {"metadata"}
    assert [uri for _, uri, _, _ in others[::2]] == [uri for _, uri, _, _ in others[1::2]]
    captures = {uri.removeprefix(SITE): (kind, date, body) for kind, uri, date, body in others[::2]}
    assert set(captures) == {"", "one", "same/1", "same/2", "a.gif", "latin", "sold"}
    assert captures["a.gif"] == ("response", "2014-01-01T00:00:00Z", GIF)
    assert captures["sold"][1] == "2013-01-01T00:00:00Z"
    assert sorted(kind for kind, _, body in captures.values() if body in (SAME, b"")) == ["response", "revisit"]
    assert PARKED not in [body for _, _, _, body in others]
    size = (tmp_path / "a.warc.gz").stat().st_size
    assert (done.copies, done.originals, done.bytes, done.problems.total) == (7, 0, size, 0)
    assert [file.name for file in tmp_path.iterdir()] == ["a.warc.gz"]


def test_records_are_copied_byte_for_byte(tmp_path: Path, recovery: Path) -> None:
    """All members except the first are those of the recovery, in its order."""
    write_warc(recovery, tmp_path / "a.warc.gz")
    originals = [member for file in sorted((recovery / "warc").iterdir()) for member in gzip_members(file)]
    copied = gzip_members(tmp_path / "a.warc.gz")[1:]
    places = [originals.index(member) for member in copied]
    assert places == sorted(places)
    assert len(copied) == 2 * 7


def test_warc_is_deterministic(tmp_path: Path, recovery: Path) -> None:
    """Path and time do not matter."""
    shutil.copytree(recovery, tmp_path / "copy")
    (tmp_path / "out").mkdir()
    write_warc(recovery, tmp_path / "a.warc.gz")
    write_warc(tmp_path / "copy", tmp_path / "out" / "a.warc.gz")
    assert (tmp_path / "a.warc.gz").read_bytes() == (tmp_path / "out" / "a.warc.gz").read_bytes()


def _drop(recovery: Path, path: str) -> None:
    """Remove the chosen capture of a page."""
    with sqlite3.connect(recovery / "state.sqlite") as state:
        state.execute("UPDATE resource SET record = NULL, standing = 'missing' WHERE uri = ?", (SITE + path,))
    state.close()


def test_original_of_chosen_revisit_is_included(tmp_path: Path, recovery: Path) -> None:
    """It precedes the revisit, even if it is not chosen itself."""
    shutil.copytree(recovery, tmp_path / "r")
    with StateReader(tmp_path / "r") as state:
        (revisit,) = [chosen for chosen in state.chosen_captures() if chosen.is_revisit]
    original = ({"same/1", "same/2"} - {revisit.uri.removeprefix(SITE)}).pop()
    _drop(tmp_path / "r", original)
    done = write_warc(tmp_path / "r", tmp_path / "a.warc.gz")
    assert (done.copies, done.originals) == (6, 1)
    found = [(kind, uri.removeprefix(SITE)) for kind, uri, _, _ in read_records(tmp_path / "a.warc.gz")]
    assert found.index(("response", original)) < found.index(("revisit", revisit.uri.removeprefix(SITE)))


def _record_location(recovery: Path, path: str) -> tuple[Path, int]:
    """Return file and offset of the chosen capture of a page."""
    with StateReader(recovery) as state:
        (found,) = [chosen for chosen in state.chosen_captures() if chosen.uri == SITE + path]
    return recovery / "warc" / found.file, found.offset


def _flip(file: Path, offset: int) -> None:
    data = bytearray(file.read_bytes())
    data[offset] ^= 0x20
    file.write_bytes(data)


@pytest.mark.parametrize("offset_in_record", [0, 30, 200, -12])
def test_damaged_record_is_reported_and_left_out(tmp_path: Path, recovery: Path, offset_in_record: int) -> None:
    """Wherever the damage is, the others are written, and the first problem has the position."""
    shutil.copytree(recovery, tmp_path / "r")
    file, offset = _record_location(tmp_path / "r", "one")
    _flip(file, offset + offset_in_record)
    is_before = offset_in_record < 0  # then it is that of another copy, or of one that was not chosen
    done = write_warc(tmp_path / "r", tmp_path / "a.warc.gz")
    assert (done.copies, dict(done.problems.counts)) == (6, {"damaged-record": 1})
    assert done.problems.first["damaged-record"].file == str(file)
    assert is_before or done.problems.first["damaged-record"].offset == offset
    uris = [uri for kind, uri, _, _ in read_records(tmp_path / "a.warc.gz") if kind == "response"]
    assert (SITE + "one" in uris) == is_before


def test_record_with_wrong_digest_is_damaged(tmp_path: Path, recovery: Path) -> None:
    """A changed and recompressed record is detected by its digest."""
    shutil.copytree(recovery, tmp_path / "r")
    file, offset = _record_location(tmp_path / "r", "a.gif")
    data = file.read_bytes()
    member = next(each for each in gzip_members(file) if data[offset:].startswith(each))
    text = gzip.decompress(member)
    forged = b"".join(compress_member([text.replace(GIF, GIF[::-1])], len(text)))
    moved = len(forged) - len(member)
    file.write_bytes(data[:offset] + forged + data[offset + len(member) :])
    with sqlite3.connect(tmp_path / "r" / "state.sqlite") as state:
        state.execute("UPDATE record SET offset = offset + ? WHERE file = ? AND offset > ?", (moved, file.name, offset))
    state.close()
    done = write_warc(tmp_path / "r", tmp_path / "a.warc.gz")
    assert done.problems.counts["damaged-record"] == 1
    assert "digest" in done.problems.first["damaged-record"].message
    assert GIF[::-1] not in [body for _, _, _, body in read_records(tmp_path / "a.warc.gz")]


def test_revisit_without_original_is_left_out(tmp_path: Path, recovery: Path) -> None:
    """If the original is damaged, both are counted by kind."""
    shutil.copytree(recovery, tmp_path / "r")
    with StateReader(tmp_path / "r") as state:
        (revisit,) = [chosen for chosen in state.chosen_captures() if chosen.is_revisit]
    original = ({"same/1", "same/2"} - {revisit.uri.removeprefix(SITE)}).pop()
    file, offset = _record_location(tmp_path / "r", original)
    _flip(file, offset + 100)
    done = write_warc(tmp_path / "r", tmp_path / "a.warc.gz")
    assert (done.copies, dict(done.problems.counts)) == (5, {"damaged-record": 1, "revisit-without-body": 1})


def test_missing_warc_is_reported(tmp_path: Path) -> None:
    """Its captures are counted, and those of other files are exported."""
    folder = recover_small_site(tmp_path / "r", max_bytes=1)
    file, _ = _record_location(folder, "one")
    file.unlink()
    other, _ = _record_location(folder, "a.gif")
    other.rename(tmp_path / "elsewhere.warc.gz")
    other.symlink_to(tmp_path / "elsewhere.warc.gz")
    done = write_warc(folder, tmp_path / "a.warc.gz")
    assert (done.copies, dict(done.problems.counts)) == (5, {"damaged-record": 2})
    assert "not there" in done.problems.first["damaged-record"].message


def test_export_without_captures_is_an_error(tmp_path: Path, recovery: Path) -> None:
    """No archive file without captures is written."""
    shutil.copytree(recovery, tmp_path / "r")
    for file in (tmp_path / "r" / "warc").iterdir():
        file.write_bytes(b"")
    with pytest.raises(InputError, match="nothing can be exported"):
        write_warc(tmp_path / "r", tmp_path / "a.warc.gz")
    empty = tmp_path / "empty"
    empty.mkdir()
    RecoveryState(empty).__enter__().__exit__(None, None, None)
    with pytest.raises(InputError, match="nothing was recovered so far"):
        write_warc(empty, tmp_path / "a.warc.gz")
    assert not (tmp_path / "a.warc.gz").exists()


def test_invalid_state_values_are_reported(tmp_path: Path, recovery: Path) -> None:
    """Invalid offsets and file names are counted, and no other file is opened."""
    shutil.copytree(recovery, tmp_path / "r")
    with sqlite3.connect(tmp_path / "r" / "state.sqlite") as state:
        numbers = [row[0] for row in state.execute("SELECT record FROM resource WHERE record IS NOT NULL ORDER BY id")]
        changes = [("offset", -1), ("offset", 2**62), ("file", "../state.sqlite"), ("offset", 1)]
        for (column, value), number in zip(changes, numbers, strict=False):
            state.execute(f"UPDATE record SET {column} = ? WHERE id = ?", (value, number))  # noqa: S608
    state.close()
    done = write_warc(tmp_path / "r", tmp_path / "a.warc.gz")
    assert done.problems.total == 4
    assert done.copies == 3


def test_record_of_another_capture_is_rejected(tmp_path: Path, recovery: Path) -> None:
    """A valid record at the offset of another capture is not exported."""
    shutil.copytree(recovery, tmp_path / "r")
    (_, one), (_, image) = _record_location(tmp_path / "r", "one"), _record_location(tmp_path / "r", "a.gif")
    with sqlite3.connect(tmp_path / "r" / "state.sqlite") as state:
        for old, new in ((one, -1), (image, one), (-1, image)):
            state.execute("UPDATE record SET offset = ? WHERE offset = ?", (new, old))
    state.close()
    done = write_warc(tmp_path / "r", tmp_path / "a.warc.gz")
    assert (done.copies, dict(done.problems.counts)) == (5, {"damaged-record": 2})


@pytest.mark.parametrize("name", ["a.warc", "a.gz", "a.wacz"])
def test_other_extension_is_refused(tmp_path: Path, recovery: Path, name: str) -> None:
    """The output is always a gzipped WARC."""
    with pytest.raises(UsageError, match=r"ends in \.warc\.gz"):
        write_warc(recovery, tmp_path / name)


def test_target_in_the_recovery_folder_is_refused(recovery: Path) -> None:
    """The next run would adopt it."""
    with pytest.raises(UsageError, match="belongs to the recovery"):
        write_warc(recovery, recovery / "warc" / "unlost-00009.warc.gz")


def test_progress_is_reported(tmp_path: Path, recovery: Path) -> None:
    """Record by record, up to the total."""
    calls: list[tuple[int, int]] = []
    write_warc(recovery, tmp_path / "a.warc.gz", on_progress=lambda done, total: calls.append((done, total)))
    assert calls == [(number, 7) for number in range(1, 8)]


def test_interrupted_export_leaves_no_files(tmp_path: Path, recovery: Path) -> None:
    """There is no final and no temporary file."""

    def interrupt(done: int, _: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_warc(recovery, tmp_path / "a.warc.gz", on_progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_running_recovery_is_exported(tmp_path: Path) -> None:
    """The captures in its state are exported, although it is locked and a WARC is open."""
    exported: list[ArchiveFileResult] = []

    def export(request: str) -> None:
        if request.endswith("a.gif") and request.startswith("fetch"):
            assert list((tmp_path / "r" / "warc").glob("*.open"))
            exported.append(write_warc(tmp_path / "r", tmp_path / "a.warc.gz"))

    archive = Stub("a", make_site())
    (tmp_path / "r").mkdir()
    assert not RecoveryRunner(tmp_path / "r", archive, limit=2)().is_done
    archive.before = export
    assert RecoveryRunner(tmp_path / "r", archive)().is_done
    (done,) = exported
    assert (done.copies, done.problems.total) == (2, 0)
    assert len(read_records(tmp_path / "a.warc.gz")) == 1 + 2 * 2


def test_sample_site_is_replayed_by_pywb(sample_recovery: SampleRecovery, tmp_path: Path) -> None:
    """Every page and image is replayed with its bytes, and `unlost compare` finds no difference."""
    (tmp_path / "out").mkdir()
    warc = tmp_path / "out" / "sample.warc.gz"
    written = write_warc(sample_recovery.folder, warc)
    assert (written.copies, written.problems.total) == (1 + 2 * PAGES, 0)
    done = json.loads(unlost("compare", "--json", str(sample_recovery.folder), str(warc)).stdout.splitlines()[-1])
    assert done["difference"] == {"changed": 0, "missing": 0, "added": 0, "success": 0}
    assert done["resources"]["identical"] == 1 + 2 * PAGES
    with pywb.serve_warcs([warc], tmp_path) as (server,):
        for _, each in sample_recovery.site.captures():
            response = server.fetch(each.date, each.uri)
            assert (response.status, response.body) == (each.status, each.body), each.uri
