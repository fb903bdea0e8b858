"""Stores captures until a disk is full: `python -m tests.recovery.full_disk FOLDER SIZE` on a small one."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.recovery.sample_captures import body_of, capture, make_fetched_capture, open_store
from tests.small_disk import SUCCESS_OUTPUT
from unlost.errors import InputError


def assert_full_disk_is_survived(folder: Path, size: int, free_space: Callable[[], object], message: str) -> None:
    """Store captures until no more fit, check that the WARC is valid, free space, and store another one."""
    warcs, records = open_store(folder)
    assert records == []

    def store_many() -> None:
        while len(records) < 10_000:
            of = capture(len(records), mime="image/png")
            records.append(warcs.store(make_fetched_capture(os.urandom(size), of=of), None))

    with pytest.raises(InputError, match=message):
        store_many()
    assert records
    (file,) = folder.iterdir()
    assert file.stat().st_size == records[-1].offset + records[-1].size
    with pytest.raises(InputError, match=message):
        warcs.store(make_fetched_capture(os.urandom(size), of=capture(mime="image/png")), None)
    assert open_store(folder)[1] == records
    free_space()
    records.append(warcs.store(make_fetched_capture(os.urandom(size), of=capture(mime="image/png")), None))
    assert len(body_of(warcs, records[-1])) == size
    warcs.close()
    assert open_store(folder)[1] == records


if __name__ == "__main__":
    disk, size = Path(sys.argv[1]), int(sys.argv[2])
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(2_000_000))
    assert_full_disk_is_survived(disk / "warc", size, ballast.unlink, "no room on the disk: make some")
    print(SUCCESS_OUTPUT, end="")
