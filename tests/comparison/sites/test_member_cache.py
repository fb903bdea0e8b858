"""Tests of archive files that are one gzip member: they are decompressed once to read bodies."""

import gzip
import hashlib
import subprocess
import tempfile
import zlib
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.warc.warcs import record
from unlost.comparison import Site, open_site, warc_site
from unlost.errors import ArchiveFileError

PAGES = 60
SIZE = 50_000


def body(number: int) -> bytes:
    """Return the body of a page."""
    return b"<p>" + f"word{number} ".encode() * (SIZE // 8)


def archive() -> bytes:
    """Return the text of a WARC of 3 MB."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    return b"".join(record(head + body(n), uri=f"http://example.com/{n:02}") for n in range(PAGES))


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """Provide a WARC that is one gzip member."""
    file = tmp_path / "a.warc.gz"
    file.write_bytes(gzip.compress(archive(), 1))
    return file


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide the folder of temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def bodies(site: Site) -> list[bytes]:
    """Return all bodies, the last first."""
    found = [site.read_body(each, 1 << 20).content for _, each in sorted(site.resources.items(), reverse=True)]
    assert [hashlib.sha1(each, usedforsecurity=False).digest() for each in found] == [
        each.digest for _, each in sorted(site.resources.items(), reverse=True)
    ]
    return found


def test_a_member_is_decompressed_once(whole: Path, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For any number and order of records; the temporary file is removed."""
    inflated = Mock(wraps=warc_site._inflate_member)
    monkeypatch.setattr(warc_site, "_inflate_member", inflated)
    site = open_site(whole)
    assert bodies(site) == [body(n) for n in reversed(range(PAGES))]
    assert inflated.call_count == 1
    assert len(list(files.glob("*/*"))) == 1
    del site
    assert list(files.iterdir()) == []


def test_a_too_long_member_is_read_from_its_beginning(
    whole: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading is slower and needs no disk space."""
    monkeypatch.setattr(warc_site, "_MAX_MEMBER_BYTES", 1 << 20)
    site = open_site(whole)
    assert bodies(site) == [body(n) for n in reversed(range(PAGES))]
    assert list(files.glob("*/*")) == []


def test_a_member_is_read_from_its_beginning_if_the_disk_is_full(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bodies are the same."""
    site = open_site(whole)
    monkeypatch.setattr(tempfile, "tempdir", "/proc/nowhere")
    assert bodies(site) == [body(n) for n in reversed(range(PAGES))]


def test_other_compressions_are_read_from_their_beginning(tmp_path: Path, files: Path) -> None:
    """A single zstd frame with all records works like gzip."""
    file = tmp_path / "a.warc"
    file.write_bytes(archive())
    subprocess.run(["zstd", "-q", str(file)], check=True)
    assert bodies(open_site(tmp_path / "a.warc.zst")) == [body(n) for n in reversed(range(PAGES))]
    assert list(files.iterdir()) == []


def test_later_damage_is_reported(whole: Path) -> None:
    """Records before the damage are readable; later ones raise errors."""
    site = open_site(whole)
    text = bytearray(whole.read_bytes())
    text[len(text) * 3 // 4 :] = zlib.compress(b"x") * 10
    whole.write_bytes(text)
    assert site.read_body(site.resources["example.com/30"], 1 << 20).content == body(30)
    with pytest.raises(ArchiveFileError):
        site.read_body(site.resources["example.com/59"], 1 << 20)
