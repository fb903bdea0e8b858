"""Captures of damaged archive files are served or rejected with an archive error."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.archives.archive_files import files
from tests.warc import warcs
from unlost.errors import FailedError


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNLOST_HOME", str(tmp_path / "home"))


async def count_served(folder: Path) -> tuple[int, int]:
    """Return the number of listed captures, and of those that were fetched."""
    here = files(folder, max_bytes=1 << 16)
    results = [capture for tld in ("com", "org") async for capture in here.list_prefix(f"*.{tld}")]
    fetched_captures = 0
    for capture in results:
        try:
            fetched = await here.fetch(capture)
        except FailedError:
            continue
        assert fetched is not None
        assert (fetched.capture.uri, fetched.capture.datetime) == (capture.uri, capture.datetime)
        fetched.body.close()
        fetched_captures += 1
    await here.problems()
    return len(results), fetched_captures


@settings(max_examples=60)
@given(warcs.damaged_files())
def test_any_damage_is_handled(data: bytes) -> None:
    """A damaged file is listed as far as possible, and each capture is fetched or raises an error."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.warc.gz").write_bytes(data)
        results, fetched_captures = asyncio.run(count_served(Path(folder)))
        assert fetched_captures <= results


def test_intact_files_are_served_completely() -> None:
    """The helper of the test above counts intact captures."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.warc").write_bytes(b"".join(warcs.record(number=number) for number in range(3)))
        assert asyncio.run(count_served(Path(folder))) == (3, 3)
