"""Tests of zip and tar targets: dates, compression, names and sizes."""

import io
import random
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.export.target_readers import read_target
from unlost.export import open_target

DATE = "20110203040506"


def test_incompressible_files_are_stored(tmp_path: Path) -> None:
    """The bytes decide, and not the extension."""
    noise = random.Random(1).randbytes(100_000)  # noqa: S311
    files = {"a.html": b"<p>text</p>" * 1000, "a.jpg": noise, "b.html": noise, "b.jpg": bytes(100_000), "empty": b""}
    with open_target(tmp_path / "a.zip") as target:
        for path, body in files.items():
            target.add(path, io.BytesIO(body), DATE)
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        deflated = {info.filename for info in archive.infolist() if info.compress_type == zipfile.ZIP_DEFLATED}
    assert deflated == {"a.html", "b.jpg"}
    assert {path: body for path, (body, _) in read_target(tmp_path / "a.zip").items()} == files


@pytest.mark.parametrize(
    ("modified", "zipped", "tarred"),
    [
        ("19691231235959", "19800101000000", "19700101000000"),
        ("19791231235959", "19800101000000", "19791231235959"),
        ("19800101000002", "19800101000002", "19800101000002"),
        ("20161231235960", "20161231235958", "20161231235959"),
        ("21080101000000", "21071231235958", "21080101000000"),
        ("99991231235959", "21071231235958", "99991231235959"),
    ],
)
def test_unsupported_dates_are_rounded(tmp_path: Path, modified: str, zipped: str, tarred: str) -> None:
    """The nearest supported date is used; zip has a resolution of two seconds."""
    for name, date in (("a.zip", zipped), ("a.tar.gz", tarred)):
        with open_target(tmp_path / name) as target:
            target.add("a", io.BytesIO(b"a"), modified)
        assert read_target(tmp_path / name) == {"a": (b"a", date)}


def test_utf8_names_are_flagged_in_zip(tmp_path: Path) -> None:
    """ASCII names need no flag."""
    with open_target(tmp_path / "a.zip") as target:
        target.add("plain", io.BytesIO(b""), DATE)
        target.add("gr\u00fc\u00dfe", io.BytesIO(b""), DATE)
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert [info.flag_bits & 0x800 for info in archive.infolist()] == [0, 0x800]


def test_many_files_are_written_as_zip64(tmp_path: Path) -> None:
    """65,537 files need a Zip64 directory."""
    with open_target(tmp_path / "a.zip") as target:
        for number in range((1 << 16) + 1):
            target.add(f"{number}", io.BytesIO(b""), DATE)
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert len(archive.namelist()) == (1 << 16) + 1
    assert b"PK\x06\x06" in (tmp_path / "a.zip").read_bytes()[-200:]


@pytest.mark.long
def test_file_larger_than_4_gib_is_written_as_zip64(tmp_path: Path) -> None:
    """Its size and end are correct, and those of the next file."""
    size = (1 << 32) + 5
    hole = tmp_path / "hole"
    with hole.open("wb") as file:
        file.truncate(size - 3)
        file.seek(0, io.SEEK_END)
        file.write(b"end")
    with open_target(tmp_path / "a.zip") as target, hole.open("rb") as body:
        target.add("large", body, DATE)
        target.add("next", io.BytesIO(b"next"), DATE)
    unpack = ["unzip", "-p", str(tmp_path / "a.zip")]
    with subprocess.Popen([*unpack, "large"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        count, tail = 0, b""
        while data := process.stdout.read(1 << 20):
            count, tail = count + len(data), (tail + data)[-3:]
    assert (process.returncode, count, tail) == (0, size, b"end")
    assert subprocess.run([*unpack, "next"], capture_output=True, check=True).stdout == b"next"


def test_tar_file_is_unpacked_by_gnu_tar(tmp_path: Path) -> None:
    """Long and non-ASCII names are supported."""
    names = ["a/" + "x" * 150 + "/" + "y" * 150, "gr\u00fc\u00dfe/" + "\u00e9" * 100, "short"]
    with open_target(tmp_path / "a.tgz") as target:
        for name in names:
            target.add(name, io.BytesIO(name.encode()), DATE)
    (tmp_path / "out").mkdir()
    subprocess.run(["tar", "-xzf", "a.tgz", "-C", "out"], cwd=tmp_path, check=True)
    assert {path: body.decode() for path, (body, _) in read_target(tmp_path / "out").items()} == {
        each: each for each in names
    }
