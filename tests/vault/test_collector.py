"""Collecting blocks from archives that fail."""

import asyncio
from dataclasses import replace

from tests.recovery.recovery_runner import page
from tests.recovery.stub_archive import Stub
from unlost.errors import FailedError
from unlost.http import POLICIES
from unlost.vault import BlockCollector, collect_from_archive


def test_failing_archive_is_skipped_after_its_failures() -> None:
    """As `POLICIES["vault"]` says: after consecutive failures; a capture in between resets the count."""
    failures = POLICIES["vault"].failures
    names = [f"{number:02}.html" for number in range(30)]
    held = [replace(page(name), mime="text/html") for name in names]
    site = held[0].uri.removesuffix(names[0])
    archive = Stub("a", held)

    def fail(request: str) -> None:
        if request.startswith("fetch") and len(archive.fetched) != failures:
            raise FailedError("no", "a", "timeout")

    def collect() -> str | None:
        return asyncio.run(
            collect_from_archive("a", archive, site, [f"/{name}" for name in names], 1, BlockCollector())
        )

    archive.before = fail
    assert collect() == f"{2 * failures - 1} copies not had: no"
    assert len(archive.fetched) == 2 * failures
    archive.before = lambda _: None
    assert collect() is None
    assert len(archive.fetched) == 2 * failures + len(names)
