"""Whether archives answer: what each of them says, and that none keeps the others waiting."""

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
    """Return an archive with a host of its own."""
    return Archive(name, name, ArchiveKind.MEMENTO, timemap=f"http://{name}.example/timemap/")


class Answering:
    """An HTTP client that has a way to answer for each archive's TimeMaps; their home pages are empty."""

    def __init__(self, **ways: Callable[[], Awaitable[HttpResponse]]) -> None:
        self._ways = ways

    async def send(self, archive: Archive, question: HttpRequest) -> HttpResponse:
        """Answer."""
        return await self._ways[archive.id]() if "timemap" in question.url else reply(question.url)


def probes(**ways: Callable[[], Awaitable[HttpResponse]]) -> list[ProbeResult]:
    """Return what came of asking archives that answer in these ways, in the order in which they were done."""

    async def ask() -> list[ProbeResult]:
        found = probe_archives(map(archive, ways), Answering(**ways), PAGE, VirtualClock(), 0.2)
        return [probe async for probe in found]

    return asyncio.run(ask())


async def empty() -> HttpResponse:
    """Answer that nothing is held."""
    return reply("http://a.example/timemap/x", status=404)


async def hang() -> HttpResponse:
    """Never answer."""
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
    """With the words of the error beside it."""

    async def fail() -> HttpResponse:
        raise error

    (probe,) = probes(a=fail)
    assert (probe.outcome, probe.has_answered, probe.message) == (outcome, answered, str(error))


def test_too_long_timemap_is_a_response() -> None:
    """The archive is there, and holds more than a test wants to know."""

    async def endless() -> HttpResponse:
        raise FailedError("more than 16 MB", "a", "too-large")

    (probe,) = probes(a=endless)
    assert (probe.outcome, probe.capture_count, probe.has_more, probe.has_answered) == ("answered", 0, True, True)


def test_hanging_archive_delays_no_other() -> None:
    """All are asked at once, and those that answer are told first."""
    found = probes(a=hang, b=empty, c=hang, d=empty)
    assert [probe.archive.id for probe in found[:2]] == ["b", "d"]
    outcomes = {probe.archive.id: probe.outcome for probe in found}
    assert outcomes == {"a": "timeout", "b": "answered", "c": "timeout", "d": "answered"}


def test_local_failure_is_raised() -> None:
    """A full disk is not reported as an archive that does not answer; nobody is left waiting for."""

    async def full() -> HttpResponse:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        probes(a=hang, b=full)
