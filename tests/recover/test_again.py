"""Tests of a recovery that goes on when something has changed meanwhile: lists, archives, files, the plan."""

from pathlib import Path

from tests.recover.stubs import Held, Stub
from tests.recover.test_recovery import SITE, Run, page
from unlost.errors import FailedError, NotNowError
from unlost.recover.plan import Plan, Policy


def test_a_list_that_was_put_off_is_waited_for(tmp_path: Path) -> None:
    """With until_done, an archive that could not be asked for its list is asked for it later, and for what it has."""
    looked_for = [Held(SITE + name, "20140101000000", b"#", "text/plain") for name in ("robots.txt", "sitemap.xml")]
    a, b = Stub("a", [page("", "one"), page("one"), *looked_for]), Stub("b", [page("two")])
    run = Run(tmp_path, a, b, policy=Policy.EXHAUSTIVE)
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
    run.plan = Plan(SITE, policy=Policy.NAIVE)
    assert run().is_done


def test_an_archive_that_takes_no_part_any_more_is_not_asked(tmp_path: Path) -> None:
    """What it listed before is taken from the others, as far as they have it."""
    a, b = Stub("a", [page("", "one", "two"), page("one")]), Stub("b", [page("one", date="20150101000000"), page("two")])
    run = Run(tmp_path, a, b, limit=1)
    run()
    run.plan, run.archives = Plan(SITE), (a,)
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
