"""A full disk: a clear message, and nothing left of what was begun."""

import errno
from pathlib import Path

import pytest

from tests.export.archive_readers import KINDS
from tests.export.full_disk import fill
from tests.small_disk import limit_file_size, run_on_small_disk

ARCHIVES = ("site.warc.gz", "site.wacz")


@pytest.mark.parametrize("size", [10, 700_000, 3_000_000])
@pytest.mark.parametrize("name", KINDS)
def test_a_file_that_may_not_grow_leaves_nothing(tmp_path: Path, name: str, size: int) -> None:
    """Wherever the limit is: in a body, between two, or in what is still to be written when all else has failed."""
    with limit_file_size(size):
        fill(tmp_path / name, None, errno.EFBIG, 300_000 if name != "site" else size + 1)


@pytest.mark.parametrize("size", [10, 1500, 5000])
@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_file_that_may_not_grow_leaves_nothing(tmp_path: Path, recovery: Path, name: str, size: int) -> None:
    """WARC and WACZ alike."""
    with limit_file_size(size):
        fill(tmp_path / name, recovery, errno.EFBIG)


@pytest.mark.parametrize("name", [*KINDS, *ARCHIVES])
def test_a_disk_that_is_really_full(tmp_path: Path, recovery: Path, name: str) -> None:
    """A file system with little room: the message names what did not fit, and the room is there again."""
    size, more = ("4k", (str(recovery),)) if name in ARCHIVES else ("4m", ())
    run_on_small_disk(tmp_path, size, "tests.export.full_disk", f"{{disk}}/{name}", *more)
