"""Tests of a recovery that goes on when something has changed meanwhile: lists, archives, files, the plan."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.recover.running import SITE, Run, page
from tests.recover.stubs import Held, Stub
from unlost.capture import Capture
from unlost.errors import FailedError, NotNowError, UsageError
from unlost.recover import RecoverPolicy, scheduler
from unlost.recover.state import RecoveryState


def test_a_list_that_was_put_off_is_waited_for(tmp_path: Path) -> None:
    """With until_done, an archive that could not be asked for its list is asked for it later, and for what it has."""
    looked_for = [Held(SITE + name, "20140101000000", b"#", "text/plain") for name in ("robots.txt", "sitemap.xml")]
    a, b = Stub("a", [page("", "one"), page("one"), *looked_for]), Stub("b", [page("two")])
    run = Run(tmp_path, a, b, policy=RecoverPolicy.EXHAUSTIVE)
    opens = run.clock.now() + 3600

    def wait(_: str) -> None:
        if run.clock.now() < opens:
            raise NotNowError("its quota is used up", "b", opens, "quota")

    b.before = wait
    assert run(until_done=True).is_done
    assert run.outcome().keys() == {"", "one", "two"}


def test_a_list_that_is_no_longer_wanted_keeps_nobody_waiting(tmp_path: Path) -> None:
    """Without lists, that one failed before does not matter any more."""
    run = Run(tmp_path, Stub("a", [page("")], error=FailedError("timeout", "a", "timeout")))
    assert run().unlisted == {"a": "timeout"}
    run.plan = run.planned(policy=RecoverPolicy.NAIVE)
    assert run().is_done


def test_an_archive_that_takes_no_part_any_more_is_not_asked(tmp_path: Path) -> None:
    """What it listed before is taken from the others, as far as they have it."""
    a, b = (
        Stub("a", [page("", "one", "two"), page("one")]),
        Stub("b", [page("one", date="20150101000000"), page("two")]),
    )
    run = Run(tmp_path, a, b, limit=1)
    run()
    run.plan, run.archives = run.planned(), (a,)
    assert run().is_done
    assert run.outcome() == {"": "a 20140101000000", "one": "a 20140101000000", "two": None}
    run.archives = (a, b)
    run()
    assert run.outcome()["two"] == "b 20140101000000"


def test_a_redirect_may_be_relative(tmp_path: Path) -> None:
    """It leads from its own address, as it did in browsers."""
    moved = Held(f"{SITE}a/old", "20140101000000", b"moved", status=301, redirect=" ../new")
    run = Run(tmp_path, Stub("a", [page("", "a/old"), moved, page("new")]))
    run()
    assert run.outcome()["new"] == "a 20140101000000"


def _cut(folder: Path, kept: int) -> None:
    """Leave so many records in the WARC, as a loss of power would."""
    with RecoveryState(folder) as state:
        end = list(state.records.all())[kept].record.offset
    file = next((folder / "warc").iterdir())
    with file.open("r+b") as opened:
        opened.truncate(end)
    file.rename(f"{file}.open")


def test_what_a_loss_of_power_took_is_asked_for_again(tmp_path: Path) -> None:
    """It is said, and fetched once more; what is still there is not."""
    a = Stub("a", [page("", "one"), page("one")])
    run = Run(tmp_path, a)
    run()
    _cut(tmp_path, 1)
    a.asked.clear()
    assert run().is_done
    assert len(run.told("lost")) == 1
    assert a.fetched == [f"{SITE}one"]
    assert run.outcome()["one"] == "a 20140101000000"


def test_a_limit_counts_what_is_looked_at_again_once(tmp_path: Path) -> None:
    """Every version is looked for again in each run; the limit is of resources all the same."""
    a = Stub("a", [page("", *map(str, range(9))), *(page(str(number)) for number in range(9))])
    run = Run(tmp_path, a, limit=3, all_versions=True)
    run()
    run.plan = run.planned(limit=5, all_versions=True)
    run()
    assert len(run.outcome()) == 5


@pytest.mark.parametrize("seconds", [0.05, 3600.0])
def test_nobody_waits_for_a_list_when_there_is_enough(
    seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An endless list ends with the run, or when somebody stops it; the next one asks for it again."""
    monkeypatch.setattr(scheduler, "_POLL_SECONDS", 0.05)
    asked: list[str] = []

    class Endless(Stub):
        async def list_prefix(
            self, prefix: str, first: str | None = None, last: str | None = None
        ) -> AsyncIterator[Capture]:
            asked.append(f"{prefix} {first} {last}")
            await asyncio.Event().wait()
            yield self._capture(self.held[0])

    monkeypatch.setattr(scheduler.RecoveryScheduler._query_listings, "__defaults__", (seconds,))
    run = Run(tmp_path, Stub("a", [page("", "one"), page("one")]), Endless("b", [page("")]), limit=1)
    result = run(should_stop=lambda: seconds > 1 and bool(asked))
    assert result.is_stopped is (seconds > 1)
    assert result.is_stopped or run.outcome().keys() == {""}
    run.plan = run.planned(limit=2)
    run(should_stop=lambda: seconds > 1 and len(asked) > 1)
    assert len(asked) == 2


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
def test_another_scope_counts_from_the_beginning(
    before: dict[str, Any], after: dict[str, Any], found: set[str], tmp_path: Path
) -> None:
    """What was recovered stays, and is not asked for again; of the rest, what is wanted now is."""
    a = Stub("a", NUMBERS)
    run = Run(tmp_path, a, **before)
    run()
    run.plan = run.planned(**after)
    run()
    assert {path for path, copy in run.outcome().items() if copy} == found
    assert len(a.fetched) == len(found)


def test_another_scope_counts_also_after_a_stop(tmp_path: Path) -> None:
    """What was not looked at again before somebody stopped it is looked at by the next run."""
    run = Run(tmp_path, Stub("a", NUMBERS), depth=0)
    run()
    run.plan = run.planned()
    run(should_stop=lambda: True)
    assert run().is_done
    assert {path for path, copy in run.outcome().items() if copy} == {"", "far", *"012345678"}


@pytest.mark.parametrize("kept", [1, 2, 5])
def test_adopted_pages_lead_as_far_as_others(kept: int, tmp_path: Path) -> None:
    """How far a page is from the beginning is not in its WARC: it is seen from the links."""
    run = Run(tmp_path, Stub("a", NUMBERS), depth=1)
    run()
    found = run.outcome()
    _cut(tmp_path, kept)
    for file in tmp_path.glob("state.sqlite*"):
        file.unlink()
    run()
    assert run.outcome() == found


def test_letter_case_counts_or_not_from_the_beginning(tmp_path: Path) -> None:
    """Names that were made with another rule are not mixed with new ones."""
    run = Run(tmp_path, Stub("a", NUMBERS))
    run()
    run.plan = run.planned(ignore_case=True)
    with pytest.raises(UsageError, match="--ignore-case"):
        run()


def test_many_that_are_the_same_hide_nobody(tmp_path: Path) -> None:
    """Each archive is asked once for bytes that only its own index vouches for, however many have them."""
    digest = "blake3:" + "A" * 32  # which nobody here can compute
    names = [str(number) for number in range(12)]
    a = Stub("a", [page("", *names, *(f"{name}b" for name in names))])
    a.held += [Held(SITE + name, "20140101000000", b"same", digest=digest) for name in names]
    b = Stub("b", [Held(f"{SITE}{name}b", "20140101000000", b"same", digest=digest) for name in names])
    run = Run(tmp_path, a)
    run()
    run.archives = (a, b)
    run()
    assert (len(a.fetched), len(b.fetched)) == (2, 1)


def test_what_always_fails_hides_nothing_new(tmp_path: Path) -> None:
    """It is tried again alone; when that fails, too, the next run asks what archives have gained."""
    a = Stub("a", [page("", "one", "two"), page("one")])

    def fail(question: str) -> None:
        if question.startswith("fetch") and question.endswith("one"):
            raise FailedError("damaged", "a", "malformed")

    a.before = fail
    run = Run(tmp_path, a)
    asked = []
    for _ in range(4):
        a.asked.clear()
        assert not run().is_done
        asked.append(sum(question.startswith("list") for question in a.asked))
        a.held.append(page("two"))
    assert asked == [1, 0, 1, 0]
    assert run.outcome()["two"] == "a 20140101000000"


def test_that_an_archive_is_closed_is_said_once(tmp_path: Path) -> None:
    """However many questions were on their way, and whatever each was told."""
    names = [str(number) for number in range(9)]
    a = Stub("a", [page("", *names), *map(page, names)])
    run = Run(tmp_path, a)
    opens = run.clock.now() + 100

    def wait(question: str) -> None:
        if question[-1].isdigit() and run.clock.now() < opens:
            raise NotNowError("slower", "a", opens + int(question[-1]), "rate")

    a.before = wait
    assert not run().is_done
    assert len(run.told("waiting")) == 1
    assert run(until_done=True).is_done
