"""Probing of archives: each response is reported, and no archive delays the others."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.archives.stubs import reply
from tests.virtual_clock import VirtualClock
from unlost.archives import ProbeResult, probe_archives
from unlost.errors import ArchiveError, ExcludedError, FailedError, NotNowError
from unlost.http import HttpRequest, HttpResponse
from unlost.registry import Archive, ArchiveKind

PAGE = "http://example.com/"


def archive(name: str) -> Archive:
    """Return an archive with its own host."""
    return Archive(name, name, ArchiveKind.MEMENTO, timemap=f"http://{name}.example/timemap/")


class StubHttpClient:
    """An HTTP client with one behaviour per archive for TimeMaps; home pages are empty."""

    def __init__(self, **ways: Callable[[], Awaitable[HttpResponse]]) -> None:
        self._ways = ways

    async def send(self, archive: Archive, request: HttpRequest) -> HttpResponse:
        """Return the prepared response."""
        return await self._ways[archive.id]() if "timemap" in request.url else reply(request.url)


def probes(**ways: Callable[[], Awaitable[HttpResponse]]) -> list[ProbeResult]:
    """Return the probe results of archives with these behaviours, in order of completion."""

    async def probe() -> list[ProbeResult]:
        results = probe_archives(map(archive, ways), StubHttpClient(**ways), PAGE, VirtualClock(), 0.2)
        return [each async for each in results]

    return asyncio.run(probe())


async def empty() -> HttpResponse:
    """Respond that nothing is held."""
    return reply("http://a.example/timemap/x", status=404)


async def hang() -> HttpResponse:
    """Never respond."""
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize(
    ("error", "outcome", "answered"),
    [
        (FailedError("no", "a", "refused"), "refused", False),
        (FailedError("no", "a", "tls"), "tls", False),
        (NotNowError("later", "a", 5.0, "quota"), "quota", False),
        (ExcludedError("hidden", "a"), "excluded", True),
        (ArchiveError("odd", "a"), "malformed", False),
    ],
)
def test_failure_is_reported_by_kind(error: ArchiveError, outcome: str, answered: bool) -> None:
    """The result includes the error message."""

    async def fail() -> HttpResponse:
        raise error

    (probe,) = probes(a=fail)
    assert (probe.outcome, probe.has_answered, probe.message) == (outcome, answered, str(error))


def test_too_long_timemap_is_a_response() -> None:
    """The archive is available although its TimeMap is too long."""

    async def endless() -> HttpResponse:
        raise FailedError("more than 16 MB", "a", "too-large")

    (probe,) = probes(a=endless)
    assert (probe.outcome, probe.capture_count, probe.has_more, probe.has_answered) == ("answered", 0, True, True)


def test_hanging_archive_delays_no_other() -> None:
    """All archives are probed at once, and fast ones are reported first."""
    results = probes(a=hang, b=empty, c=hang, d=empty)
    assert [probe.archive.id for probe in results[:2]] == ["b", "d"]
    outcomes = {probe.archive.id: probe.outcome for probe in results}
    assert outcomes == {"a": "timeout", "b": "answered", "c": "timeout", "d": "answered"}


def test_local_failure_is_raised() -> None:
    """A full disk is not reported as an unavailable archive, and no task remains."""

    async def full() -> HttpResponse:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        probes(a=hang, b=full)
