"""Tests of cost estimates."""

import asyncio
from dataclasses import replace
from pathlib import Path

from tests.recovery.stub_archive import Held, Stub
from tests.virtual_clock import VirtualClock
from unlost.recovery import ArchiveCost, RecoverOptions, RecoveryScheduler, WarcStore
from unlost.recovery.state import RecoveryState
from unlost.registry import RateLimit, RequestKind

SITE = "http://lost.example/"


def costs(folder: Path, *archives: Stub) -> list[ArchiveCost]:
    """Return the estimated costs of a recovery from these archives, with full use of their limits."""

    async def estimate() -> list[ArchiveCost]:
        clock = VirtualClock()
        with RecoveryState(folder) as state:
            warcs = WarcStore(folder / "warc", clock, "test")
            repositories = {stub.archive.id: stub for stub in archives}
            recovery = RecoveryScheduler(RecoverOptions(SITE), state, warcs, repositories, clock, lambda *_: None)
            try:
                return (await recovery.estimate_costs(1.0))[0]
            finally:
                warcs.close()

    return asyncio.run(estimate())


def test_equal_payloads_cost_one_request(tmp_path: Path) -> None:
    """Errors cost nothing, and the estimate itself only lists."""
    same = Held(f"{SITE}1", "20140101000000", b"same"), Held(f"{SITE}2", "20140101000000", b"same")
    a = Stub("a", [*same, Held(SITE, "20140101000000", b"home"), Held(f"{SITE}gone", "20140101000000", status=404)])
    assert costs(tmp_path, a) == [ArchiveCost("a", 0, 2, 0, 0.0)]
    assert [request.split()[0] for request in a.requests] == ["list"]


def test_days_are_estimated_from_daily_limit(tmp_path: Path) -> None:
    """The number of requests is divided by the daily limit and rounded up."""
    a = Stub("a", [Held(f"{SITE}{number}", "20140101000000", str(number).encode()) for number in range(25)])
    a.archive = replace(a.archive, quotas=(RateLimit(10, 86_400, (RequestKind.REPLAY,), "what the test says"),))
    assert costs(tmp_path, a) == [ArchiveCost("a", 0, 25, 3, 0.0)]
