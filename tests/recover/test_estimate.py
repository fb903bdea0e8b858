"""Tests of what a recovery would cost."""

import asyncio
from dataclasses import replace
from pathlib import Path

from tests.recover.stubs import Held, Stub
from tests.virtual_clock import VirtualClock
from unlost.recover import ArchiveCost, RecoverOptions, RecoveryScheduler, WarcStore
from unlost.recover.state import RecoveryState
from unlost.registry import RateLimit, RequestKind

SITE = "http://lost.example/"


def costs(folder: Path, *archives: Stub) -> list[ArchiveCost]:
    """Return what a recovery from these would cost, with all of their limits used."""

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


def test_each_payload_costs_one_request(tmp_path: Path) -> None:
    """Of what has a good capture; errors cost none, and nothing but lists was asked for."""
    same = Held(f"{SITE}1", "20140101000000", b"same"), Held(f"{SITE}2", "20140101000000", b"same")
    a = Stub("a", [*same, Held(SITE, "20140101000000", b"home"), Held(f"{SITE}gone", "20140101000000", status=404)])
    assert costs(tmp_path, a) == [ArchiveCost("a", 0, 2, 0, 0.0)]
    assert [question.split()[0] for question in a.asked] == ["list"]


def test_days_are_those_of_the_daily_limit(tmp_path: Path) -> None:
    """All that is left, divided by what a day allows, each begun day whole."""
    a = Stub("a", [Held(f"{SITE}{number}", "20140101000000", str(number).encode()) for number in range(25)])
    a.archive = replace(a.archive, quotas=(RateLimit(10, 86_400, (RequestKind.REPLAY,), "what the test says"),))
    assert costs(tmp_path, a) == [ArchiveCost("a", 0, 25, 3, 0.0)]
