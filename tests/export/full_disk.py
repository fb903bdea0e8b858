"""A disk that runs full while something is exported: `python -m tests.export.full_disk PATH [RECOVERY]`."""

import errno
import os
import sys
from io import BytesIO
from pathlib import Path

import pytest

from tests.small_disk import SUCCESS
from unlost.export import open_target, write_wacz, write_warc


def fill(path: Path, recovery: Path | None, error: int, size: int = 300_000) -> None:
    """Export to a path until there is no more room, and see that nothing is left, and that the message is clear."""

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
    fill(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None, errno.ENOSPC)
    print(SUCCESS, end="")
