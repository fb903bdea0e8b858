"""Status of archives, as reported by a complete service."""

import asyncio
from pathlib import Path
from typing import Any, cast

from tests.external.process import free_port
from unlost.aggregate import describe_archives
from unlost.clock import SystemClock
from unlost.registry import Archive, ArchiveKind, RateLimit, RequestKind
from unlost.web import ServiceOptions, build_service

PAGE = "http://example.com/"


def statuses_of(tmp_path: Path, *archives: Archive, pages: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Return the descriptions of the archives after some look-ups."""

    async def run() -> list[dict[str, Any]]:
        options = ServiceOptions(
            archives, tmp_path / "state", tmp_path / "cache", on_message=lambda _: None, contact="me@a.example"
        )
        async with build_service(options) as parts:
            for page in pages:
                await parts.finder.find(page)
            found = describe_archives(parts.archive_status.archive_statuses(), SystemClock())
            return cast("list[dict[str, Any]]", found["archives"])

    return asyncio.run(run())


def test_map_without_date_is_reported(tmp_path: Path) -> None:
    """The map is in use, although its date is unknown."""
    file = tmp_path / "a.ukvs"
    file.write_bytes(b'!context ["https://git.io/mementomap"]\n!meta {"rules": "wayback"}\ncom,example)/ 1\n')
    archive = Archive("a", "A", ArchiveKind.MEMENTO, timemap="http://a.example/", mementomap=str(file))
    without = Archive("b", "B", ArchiveKind.MEMENTO, timemap="http://b.example/")
    first, second = statuses_of(tmp_path, archive, without)
    assert first["why"] == "routed by its map"
    assert (first["map"]["made"], first["map"]["age_seconds"]) == (None, None)
    assert first["map"]["checked"]
    assert (second["why"], second["map"]) == ("no map: routed by hit rate", None)


def test_suspended_archive_is_reported_with_the_reason(tmp_path: Path) -> None:
    """An archive whose rate limit is exhausted is reported, although its circuit is closed."""
    limits = (RateLimit(1000, 1, (RequestKind.INDEX,), "the test"),)
    archive = Archive("a", "A", ArchiveKind.MEMENTO, timemap=f"http://127.0.0.1:{free_port()}/", limits=limits)
    (refused,) = statuses_of(tmp_path / "one", archive, pages=(PAGE,))
    assert "refused" in refused["last_failure"]
    (waiting,) = statuses_of(tmp_path / "two", archive, pages=(PAGE, f"{PAGE}2"))
    assert waiting["last_failure"].startswith("not-now: ")
    assert waiting["last_failure"].endswith(": it refused a connection")
