"""A full disk costs nothing but the copy that does not fit."""

import errno
import os
import resource
from pathlib import Path

import pytest

from tests.recover.full_disk import fill
from tests.recover.sample_captures import capture, copy, opened
from tests.small_disk import limit_file_size, run_on_small_disk
from unlost.errors import InputError


@pytest.mark.parametrize("size", [0, 3_000, 1_200_000])
def test_a_file_that_may_not_grow_is_left_whole(tmp_path: Path, size: int) -> None:
    """Also where half of a record was written: it is cut back, and goes on when it may."""
    with limit_file_size(60_000 + 2 * size) as _:
        unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        fill(
            tmp_path / "warc",
            size,
            lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (unlimited, unlimited)),
            "cannot be written: File too large",
        )


@pytest.mark.parametrize("size", [1, 100, 300])
def test_a_file_that_cannot_be_begun_is_begun_later(tmp_path: Path, size: int) -> None:
    """Not even its first record fits, or nothing behind it."""
    folder = tmp_path / "warc"
    warcs, _ = opened(folder)
    with limit_file_size(size):
        for _ in range(2):
            with pytest.raises(InputError, match="cannot be written"):
                warcs.store(copy(), None)
        assert next(folder.iterdir()).stat().st_size <= size
    record = warcs.store(copy(), None)
    warcs.close()
    assert opened(folder)[1] == [record]


@pytest.mark.parametrize("size", [3_000, 1_200_000])
def test_a_disk_that_is_really_full(tmp_path: Path, size: int) -> None:
    """A file system of 4 MB: the message says that there is no room, and when there is some, it goes on."""
    run_on_small_disk(tmp_path, "4m", "tests.recover.full_disk", "{disk}", str(size))


@pytest.mark.parametrize("then_stored", [True, False])
def test_a_disk_that_fails_while_the_rest_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then_stored: bool
) -> None:
    """What could not be cut off at once is before the next append, or before the file gets its final name."""
    folder = tmp_path / "warc"
    warcs, _ = opened(folder)
    records = [warcs.store(copy(), None)]
    size = (folder / "unlost-00001.warc.gz.open").stat().st_size

    def failing(*_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with limit_file_size(size + 100), monkeypatch.context() as broken:
        broken.setattr(os, "ftruncate", failing)
        with pytest.raises(InputError, match="Input/output error"):
            warcs.store(copy(os.urandom(1000), of=capture(2)), None)
    assert (folder / "unlost-00001.warc.gz.open").stat().st_size == size + 100
    if then_stored:
        records.append(warcs.store(copy(b"three", of=capture(3)), None))
    warcs.close()
    assert opened(folder)[1] == records
