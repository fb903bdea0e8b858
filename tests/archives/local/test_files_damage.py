"""Whatever is in an archive file, its captures are served or refused by name."""

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


async def _served(folder: Path) -> tuple[int, int]:
    """Return how many captures were listed, and how many of them were copies."""
    here = files(folder, max_bytes=1 << 16)
    found = [capture for tld in ("com", "org") async for capture in here.list_prefix(f"*.{tld}")]
    copies = 0
    for capture in found:
        try:
            copy = await here.fetch(capture)
        except FailedError:
            continue
        assert copy is not None
        assert (copy.capture.uri, copy.capture.datetime) == (capture.uri, capture.datetime)
        copy.body.close()
        copies += 1
    await here.problems()
    return len(found), copies


@settings(max_examples=60)
@given(warcs.damaged_files())
def test_any_damage_is_handled(data: bytes) -> None:
    """A file that was cut or changed anywhere is listed as far as it can be, and each capture is a copy or an error."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.warc.gz").write_bytes(data)
        found, copies = asyncio.run(_served(Path(folder)))
        assert copies <= found


def test_intact_files_are_served_completely() -> None:
    """The check above would see copies if there are any."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.warc").write_bytes(b"".join(warcs.record(number=number) for number in range(3)))
        assert asyncio.run(_served(Path(folder))) == (3, 3)
