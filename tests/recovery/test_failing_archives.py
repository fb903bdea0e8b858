"""Archives that fail, reach their limits or list nothing: the rest of the site is recovered."""

from pathlib import Path

from tests.recovery.recovery_runner import SITE, RecoveryRunner, page
from tests.recovery.stub_archive import Stub
from unlost.capture import Capture
from unlost.errors import ExcludedError, FailedError, ListCutError, NotNowError
from unlost.http import POLICIES
from unlost.recovery.state import ResourceStatus


def test_failed_better_capture_is_retried(tmp_path: Path) -> None:
    """The older capture is replaced once the better one can be fetched; newer captures change nothing."""
    a = Stub("a", [page("", date="20150101000000"), page("", date="20140101000000", body=b"<p>older")])

    def fail(request: str) -> None:
        if request.startswith("fetch 2015"):
            raise FailedError("timeout", "a", "timeout")

    a.before = fail
    run = RecoveryRunner(tmp_path, a)
    run()
    assert run.outcome() == {"": "a 20140101000000"}
    a.held.append(page("", date="20200101000000"))
    a.before = lambda _: None
    run()
    assert run.outcome() == {"": "a 20150101000000"}
    a.requests.clear()
    run()
    assert run.outcome() == {"": "a 20150101000000"}
    assert a.fetched == []


def test_page_without_fetchable_capture_is_missing_after_20_tries(tmp_path: Path) -> None:
    """It is missing, however many captures an archive lists."""
    a = Stub("a", [page("", date=f"{year}0101000000", digest="") for year in range(1950, 2050)])
    requested: list[str] = []

    async def nothing(capture: Capture) -> None:
        requested.append(capture.datetime)

    a.fetch = nothing  # type: ignore[method-assign]
    run = RecoveryRunner(tmp_path, a)
    run()
    assert run.outcome() == {"": None}
    assert requested == [f"{year}0101000000" for year in range(2049, 2029, -1)]


def test_exhausted_quota_suspends_only_its_archive(tmp_path: Path) -> None:
    """The other archives continue, and the time is reported; with until_done the run waits."""
    a = Stub("a", [page("", "one", "two"), page("two")])
    b = Stub("b", [page("one", "three"), page("three")])
    run = RecoveryRunner(tmp_path, a, b)
    until = run.clock.now() + 7200

    def used_up(request: str) -> None:
        if request.endswith("two") and run.clock.now() < until:
            raise NotNowError("used up", "a", until, "quota")

    a.before = used_up
    result = run()
    assert run.outcome().keys() == {"", "one", "three"}
    assert (result.is_done, result.suspended["a"].until, result.counts[ResourceStatus.QUEUED]) == (False, until, 1)
    assert run.events_of("waiting") == [{"archive": "a", "until": until, "reason": "quota"}]
    assert run(until_done=True).is_done
    assert run.clock.now() >= until
    assert run.outcome().keys() == {"", "one", "three", "two"}


def test_suspended_archive_is_replaced_by_equal_digest(tmp_path: Path) -> None:
    """If another archive has a capture with the same digest, it is fetched there."""
    a = Stub("a", [page("", "one"), page("one", date="20150101000000")])
    b = Stub("b", [page("one")])

    def closed(request: str) -> None:
        if request.endswith("one"):
            raise NotNowError("used up", "a", 2e9, "quota")

    a.before = closed
    run = RecoveryRunner(tmp_path, a, b)
    assert run().is_done
    assert run.outcome()["one"] == "b 20140101000000"


def test_unreachable_archive_does_not_affect_others(tmp_path: Path) -> None:
    """Pages of others are recovered, no single pages are requested from it, and the run is unfinished."""

    def refuse(_: str) -> None:
        raise FailedError("no connection", "a", "connection")

    a = Stub("a", [page("")])
    a.before = refuse
    b = Stub("b", [page("", "none")])
    run = RecoveryRunner(tmp_path, a, b)
    result = run()
    assert (result.is_done, list(result.unlisted)) == (False, ["a"])
    assert run.outcome() == {"": "b 20140101000000"}  # it may have what no other archive has
    assert result.counts[ResourceStatus.QUEUED] == 3  # that page, and where sitemaps may be
    assert len(a.requests) == 1
    a.before = lambda _: None
    assert run().is_done
    assert run.outcome()["none"] is None


def test_failing_archive_is_suspended_after_five_failures(tmp_path: Path) -> None:
    """It receives no more requests in this run."""
    pages = [page(str(number)) for number in range(50)]
    a = Stub("a", [page("", *map(str, range(50))), *pages])

    def fail(request: str) -> None:
        if request.startswith("fetch") and not request.endswith("/"):
            raise FailedError("timeout", "a", "timeout")

    a.before = fail
    run = RecoveryRunner(tmp_path, a)
    result = run(connections=2)
    assert 5 <= len(a.fetched) - 1 <= 7
    assert result.suspended["a"].reason == "failing"


def test_archive_without_listings_receives_lookups_of_unlisted_pages(tmp_path: Path) -> None:
    """One look-up and one fetch are sent; pages that others list are not looked up."""
    a = Stub("a", [page("", "one", "two"), page("one")])
    b = Stub("b", [page("one"), page("two")], lister=False)
    run = RecoveryRunner(tmp_path, a, b)
    assert run().is_done
    assert run.outcome()["two"] == "b 20140101000000"
    requested = [request for request in b.requests if "robots" not in request and "sitemap" not in request]
    assert requested == [f"captures {SITE}two", f"fetch 20140101000000 {SITE}two"]


def test_truncated_listing_does_not_prove_absence(tmp_path: Path) -> None:
    """Pages that it does not contain are looked up."""
    a = Stub("a", [page("", "one")], error=ListCutError("at its cap", "a"))
    b = Stub("b", [page("one")], lister=False)
    run = RecoveryRunner(tmp_path, a, b)
    run()
    assert f"captures {SITE}one" in a.requests
    assert run.outcome()["one"] == "b 20140101000000"


def test_archive_that_excludes_the_site_is_not_queried_again(tmp_path: Path) -> None:
    """The recovery is done without it."""
    a = Stub("a", [], error=ExcludedError("does not show it", "a"))
    b = Stub("b", [page("", "none")])
    run = RecoveryRunner(tmp_path, a, b)
    assert run().is_done
    assert a.requests == ["list http://lost.example"]


def test_failing_archive_is_tried_again_after_the_pause(tmp_path: Path) -> None:
    """As `POLICIES["recover"]` says: one failure suspends it again, a success resumes the recovery."""
    policy = POLICIES["recover"]
    names = [str(number) for number in range(20)]
    a = Stub("a", [page("", *names), *map(page, names)])
    failed_at: list[float] = []

    def fail(request: str) -> None:
        if request.startswith("fetch") and not request.endswith("/") and len(failed_at) < policy.failures + 1:
            failed_at.append(run.clock.now())
            raise FailedError("timeout", "a", "timeout")

    a.before = fail
    run = RecoveryRunner(tmp_path, a)
    result = run(connections=1, until_done=True)
    first, last = failed_at[0], failed_at[-1]
    assert [at - first for at in failed_at[: policy.failures]] == [0.0] * policy.failures
    assert last - first == policy.pause
    assert run.clock.now() - first == 2 * policy.pause
    assert (result.suspended, result.failed, result.counts[ResourceStatus.QUEUED]) == ({}, policy.failures + 1, 0)
