"""Exports to a full disk: `python -m tests.export.full_disk PATH [RECOVERY]`."""

import errno
import os
import sys
from io import BytesIO
from pathlib import Path

import pytest

from tests.small_disk import SUCCESS_OUTPUT
from unlost.export import open_target, write_wacz, write_warc


def assert_full_disk_is_reported(path: Path, recovery: Path | None, error: int, size: int = 300_000) -> None:
    """Export to a path until the disk is full; assert that nothing is left and the error names the file."""

    def export() -> None:
        if recovery is not None:
            (write_wacz if path.suffix == ".wacz" else write_warc)(recovery, path)
            return
        with open_target(path) as target:
            for number in range(100):
                target.add(f"{number}/page.html", BytesIO(os.urandom(size)), "20110101000000")

    with pytest.raises(OSError, match=path.name) as raised:
        export()
    assert raised.value.errno == error
    assert raised.value.filename is not None
    assert str(raised.value.filename).startswith(str(path))
    assert [file.name for file in path.parent.iterdir()] == []


if __name__ == "__main__":
    assert_full_disk_is_reported(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None, errno.ENOSPC)
    print(SUCCESS_OUTPUT, end="")
