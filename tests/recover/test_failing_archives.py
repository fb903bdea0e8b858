"""Archives that fail, have no more to give, or list nothing: the rest comes all the same."""

from pathlib import Path

from tests.recover.running import SITE, Run, page
from tests.recover.stubs import Stub
from unlost.capture import Capture
from unlost.errors import ExcludedError, FailedError, ListCutError, NotNowError
from unlost.recover.state import ResourceStatus


def test_a_better_copy_that_failed_is_asked_for_again(tmp_path: Path) -> None:
    """The older one that came in its place is kept, and no longer the one that counts; what is new changes nothing."""
    a = Stub("a", [page("", date="20150101000000"), page("", date="20140101000000", body=b"<p>older")])

    def fail(question: str) -> None:
        if question.startswith("fetch 2015"):
            raise FailedError("timeout", "a", "timeout")

    a.before = fail
    run = Run(tmp_path, a)
    run()
    assert run.outcome() == {"": "a 20140101000000"}
    a.held.append(page("", date="20200101000000"))
    a.before = lambda _: None
    run()
    assert run.outcome() == {"": "a 20150101000000"}
    a.asked.clear()
    run()
    assert run.outcome() == {"": "a 20150101000000"}
    assert a.fetched == []


def test_a_page_that_is_never_there_is_given_up(tmp_path: Path) -> None:
    """However many captures of it an archive lists: after twenty it is missing."""
    a = Stub("a", [page("", date=f"{year}0101000000", digest="") for year in range(1950, 2050)])
    asked: list[str] = []

    async def nothing(capture: Capture) -> None:
        asked.append(capture.datetime)

    a.fetch = nothing  # type: ignore[method-assign]
    run = Run(tmp_path, a)
    run()
    assert run.outcome() == {"": None}
    assert asked == [f"{year}0101000000" for year in range(2049, 2029, -1)]


def test_an_archive_whose_limit_is_used_up_keeps_nobody_waiting(tmp_path: Path) -> None:
    """The others go on, and the command says until when; with until_done it waits, and ends."""
    a = Stub("a", [page("", "one", "two"), page("two")])
    b = Stub("b", [page("one", "three"), page("three")])
    run = Run(tmp_path, a, b)
    until = run.clock.now() + 7200

    def used_up(question: str) -> None:
        if question.endswith("two") and run.clock.now() < until:
            raise NotNowError("used up", "a", until, "quota")

    a.before = used_up
    result = run()
    assert run.outcome().keys() == {"", "one", "three"}
    assert (result.is_done, result.suspended["a"].until, result.counts[ResourceStatus.QUEUED]) == (False, until, 1)
    assert run.told("waiting") == [{"archive": "a", "until": until, "reason": "quota"}]
    assert run(until_done=True).is_done
    assert run.clock.now() >= until
    assert run.outcome().keys() == {"", "one", "three", "two"}


def test_the_same_bytes_come_from_another_archive_meanwhile(tmp_path: Path) -> None:
    """Where one is closed and another has a capture with the same digest, that one is asked."""
    a = Stub("a", [page("", "one"), page("one", date="20150101000000")])
    b = Stub("b", [page("one")])

    def closed(question: str) -> None:
        if question.endswith("one"):
            raise NotNowError("used up", "a", 2e9, "quota")

    a.before = closed
    run = Run(tmp_path, a, b)
    assert run().is_done
    assert run.outcome()["one"] == "b 20140101000000"


def test_a_dead_archive_spoils_nothing(tmp_path: Path) -> None:
    """Where a list fails, the others' pages come back, nothing is asked page by page, and there is more to do."""

    def refuse(_: str) -> None:
        raise FailedError("no connection", "a", "connection")

    a = Stub("a", [page("")])
    a.before = refuse
    b = Stub("b", [page("", "none")])
    run = Run(tmp_path, a, b)
    result = run()
    assert (result.is_done, list(result.unlisted)) == (False, ["a"])
    assert run.outcome() == {"": "b 20140101000000"}  # what nobody else has, it may have
    assert result.counts[ResourceStatus.QUEUED] == 3  # that page, and where sitemaps may be
    assert len(a.asked) == 1
    a.before = lambda _: None
    assert run().is_done
    assert run.outcome()["none"] is None


def test_an_archive_that_always_fails_is_left_alone(tmp_path: Path) -> None:
    """After five failures in a row nothing more is asked of it in this run."""
    pages = [page(str(number)) for number in range(50)]
    a = Stub("a", [page("", *map(str, range(50))), *pages])

    def fail(question: str) -> None:
        if question.startswith("fetch") and not question.endswith("/"):
            raise FailedError("timeout", "a", "timeout")

    a.before = fail
    run = Run(tmp_path, a)
    result = run(connections=2)
    assert 5 <= len(a.fetched) - 1 <= 7
    assert result.suspended["a"].reason == "failing"


def test_an_archive_without_lists_is_asked_for_what_nobody_lists(tmp_path: Path) -> None:
    """One question for its captures, and one for the copy; what others list is not asked for there."""
    a = Stub("a", [page("", "one", "two"), page("one")])
    b = Stub("b", [page("one"), page("two")], lister=False)
    run = Run(tmp_path, a, b)
    assert run().is_done
    assert run.outcome()["two"] == "b 20140101000000"
    asked = [question for question in b.asked if "robots" not in question and "sitemap" not in question]
    assert asked == [f"captures {SITE}two", f"fetch 20140101000000 {SITE}two"]


def test_a_list_that_is_cut_is_no_proof(tmp_path: Path) -> None:
    """What it does not have is asked for."""
    a = Stub("a", [page("", "one")], error=ListCutError("at its cap", "a"))
    b = Stub("b", [page("one")], lister=False)
    run = Run(tmp_path, a, b)
    run()
    assert f"captures {SITE}one" in a.asked
    assert run.outcome()["one"] == "b 20140101000000"


def test_an_archive_that_does_not_show_the_site_is_not_asked_again(tmp_path: Path) -> None:
    """And the recovery is done without it."""
    a = Stub("a", [], error=ExcludedError("does not show it", "a"))
    b = Stub("b", [page("", "none")])
    run = Run(tmp_path, a, b)
    assert run().is_done
    assert a.asked == ["list http://lost.example"]
