"""Folders of generations: each starts from the last complete one, and later writes to an old one have no effect."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from unlost.errors import InputError
from unlost.jobs import CHECKPOINT_FILE, JobFolders, LinkSigner, load_secret, write_checkpoint


def write_state(folder: Path, value: int) -> None:
    """Write to the state as a recovery does."""
    with closing(sqlite3.connect(folder / "state.sqlite")) as state:
        state.execute("PRAGMA journal_mode = WAL")
        state.execute("CREATE TABLE IF NOT EXISTS a (b)")
        state.execute("DELETE FROM a")
        state.execute("INSERT INTO a VALUES (?)", (value,))
        state.commit()


def read_state(folder: Path) -> int:
    """Return the content of the state."""
    with closing(sqlite3.connect(folder / "state.sqlite")) as state:
        return int(state.execute("SELECT b FROM a").fetchone()[0])


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """Create a running first generation with a complete WARC, an incomplete one, and a checkpoint."""
    folder = JobFolders(tmp_path).begin_generation(7, 1)
    (folder / "warc").mkdir()
    (folder / "warc" / "unlost-00001.warc.gz").write_bytes(b"finished")
    (folder / "warc" / "unlost-00002.warc.gz.open").write_bytes(b"open")
    write_state(folder, 1)
    write_checkpoint(folder)
    return folder


def test_generation_starts_from_the_last_checkpoint(first: Path, tmp_path: Path) -> None:
    """It has the state of the checkpoint and all WARCs, and is independent of later writes to the old folder."""
    write_state(first, 2)
    second = JobFolders(tmp_path).begin_generation(7, 2)
    with (first / "warc" / "unlost-00002.warc.gz.open").open("ab") as file:
        file.write(b" and spoiled")
    write_state(first, 3)
    write_checkpoint(first)
    assert read_state(second) == 1
    assert (second / "warc" / "unlost-00001.warc.gz").read_bytes() == b"finished"
    assert (second / "warc" / "unlost-00001.warc.gz").stat().st_nlink == 2
    assert (second / "warc" / "unlost-00002.warc.gz.open").read_bytes() == b"open"
    assert (second / "warc" / "unlost-00002.warc.gz.open").stat().st_nlink == 1


def test_incomplete_folder_is_ignored(first: Path, tmp_path: Path) -> None:
    """A worker that was killed during the creation of its folder is ignored."""
    folders = JobFolders(tmp_path)
    (folders.folder_of(7) / "g2.part").mkdir()
    (folders.folder_of(7) / "g2.part" / "state.sqlite").write_bytes(b"half")
    third = folders.begin_generation(7, 3)
    assert read_state(third) == 1
    (folders.folder_of(7) / "g4.part").mkdir()
    assert read_state(folders.begin_generation(7, 4)) == 1, "the third had the checkpoint, too, though it wrote none"
    folders.remove_older_generations(7, 4)
    assert not first.exists()
    folders.remove(7)
    assert not folders.folder_of(7).exists()


def test_generation_without_checkpoint_copies_warcs(tmp_path: Path) -> None:
    """If the worker was killed before its first checkpoint, captures are found in its WARCs."""
    folders = JobFolders(tmp_path)
    (folders.begin_generation(1, 1) / "warc").mkdir()
    (folders.generation_folder(1, 1) / "warc" / "unlost-00001.warc.gz.open").write_bytes(b"x")
    second = folders.begin_generation(1, 2)
    assert [path.name for path in second.rglob("*") if path.is_file()] == ["unlost-00001.warc.gz.open"]


def test_generation_with_an_existing_folder(first: Path, tmp_path: Path) -> None:
    """A database restored from a backup may issue a generation again; the recovery continues from its folder."""
    again = JobFolders(tmp_path).begin_generation(7, 1)
    assert again == first
    assert read_state(again) == 1
    assert (again / CHECKPOINT_FILE).exists()


def test_link_keys_are_verified(tmp_path: Path) -> None:
    """A key is valid for one job and one purpose, and for one secret."""
    secret = load_secret(tmp_path / "secret")
    assert load_secret(tmp_path / "secret") == secret
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
    keys = LinkSigner(secret)
    assert keys.verify_owner_key(keys.owner_key(7)) == 7
    assert keys.verify_confirmation(keys.confirmation_code(7)) == 7
    assert keys.verify_owner_key(keys.confirmation_code(7)) is None
    assert keys.verify_owner_key(keys.owner_key(7).replace("7-", "8-", 1)) is None
    assert LinkSigner(load_secret(tmp_path / "other")).verify_owner_key(keys.owner_key(7)) is None
    (tmp_path / "secret").write_text("short")
    with pytest.raises(InputError, match="ends all old links"):
        load_secret(tmp_path / "secret")
