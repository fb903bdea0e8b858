"""When the next round of a recovery starts, and when it is complete."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tests.jobs.in_memory_store import ORDER
from tests.virtual_clock import VirtualClock
from unlost.http import Suspension
from unlost.jobs import Job, JobFolders, JobProgress, JobRunner, JobState, WorkerContext, summarize_open_issues
from unlost.recovery import RecoveryRunResult
from unlost.recovery.state import ResourceStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from unlost.http import ArchiveHttpClient
    from unlost.jobs import JobStore

NOW = 1_700_000_000.0


def work(rounds: int, before: int, recovered: int) -> JobRunner:
    """Return a job runner after one round, with the resources recovered before and now."""
    clock = VirtualClock(NOW)
    tools = WorkerContext(
        cast("JobStore", None),
        JobFolders(Path("/nonexistent")),
        {},
        cast("Callable[[float], ArchiveHttpClient]", None),
        clock,
        round_pause_seconds=600,
    )
    job = Job(1, ORDER, JobState.PROCESSING, NOW, NOW, rounds=rounds, progress=JobProgress(before))
    found = JobRunner(tools, job)
    found._progress = JobProgress(recovered)
    return found


def result(
    failed: int = 0,
    closed: dict[str, Suspension] | None = None,
    unlisted: dict[str, str] | None = None,
    queued: int = 0,
) -> RecoveryRunResult:
    """Return the result of a round."""
    counts = dict.fromkeys(ResourceStatus, 0) | {ResourceStatus.QUEUED: queued}
    return RecoveryRunResult(
        counts, closed or {}, unlisted or {}, failed, {}, is_stopped=False, has_reached_limit=False
    )


QUOTA = {"a": Suspension(NOW + 9_000, "quota", "its quota of the day is used up")}


def test_finished_recovery_has_no_further_round() -> None:
    """No further round is scheduled."""
    assert work(0, 0, 5)._next_round_time(result()) is None


def test_next_round_starts_when_an_archive_is_available() -> None:
    """The job waits until the first archive is available; if others failed, only for the pause."""
    assert work(0, 0, 5)._next_round_time(result(closed=QUOTA, queued=3)) == NOW + 9_000
    assert work(0, 0, 5)._next_round_time(result(closed=QUOTA, queued=3, failed=1)) == NOW + 600
    assert work(0, 0, 5)._next_round_time(result(unlisted={"b": "no"})) == NOW + 600


def test_failed_resources_do_not_delay_the_offer() -> None:
    """Recovered resources are offered despite failures, but not while many were not yet requested."""

    def is_offered(recovered: int, queued: int, **more: Any) -> bool:  # noqa: ANN401  as `result` has them
        found = work(0, 0, recovered)
        found._progress = JobProgress(recovered, 0, queued)
        return found._can_offer(result(queued=queued, **more))

    assert is_offered(3, 1, failed=1)
    assert is_offered(1, 9, failed=9)
    assert is_offered(9, 1, closed=QUOTA)
    assert not is_offered(8, 2, closed=QUOTA)
    assert is_offered(8, 2, closed=QUOTA, failed=1)
    assert not is_offered(0, 1, failed=1), "there is nothing to offer"


def test_recovery_ends_after_three_rounds_without_progress() -> None:
    """The remaining failures are reported; new resources reset the counter."""
    failing = result(failed=2, unlisted={"b": "no"})
    assert work(1, 5, 5)._next_round_time(failing) == NOW + 600
    assert work(2, 5, 5)._next_round_time(failing) is None
    assert work(2, 5, 6)._next_round_time(failing) == NOW + 600
    assert summarize_open_issues(failing) == "b: incomplete listing; 2 resources missing because archives failed"
    assert summarize_open_issues(result(closed=QUOTA)) == "a: queries not completed"
