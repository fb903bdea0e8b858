"""Tests of a full disk: only the capture that does not fit is lost."""

import errno
import os
import resource
from pathlib import Path

import pytest

from tests.recovery.full_disk import assert_full_disk_is_survived
from tests.recovery.sample_captures import capture, make_fetched_capture, open_store
from tests.small_disk import limit_file_size, run_on_small_disk
from unlost.errors import InputError


@pytest.mark.parametrize("size", [0, 3_000, 1_200_000])
def test_file_at_its_size_limit_stays_valid(tmp_path: Path, size: int) -> None:
    """A half-written record is truncated, and writing continues when the limit is lifted."""
    with limit_file_size(60_000 + 2 * size) as _:
        unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        assert_full_disk_is_survived(
            tmp_path / "warc",
            size,
            lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (unlimited, unlimited)),
            "cannot be written: File too large",
        )


@pytest.mark.parametrize("size", [1, 100, 300])
def test_file_that_cannot_be_created_is_created_later(tmp_path: Path, size: int) -> None:
    """The first record does not fit, or only the first."""
    folder = tmp_path / "warc"
    warcs, _ = open_store(folder)
    with limit_file_size(size):
        for _ in range(2):
            with pytest.raises(InputError, match="cannot be written"):
                warcs.store(make_fetched_capture(), None)
        assert next(folder.iterdir()).stat().st_size <= size
    record = warcs.store(make_fetched_capture(), None)
    warcs.close()
    assert open_store(folder)[1] == [record]


@pytest.mark.parametrize("size", [3_000, 1_200_000])
def test_full_file_system_is_survived(tmp_path: Path, size: int) -> None:
    """On a file system of 4 MB the error names the cause, and with space again writing continues."""
    run_on_small_disk(tmp_path, "4m", "tests.recovery.full_disk", "{disk}", str(size))


@pytest.mark.parametrize("then_stored", [True, False])
def test_failed_truncation_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then_stored: bool) -> None:
    """It is repeated before the next append, or before the file gets its final name."""
    folder = tmp_path / "warc"
    warcs, _ = open_store(folder)
    records = [warcs.store(make_fetched_capture(), None)]
    size = (folder / "unlost-00001.warc.gz.open").stat().st_size

    def failing(*_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with limit_file_size(size + 100), monkeypatch.context() as broken:
        broken.setattr(os, "ftruncate", failing)
        with pytest.raises(InputError, match="Input/output error"):
            warcs.store(make_fetched_capture(os.urandom(1000), of=capture(2)), None)
    assert (folder / "unlost-00001.warc.gz.open").stat().st_size == size + 100
    if then_stored:
        records.append(warcs.store(make_fetched_capture(b"three", of=capture(3)), None))
    warcs.close()
    assert open_store(folder)[1] == records
