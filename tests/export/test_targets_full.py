"""Tests of exports to a full disk: a clear error, and no files left."""

import errno
from pathlib import Path

import pytest

from tests.export.full_disk import assert_full_disk_is_reported
from tests.export.target_readers import KINDS
from tests.small_disk import limit_file_size, run_on_small_disk

ARCHIVES = ("site.warc.gz", "site.wacz")


@pytest.mark.parametrize("size", [10, 700_000, 3_000_000])
@pytest.mark.parametrize("name", KINDS)
def test_file_size_limit_leaves_no_target(tmp_path: Path, name: str, size: int) -> None:
    """Whether the limit is reached in a body, between two, or at the end."""
    with limit_file_size(size):
        assert_full_disk_is_reported(tmp_path / name, None, errno.EFBIG, 300_000 if name != "site" else size + 1)


@pytest.mark.parametrize("size", [10, 1500, 5000])
@pytest.mark.parametrize("name", ARCHIVES)
def test_file_size_limit_leaves_no_archive_file(tmp_path: Path, recovery: Path, name: str, size: int) -> None:
    """WARC and WACZ alike."""
    with limit_file_size(size):
        assert_full_disk_is_reported(tmp_path / name, recovery, errno.EFBIG)


@pytest.mark.parametrize("name", [*KINDS, *ARCHIVES])
def test_full_file_system_is_reported(tmp_path: Path, recovery: Path, name: str) -> None:
    """The error names the file, and the space is free again."""
    size, more = ("4k", (str(recovery),)) if name in ARCHIVES else ("4m", ())
    run_on_small_disk(tmp_path, size, "tests.export.full_disk", f"{{disk}}/{name}", *more)
