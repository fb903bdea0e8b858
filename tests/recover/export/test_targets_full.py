"""A full disk: a clear message, and nothing left of what was begun."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recover.export.full_disk import fill
from tests.recover.export.unpacked import KINDS
from tests.recover.test_warcs_full import ROOT, mounting, small_files

MOUNTED = "mount -t tmpfs -o size={} none {} && exec {} -m tests.recover.export.full_disk {} {}"
ARCHIVES = ("site.warc.gz", "site.wacz")


@pytest.mark.parametrize("size", [10, 700_000, 3_000_000])
@pytest.mark.parametrize("name", KINDS)
def test_a_file_that_may_not_grow_leaves_nothing(tmp_path: Path, name: str, size: int) -> None:
    """Wherever the limit is: in a body, between two, or in what is still to be written when all else has failed."""
    with small_files(size):
        fill(tmp_path / name, None, errno.EFBIG, 300_000 if name != "site" else size + 1)


@pytest.mark.parametrize("size", [10, 1500, 5000])
@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_file_that_may_not_grow_leaves_nothing(tmp_path: Path, recovery: Path, name: str, size: int) -> None:
    """WARC and WACZ alike."""
    with small_files(size):
        fill(tmp_path / name, recovery, errno.EFBIG)


@pytest.mark.parametrize("name", [*KINDS, *ARCHIVES])
def test_a_disk_that_is_really_full(tmp_path: Path, recovery: Path, name: str) -> None:
    """A file system with little room: the message names what did not fit, and the room is there again."""
    alone = mounting()
    if not alone:
        print("no file system of our own here: the limit of files stands for it")
        return
    place = tmp_path / "disk"
    place.mkdir()
    size, more = ("4k", recovery) if name in ARCHIVES else ("4m", "")
    command = MOUNTED.format(size, place, sys.executable, place / name, more)
    done = subprocess.run([*alone, command], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "filled\n"), done.stderr
