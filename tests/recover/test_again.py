"""Tests of a recovery that goes on when something has changed meanwhile: lists, archives, files, the plan."""

from pathlib import Path

from tests.recover.stubs import Stub
from tests.recover.test_recovery import SITE, Run, page
from unlost.errors import NotNowError
from unlost.recover.plan import Policy


def test_a_list_that_was_put_off_is_waited_for(tmp_path: Path) -> None:
    """With until_done, an archive that could not be asked for its list is asked for it later, and for what it has."""
    a, b = Stub("a", [page("", "one"), page("one")]), Stub("b", [page("two")])
    run = Run(tmp_path, a, b, policy=Policy.EXHAUSTIVE)
    opens = run.clock.now() + 3600

    def wait(_: str) -> None:
        if run.clock.now() < opens:
            raise NotNowError("its quota is used up", "b", opens, "quota")

    b.before = wait
    assert run(until_done=True).is_done
    assert run.outcome().keys() == {"", "one", "two"}
