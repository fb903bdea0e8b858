"""A disk that runs full while copies are stored: `python -m tests.recover.full_disk FOLDER SIZE` on a small one."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.recover.sample_captures import body_of, capture, copy, opened
from tests.small_disk import SUCCESS
from unlost.errors import InputError


def fill(folder: Path, size: int, make_room: Callable[[], object], said: str) -> None:
    """Store copies of a size until no more fit, see that nothing is broken, make room, and see that it goes on."""
    warcs, records = opened(folder)
    assert records == []

    def store_many() -> None:
        while len(records) < 10_000:
            of = capture(len(records), mime="image/png")
            records.append(warcs.store(copy(os.urandom(size), of=of), None))

    with pytest.raises(InputError, match=said):
        store_many()
    assert records
    (file,) = folder.iterdir()
    assert file.stat().st_size == records[-1].offset + records[-1].size
    with pytest.raises(InputError, match=said):
        warcs.store(copy(os.urandom(size), of=capture(mime="image/png")), None)
    assert opened(folder)[1] == records
    make_room()
    records.append(warcs.store(copy(os.urandom(size), of=capture(mime="image/png")), None))
    assert len(body_of(warcs, records[-1])) == size
    warcs.close()
    assert opened(folder)[1] == records


if __name__ == "__main__":
    place, wanted = Path(sys.argv[1]), int(sys.argv[2])
    ballast = place / "ballast"
    ballast.write_bytes(bytes(2_000_000))
    fill(place / "warc", wanted, ballast.unlink, "no room on the disk: make some")
    print(SUCCESS, end="")
