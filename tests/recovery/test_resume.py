"""Tests of resuming a recovery after listings, archives, files or options have changed."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.recovery.recovery_runner import SITE, RecoveryRunner, page
from tests.recovery.stub_archive import Held, Stub
from unlost.capture import Capture
from unlost.errors import FailedError, NotNowError, UsageError
from unlost.recovery import RecoverPolicy, scheduler
from unlost.recovery.state import RecoveryState


def test_until_done_waits_for_postponed_listing(tmp_path: Path) -> None:
    """An archive that postponed its listing is listed later, and its captures are recovered."""
    well_known = [Held(SITE + name, "20140101000000", b"#", "text/plain") for name in ("robots.txt", "sitemap.xml")]
    a, b = Stub("a", [page("", "one"), page("one"), *well_known]), Stub("b", [page("two")])
    run = RecoveryRunner(tmp_path, a, b, policy=RecoverPolicy.EXHAUSTIVE)
    opens = run.clock.now() + 3600

    def wait(_: str) -> None:
        if run.clock.now() < opens:
            raise NotNowError("its quota is used up", "b", opens, "quota")

    b.before = wait
    assert run(until_done=True).is_done
    assert run.outcome().keys() == {"", "one", "two"}


def test_failed_listing_does_not_matter_without_listings(tmp_path: Path) -> None:
    """With a policy without listings, an earlier failed listing does not count."""
    run = RecoveryRunner(tmp_path, Stub("a", [page("")], error=FailedError("timeout", "a", "timeout")))
    assert run().unlisted == {"a": "timeout"}
    run.plan = run.planned(policy=RecoverPolicy.NAIVE)
    assert run().is_done


def test_removed_archive_receives_no_requests(tmp_path: Path) -> None:
    """Its listed captures are fetched from other archives, as far as they have them."""
    a, b = (
        Stub("a", [page("", "one", "two"), page("one")]),
        Stub("b", [page("one", date="20150101000000"), page("two")]),
    )
    run = RecoveryRunner(tmp_path, a, b, limit=1)
    run()
    run.plan, run.archives = run.planned(), (a,)
    assert run().is_done
    assert run.outcome() == {"": "a 20140101000000", "one": "a 20140101000000", "two": None}
    run.archives = (a, b)
    run()
    assert run.outcome()["two"] == "b 20140101000000"


def test_relative_redirect_is_resolved(tmp_path: Path) -> None:
    """It is resolved against its own URL, as in browsers."""
    moved = Held(f"{SITE}a/old", "20140101000000", b"moved", status=301, redirect=" ../new")
    run = RecoveryRunner(tmp_path, Stub("a", [page("", "a/old"), moved, page("new")]))
    run()
    assert run.outcome()["new"] == "a 20140101000000"


def _cut(folder: Path, complete: int) -> None:
    """Truncate the WARC after some records, as a power failure would."""
    with RecoveryState(folder) as state:
        end = list(state.records.all())[complete].record.offset
    file = next((folder / "warc").iterdir())
    with file.open("r+b") as opened:
        opened.truncate(end)
    file.rename(f"{file}.open")


def test_lost_records_are_fetched_again(tmp_path: Path) -> None:
    """Records lost in a power failure are reported and fetched again; others are not."""
    a = Stub("a", [page("", "one"), page("one")])
    run = RecoveryRunner(tmp_path, a)
    run()
    _cut(tmp_path, 1)
    a.requests.clear()
    assert run().is_done
    assert len(run.events_of("lost")) == 1
    assert a.fetched == [f"{SITE}one"]
    assert run.outcome()["one"] == "a 20140101000000"


def test_limit_counts_resources_with_all_versions(tmp_path: Path) -> None:
    """Versions are checked in each run, but the limit counts resources."""
    a = Stub("a", [page("", *map(str, range(9))), *(page(str(number)) for number in range(9))])
    run = RecoveryRunner(tmp_path, a, limit=3, all_versions=True)
    run()
    run.plan = run.planned(limit=5, all_versions=True)
    run()
    assert len(run.outcome()) == 5


@pytest.mark.parametrize("seconds", [0.05, 3600.0])
def test_endless_listing_ends_with_the_run(seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An endless listing is cancelled at the limit or on a stop, and requested again by the next run."""
    monkeypatch.setattr(scheduler, "_POLL_SECONDS", 0.05)
    requested: list[str] = []

    class Endless(Stub):
        async def list_prefix(
            self, prefix: str, first: str | None = None, last: str | None = None
        ) -> AsyncIterator[Capture]:
            requested.append(f"{prefix} {first} {last}")
            await asyncio.Event().wait()
            yield self._capture(self.held[0])

    monkeypatch.setattr(scheduler.RecoveryScheduler._query_listings, "__defaults__", (seconds,))
    run = RecoveryRunner(tmp_path, Stub("a", [page("", "one"), page("one")]), Endless("b", [page("")]), limit=1)
    result = run(should_stop=lambda: seconds > 1 and bool(requested))
    assert result.is_stopped is (seconds > 1)
    assert result.is_stopped or run.outcome().keys() == {""}
    run.plan = run.planned(limit=2)
    run(should_stop=lambda: seconds > 1 and len(requested) > 1)
    assert len(requested) == 2


NUMBERS = [page("", *map(str, range(9)), "folder/"), *(page(str(number), "far") for number in range(9)), page("far")]


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"page": True}, {}, {"", "far", *"012345678"}),
        ({"depth": 0}, {"depth": 1}, {"", *"012345678"}),
        ({"exclude": ("[0-9]$",)}, {"exclude": ("[3-9]$",)}, {"", "far", *"012"}),
        ({"limit": 1}, {"exclude": ("[3-9]$",)}, {"", "far", *"012"}),
        ({"limit": 2, "policy": RecoverPolicy.EXHAUSTIVE}, {"page": True}, {"", "0"}),
        ({}, {"depth": 1, "limit": 3}, {"", "far", *"012345678"}),
    ],
)
def test_changed_scope_is_applied_to_all_resources(
    before: dict[str, Any], after: dict[str, Any], found: set[str], tmp_path: Path
) -> None:
    """Recovered resources are not requested again; newly admitted ones are."""
    a = Stub("a", NUMBERS)
    run = RecoveryRunner(tmp_path, a, **before)
    run()
    run.plan = run.planned(**after)
    run()
    assert {path for path, capture in run.outcome().items() if capture} == found
    assert len(a.fetched) == len(found)


def test_changed_scope_is_applied_after_a_stop(tmp_path: Path) -> None:
    """If a run is stopped before the scope is applied, the next run applies it."""
    run = RecoveryRunner(tmp_path, Stub("a", NUMBERS), depth=0)
    run()
    run.plan = run.planned()
    run(should_stop=lambda: True)
    assert run().is_done
    assert {path for path, capture in run.outcome().items() if capture} == {"", "far", *"012345678"}


@pytest.mark.parametrize("complete", [1, 2, 5])
def test_depth_of_adopted_pages_is_derived_from_links(complete: int, tmp_path: Path) -> None:
    """WARCs do not store the depth of a page: it is derived from the links."""
    run = RecoveryRunner(tmp_path, Stub("a", NUMBERS), depth=1)
    run()
    found = run.outcome()
    _cut(tmp_path, complete)
    for file in tmp_path.glob("state.sqlite*"):
        file.unlink()
    run()
    assert run.outcome() == found


def test_ignore_case_cannot_change_between_runs(tmp_path: Path) -> None:
    """Names of both rules are not mixed."""
    run = RecoveryRunner(tmp_path, Stub("a", NUMBERS))
    run()
    run.plan = run.planned(ignore_case=True)
    with pytest.raises(UsageError, match="--ignore-case"):
        run()


def test_unverifiable_digest_is_fetched_once_per_archive(tmp_path: Path) -> None:
    """Bytes with a digest that cannot be verified are fetched once from each archive."""
    digest = "blake3:" + "A" * 32  # which this machine cannot compute
    names = [str(number) for number in range(12)]
    a = Stub("a", [page("", *names, *(f"{name}b" for name in names))])
    a.held += [Held(SITE + name, "20140101000000", b"same", digest=digest) for name in names]
    b = Stub("b", [Held(f"{SITE}{name}b", "20140101000000", b"same", digest=digest) for name in names])
    run = RecoveryRunner(tmp_path, a)
    run()
    run.archives = (a, b)
    run()
    assert (len(a.fetched), len(b.fetched)) == (2, 1)


def test_permanent_failure_does_not_hide_new_captures(tmp_path: Path) -> None:
    """It is retried alone; if that fails, the next run lists the archives again."""
    a = Stub("a", [page("", "one", "two"), page("one")])

    def fail(request: str) -> None:
        if request.startswith("fetch") and request.endswith("one"):
            raise FailedError("damaged", "a", "malformed")

    a.before = fail
    run = RecoveryRunner(tmp_path, a)
    requested = []
    for _ in range(4):
        a.requests.clear()
        assert not run().is_done
        requested.append(sum(request.startswith("list") for request in a.requests))
        a.held.append(page("two"))
    assert requested == [1, 0, 1, 0]
    assert run.outcome()["two"] == "a 20140101000000"


def test_suspended_archive_is_reported_once(tmp_path: Path) -> None:
    """It is reported once, however many requests were in flight."""
    names = [str(number) for number in range(9)]
    a = Stub("a", [page("", *names), *map(page, names)])
    run = RecoveryRunner(tmp_path, a)
    opens = run.clock.now() + 100

    def wait(request: str) -> None:
        if request[-1].isdigit() and run.clock.now() < opens:
            raise NotNowError("slower", "a", opens + int(request[-1]), "rate")

    a.before = wait
    assert not run().is_done
    assert len(run.events_of("waiting")) == 1
    assert run(until_done=True).is_done
