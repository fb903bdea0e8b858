"""A recovery as one WARC: what is in it, and that others read it."""

import gzip
import json
import shutil
import sqlite3
import zlib
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.cli.run import unlost
from tests.export.conftest import Recovered
from tests.export.recovered import GIF, PARKED, SAME, held, recovered
from tests.neighbours import pywb
from tests.recover.running import SITE, Run
from tests.recover.stubs import Stub
from tests.recover.village import PAGES
from unlost.errors import InputError, UsageError
from unlost.export import ArchiveFileResult, write_warc
from unlost.recover.state import RecoveryState, StateReader
from unlost.warc import compress_member


def records(path: Path) -> list[tuple[str, str, str, bytes]]:
    """Return type, address, date and payload of each record, as warcio reads it: every digest must be right."""
    found = []
    with path.open("rb") as file:
        for record in ArchiveIterator(file, check_digests="raise"):
            header = record.rec_headers.get_header
            body = record.content_stream().read()
            found.append((record.rec_type, header("WARC-Target-URI") or "", header("WARC-Date"), body))
    return found


def members(path: Path) -> list[bytes]:
    """Return the gzip members of a file, as they stand."""
    data, found = path.read_bytes(), []
    while data:
        unpacker = zlib.decompressobj(31)
        unpacker.decompress(data)
        assert unpacker.eof
        found.append(data[: len(data) - len(unpacker.unused_data)])
        data = unpacker.unused_data
    return found


def test_the_chosen_copies_are_in_it(tmp_path: Path, recovery: Path) -> None:
    """Each with its metadata behind it, and nothing that was rejected or not chosen."""
    done = write_warc(recovery, tmp_path / "a.warc.gz")
    first, *others = records(tmp_path / "a.warc.gz")
    assert first[0] == "warcinfo"
    assert b"software: unlost/" in first[3]
    assert {kind for kind, _, _, _ in others[1::2]} == {"metadata"}
    assert [uri for _, uri, _, _ in others[::2]] == [uri for _, uri, _, _ in others[1::2]]
    copies = {uri.removeprefix(SITE): (kind, date, body) for kind, uri, date, body in others[::2]}
    assert set(copies) == {"", "one", "same/1", "same/2", "a.gif", "latin", "sold"}
    assert copies["a.gif"] == ("response", "2014-01-01T00:00:00Z", GIF)
    assert copies["sold"][1] == "2013-01-01T00:00:00Z"
    assert sorted(kind for kind, _, body in copies.values() if body in (SAME, b"")) == ["response", "revisit"]
    assert PARKED not in [body for _, _, _, body in others]
    size = (tmp_path / "a.warc.gz").stat().st_size
    assert (done.copies, done.originals, done.bytes, done.problems.total) == (7, 0, size, 0)
    assert [file.name for file in tmp_path.iterdir()] == ["a.warc.gz"]


def test_records_are_copied_byte_for_byte(tmp_path: Path, recovery: Path) -> None:
    """Every member but the first is one of the recovery's, in its order."""
    write_warc(recovery, tmp_path / "a.warc.gz")
    kept = [member for file in sorted((recovery / "warc").iterdir()) for member in members(file)]
    copied = members(tmp_path / "a.warc.gz")[1:]
    places = [kept.index(member) for member in copied]
    assert places == sorted(places)
    assert len(copied) == 2 * 7


def test_the_same_recovery_makes_the_same_file(tmp_path: Path, recovery: Path) -> None:
    """Wherever it is, and whenever it is exported."""
    shutil.copytree(recovery, tmp_path / "copy")
    (tmp_path / "out").mkdir()
    write_warc(recovery, tmp_path / "a.warc.gz")
    write_warc(tmp_path / "copy", tmp_path / "out" / "a.warc.gz")
    assert (tmp_path / "a.warc.gz").read_bytes() == (tmp_path / "out" / "a.warc.gz").read_bytes()


def _drop(recovery: Path, path: str) -> None:
    """Let a page have no copy that was chosen."""
    with sqlite3.connect(recovery / "state.sqlite") as state:
        state.execute("UPDATE resource SET record = NULL, standing = 'missing' WHERE uri = ?", (SITE + path,))
    state.close()


def test_what_a_chosen_revisit_refers_to_is_in_it(tmp_path: Path, recovery: Path) -> None:
    """Also if that was not chosen itself, and before it: without it there would be no body."""
    shutil.copytree(recovery, tmp_path / "r")
    with StateReader(tmp_path / "r") as state:
        (revisit,) = [chosen for chosen in state.chosen_captures() if chosen.is_revisit]
    original = ({"same/1", "same/2"} - {revisit.uri.removeprefix(SITE)}).pop()
    _drop(tmp_path / "r", original)
    done = write_warc(tmp_path / "r", tmp_path / "a.warc.gz")
    assert (done.copies, done.originals) == (6, 1)
    found = [(kind, uri.removeprefix(SITE)) for kind, uri, _, _ in records(tmp_path / "a.warc.gz")]
    assert found.index(("response", original)) < found.index(("revisit", revisit.uri.removeprefix(SITE)))


def _place(recovery: Path, path: str) -> tuple[Path, int]:
    """Return the file and the offset of the copy that was chosen for a page."""
    with StateReader(recovery) as state:
        (found,) = [chosen for chosen in state.chosen_captures() if chosen.uri == SITE + path]
    return recovery / "warc" / found.file, found.offset


def _flip(file: Path, offset: int) -> None:
    data = bytearray(file.read_bytes())
    data[offset] ^= 0x20
    file.write_bytes(data)


@pytest.mark.parametrize("behind", [0, 30, 200, -12])
def test_a_damaged_record_is_counted_and_left_out(tmp_path: Path, recovery: Path, behind: int) -> None:
    """Wherever a bit of it is wrong; the others are there, and the first problem says where."""
    shutil.copytree(recovery, tmp_path / "r")
    file, offset = _place(tmp_path / "r", "one")
    _flip(file, offset + behind)
    is_before = behind < 0  # then it is that of another copy, or of one that was not chosen
    done = write_warc(tmp_path / "r", tmp_path / "a.warc.gz")
    assert (done.copies, dict(done.problems.counts)) == (6, {"damaged-record": 1})
    assert done.problems.first["damaged-record"].file == str(file)
    assert is_before or done.problems.first["damaged-record"].offset == offset
    uris = [uri for kind, uri, _, _ in records(tmp_path / "a.warc.gz") if kind == "response"]
    assert (SITE + "one" in uris) == is_before


def test_another_body_with_a_right_checksum_is_damage_too(tmp_path: Path, recovery: Path) -> None:
    """A record that was changed and packed anew has another digest than its header says."""
    shutil.copytree(recovery, tmp_path / "r")
    file, offset = _place(tmp_path / "r", "a.gif")
    data = file.read_bytes()
    member = next(each for each in members(file) if data[offset:].startswith(each))
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
    assert GIF[::-1] not in [body for _, _, _, body in records(tmp_path / "a.warc.gz")]


def test_a_revisit_without_its_body_is_left_out(tmp_path: Path, recovery: Path) -> None:
    """Where the original is damaged, both are counted, each by its kind."""
    shutil.copytree(recovery, tmp_path / "r")
    with StateReader(tmp_path / "r") as state:
        (revisit,) = [chosen for chosen in state.chosen_captures() if chosen.is_revisit]
    original = ({"same/1", "same/2"} - {revisit.uri.removeprefix(SITE)}).pop()
    file, offset = _place(tmp_path / "r", original)
    _flip(file, offset + 100)
    done = write_warc(tmp_path / "r", tmp_path / "a.warc.gz")
    assert (done.copies, dict(done.problems.counts)) == (5, {"damaged-record": 1, "revisit-without-body": 1})


def test_a_file_that_is_gone_is_said(tmp_path: Path) -> None:
    """What was in it is counted; what is elsewhere is exported."""
    folder = recovered(tmp_path / "r", max_bytes=1)
    file, _ = _place(folder, "one")
    file.unlink()
    other, _ = _place(folder, "a.gif")
    other.rename(tmp_path / "elsewhere.warc.gz")
    other.symlink_to(tmp_path / "elsewhere.warc.gz")
    done = write_warc(folder, tmp_path / "a.warc.gz")
    assert (done.copies, dict(done.problems.counts)) == (5, {"damaged-record": 2})
    assert "not there" in done.problems.first["damaged-record"].message


def test_nothing_to_export_is_said(tmp_path: Path, recovery: Path) -> None:
    """An archive file without a copy would pass for one with all of them."""
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


def test_a_state_may_say_anything(tmp_path: Path, recovery: Path) -> None:
    """Offsets that no file has, names that lead elsewhere: each is counted, and nothing else is opened."""
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


def test_a_record_of_another_copy_is_not_taken_for_the_chosen_one(tmp_path: Path, recovery: Path) -> None:
    """It is whole, and where the state says that it is; but it is not what was chosen."""
    shutil.copytree(recovery, tmp_path / "r")
    (_, one), (_, image) = _place(tmp_path / "r", "one"), _place(tmp_path / "r", "a.gif")
    with sqlite3.connect(tmp_path / "r" / "state.sqlite") as state:
        for old, new in ((one, -1), (image, one), (-1, image)):
            state.execute("UPDATE record SET offset = ? WHERE offset = ?", (new, old))
    state.close()
    done = write_warc(tmp_path / "r", tmp_path / "a.warc.gz")
    assert (done.copies, dict(done.problems.counts)) == (5, {"damaged-record": 2})


@pytest.mark.parametrize("name", ["a.warc", "a.gz", "a.wacz"])
def test_another_ending_is_refused(tmp_path: Path, recovery: Path, name: str) -> None:
    """What is written is a gzipped WARC, whatever it is called."""
    with pytest.raises(UsageError, match=r"ends in \.warc\.gz"):
        write_warc(recovery, tmp_path / name)


def test_it_is_not_put_among_the_files_of_the_recovery(recovery: Path) -> None:
    """The next run would take it for one of its own."""
    with pytest.raises(UsageError, match="belongs to the recovery"):
        write_warc(recovery, recovery / "warc" / "unlost-00009.warc.gz")


def test_progress_is_told(tmp_path: Path, recovery: Path) -> None:
    """Record by record, up to all of them."""
    told: list[tuple[int, int]] = []
    write_warc(recovery, tmp_path / "a.warc.gz", on_progress=lambda done, total: told.append((done, total)))
    assert told == [(number, 7) for number in range(1, 8)]


def test_an_interrupted_export_leaves_nothing(tmp_path: Path, recovery: Path) -> None:
    """Neither under the name nor beside it."""

    def interrupt(done: int, _: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_warc(recovery, tmp_path / "a.warc.gz", on_progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_a_recovery_that_goes_on_is_exported(tmp_path: Path) -> None:
    """What its state knows so far, while that is locked by another, who is writing a file that is not ended."""
    exported: list[ArchiveFileResult] = []

    def export(question: str) -> None:
        if question.endswith("a.gif") and question.startswith("fetch"):
            assert list((tmp_path / "r" / "warc").glob("*.open"))
            exported.append(write_warc(tmp_path / "r", tmp_path / "a.warc.gz"))

    archive = Stub("a", held())
    (tmp_path / "r").mkdir()
    assert not Run(tmp_path / "r", archive, limit=2)().is_done
    archive.before = export
    assert Run(tmp_path / "r", archive)().is_done
    (done,) = exported
    assert (done.copies, done.problems.total) == (2, 0)
    assert len(records(tmp_path / "a.warc.gz")) == 1 + 2 * 2


def test_the_village_is_replayed_and_compared(recovered_village: Recovered, tmp_path: Path) -> None:
    """Pywb gives every page and image with the right bytes, and `unlost compare` finds nothing different."""
    (tmp_path / "out").mkdir()
    warc = tmp_path / "out" / "village.warc.gz"
    written = write_warc(recovered_village.folder, warc)
    assert (written.copies, written.problems.total) == (1 + 2 * PAGES, 0)
    done = json.loads(unlost("compare", "--json", str(recovered_village.folder), str(warc)).stdout.splitlines()[-1])
    assert done["difference"] == {"changed": 0, "missing": 0, "added": 0, "success": 0}
    assert done["resources"]["identical"] == 1 + 2 * PAGES
    with pywb.serving_warcs([warc], tmp_path) as (server,):
        for _, each in recovered_village.site.captures():
            answer = server.fetch(each.date, each.uri)
            assert (answer.status, answer.body) == (each.status, each.body), each.uri
