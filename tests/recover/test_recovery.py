"""Tests of the crawl, with archives in memory."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.recover.running import SITE, Run, page
from tests.recover.stubs import Held, Stub
from unlost.errors import FailedError
from unlost.recover import RecoverPolicy
from unlost.recover.state import ResourceStatus


def test_a_site_comes_back_from_two_archives(tmp_path: Path) -> None:
    """Links are followed, each resource comes once from where its best capture is, and what nobody has is missing."""
    a = Stub("a", [page("", "one", "two", "none"), page("one", "/deep/three"), page("two", date="20120101000000")])
    b = Stub("b", [page("two", date="20130101000000"), page("deep/three"), page("unlinked")])
    run = Run(tmp_path, a, b)
    result = run()
    day = "20140101000000"
    assert run.outcome() == {
        "": f"a {day}",
        "one": f"a {day}",
        "two": "b 20130101000000",
        "deep/three": f"b {day}",
        "none": None,
    }
    assert result.is_done
    assert (result.counts[ResourceStatus.LISTED], result.counts[ResourceStatus.QUEUED]) == (1, 0)
    assert sorted(a.fetched) == [SITE, f"{SITE}one"]
    assert sorted(b.fetched) == [f"{SITE}deep/three", f"{SITE}two"]
    assert run.told("missing")[-1]["reason"] == "not-held"


@pytest.mark.parametrize(
    "newer",
    [
        {"status": 404},
        {"status": 503},
        {"status": 302, "redirect": "http://elsewhere.example/"},
        {"body": b""},
    ],
)
def test_what_is_no_page_never_beats_an_older_page(tmp_path: Path, newer: dict[str, Any]) -> None:
    """Neither an error, a redirect elsewhere nor an empty body; and none of them costs a request."""
    good = page("", date="20100101000000")
    bad = Held(SITE, "20200101000000", **newer)
    a = Stub("a", [good, bad])
    run = Run(tmp_path, a)
    run()
    assert run.outcome() == {"": "a 20100101000000"}
    assert len(a.fetched) == 1


def test_what_an_index_does_not_tell_is_seen_by_the_copy(tmp_path: Path) -> None:
    """A capture that turns out to be an error is followed by the next best."""
    a = Stub("a", [page("", date="20100101000000"), page("", date="20200101000000")])
    hidden = a._capture

    def without_status(held: Held) -> Any:  # noqa: ANN401
        from dataclasses import replace

        return replace(hidden(held), status=None, digest=None, mime=None)

    lying = Held(SITE, "20200101000000", b"gone", status=404)
    a.held[1] = lying
    a._capture = without_status  # type: ignore[method-assign]
    fetch = a.fetch

    async def told(capture: Any) -> Any:  # noqa: ANN401
        from dataclasses import replace

        copy = await fetch(capture)
        assert copy is not None
        status = 404 if capture.datetime.startswith("2020") else 200
        return replace(copy, capture=replace(copy.capture, status=status))

    a.fetch = told  # type: ignore[method-assign]
    run = Run(tmp_path, a)
    run()
    assert run.outcome() == {"": "a 20100101000000"}


def test_the_same_bytes_are_fetched_once(tmp_path: Path) -> None:
    """In one archive or in several; each address has its record, with its own links."""
    same = b"<title>same</title><a href=next>next</a>"
    a = Stub("a", [page("", "x/1", "y/2"), Held(f"{SITE}x/1", "20140101000000", same), page("x/next")])
    b = Stub("b", [Held(f"{SITE}y/2", "20150101000000", same), page("y/next")])
    run = Run(tmp_path, a, b)
    run()
    assert set(run.outcome()) == {"", "x/1", "y/2", "x/next", "y/next"}
    assert None not in run.outcome().values()
    assert len(a.fetched) + len(b.fetched) == 4


def test_a_digest_that_lies_is_not_believed_between_archives(tmp_path: Path) -> None:
    """Where the bytes that came have another digest, another archive is asked for its own."""
    a = Stub("a", [page("", "1", "2"), Held(f"{SITE}1", "20140101000000", b"one", digest="sha1:" + "A" * 32)])
    b = Stub("b", [Held(f"{SITE}2", "20140101000000", b"two", digest="sha1:" + "A" * 32)])
    Run(tmp_path, a, b)()
    assert b.fetched == [f"{SITE}2"]


def test_the_same_command_goes_on(tmp_path: Path) -> None:
    """It retries what failed, asks for nothing that is there, and adds what archives have gained."""
    a = Stub("a", [page("", "one", "two"), page("one"), page("two")])

    def fail(question: str) -> None:
        if question.endswith("two"):
            raise FailedError("timeout", "a", "timeout")

    a.before = fail
    run = Run(tmp_path, a)
    first = run()
    assert (first.is_done, first.failed) == (False, 1)
    a.before = lambda _: None
    a.asked.clear()
    assert run().is_done
    assert a.asked == [f"fetch 20140101000000 {SITE}two"]
    a.asked.clear()
    a.held.append(page("three"))
    a.held.append(page("none"))
    assert run().is_done
    assert a.asked == ["list http://lost.example"]  # nothing leads to what is new
    a.held[0] = page("", "one", "two", "three")
    run.plan = run.planned(urls=(f"{SITE}three",))
    a.asked.clear()
    run()
    assert a.fetched == [f"{SITE}three"]


def test_policies(tmp_path: Path) -> None:
    """Naive asks everybody page by page; exhaustive wants what is listed, too."""

    def archives() -> tuple[Stub, Stub]:
        a = Stub("a", [page("", "one"), page("one", date="20100101000000")])
        return a, Stub("b", [page("one"), page("unlinked")])

    a, b = archives()
    run = Run(tmp_path / "n", a, b, policy=RecoverPolicy.NAIVE)
    (tmp_path / "n").mkdir()
    run()
    assert run.outcome() == {"": "a 20140101000000", "one": "b 20140101000000"}
    assert not [question for question in a.asked + b.asked if question.startswith("list")]
    assert f"captures {SITE}" in b.asked
    a, b = archives()
    (tmp_path / "e").mkdir()
    run = Run(tmp_path / "e", a, b, policy=RecoverPolicy.EXHAUSTIVE)
    run()
    assert set(run.outcome()) == {"", "one", "unlinked"}


def test_without_a_front_page_all_that_is_listed_comes(tmp_path: Path) -> None:
    """Nothing leads to it, and it is all there is."""
    a = Stub("a", [page("one", "two"), page("two"), page("three")])
    run = Run(tmp_path, a)
    assert run().is_done
    assert set(run.outcome()) == {"", "one", "two", "three"}
    assert run.outcome()[""] is None
    assert run.told("no-start") == [{"uri": SITE}]


def test_a_redirect_within_the_site_leads_on(tmp_path: Path) -> None:
    """It is kept, and its target wanted."""
    a = Stub(
        "a",
        [page("", "old"), Held(f"{SITE}old", "20140101000000", b"", status=301, redirect=f"{SITE}new"), page("new")],
    )
    run = Run(tmp_path, a)
    run()
    assert run.outcome().keys() == {"", "old", "new"}
    assert None not in run.outcome().values()


def test_requisites_are_taken_close_to_their_page(tmp_path: Path) -> None:
    """With `at`, an image is the one of the time of its page's capture."""
    text = b"<img src=/i.png>"
    a = Stub(
        "a",
        [
            Held(SITE, "20100601000000", text),
            *(Held(f"{SITE}i.png", f"{year}0101000000", str(year).encode(), "image/png") for year in range(2008, 2016)),
        ],
    )
    run = Run(tmp_path, a, at="2014")
    run()
    assert run.outcome()["i.png"] == "a 20100101000000"


def test_the_most_valuable_comes_first(tmp_path: Path) -> None:
    """Cut short at any point, it is a site: the home page, what it needs, then the pages next to it."""
    home = Held(SITE, "20140101000000", b"<link rel=stylesheet href=/s.css><a href=/1>1</a><a href=/2>2</a>")
    one = Held(f"{SITE}1", "20140101000000", b"<link rel=stylesheet href=/s.css><img src=1.png><a href=/1/deep>d</a>")
    two = Held(f"{SITE}2", "20140101000000", b"<a href=/1/deep>d</a>")
    more = [Held(f"{SITE}1.png", "20140101000000", b"i", "image/png"), page("1/deep")]
    a = Stub("a", [*more, two, one, home, Held(f"{SITE}s.css", "20140101000000", b"p {}", "text/css")])
    Run(tmp_path, a)(connections=1)
    fetched = [uri.removeprefix(SITE) for uri in a.fetched]
    assert fetched[:2] == ["", "s.css"]
    assert set(fetched[2:4]) == {"1", "2"}
    assert fetched[4:] == ["1.png", "1/deep"]


def test_a_limit_holds(tmp_path: Path) -> None:
    """No more is recovered, over all runs; a higher limit goes on."""
    a = Stub("a", [page("", *map(str, range(9))), *(page(str(number)) for number in range(9))])
    run = Run(tmp_path, a, limit=3)
    run()
    run()
    assert len(run.outcome()) == 3
    run.plan = run.planned(limit=5)
    run()
    assert len(run.outcome()) == 5


def test_somebody_can_stop_it(tmp_path: Path) -> None:
    """What is on its way still comes; the same command goes on."""
    a = Stub("a", [page("", *map(str, range(9))), *(page(str(number)) for number in range(9))])
    run = Run(tmp_path, a)
    result = run(should_stop=lambda: len(a.fetched) >= 3, connections=1)
    assert (result.is_stopped, result.is_done) == (True, False)
    assert run().is_done
    assert len(a.fetched) == 10


def test_it_waits_between_questions(tmp_path: Path) -> None:
    """With `wait`, one at a time, about so long apart."""
    a = Stub("a", [page("", *map(str, range(9))), *(page(str(number)) for number in range(9))])
    run = Run(tmp_path, a)
    begun = run.clock.now()
    run(wait=10.0)
    assert 50 <= run.clock.now() - begun <= 200


def _texts(folder: Path) -> Sequence[bytes]:
    return [file.read_bytes() for file in sorted((folder / "warc").iterdir())]


def test_without_its_state_a_recovery_is_asked_for_again_and_nothing_is_lost(tmp_path: Path) -> None:
    """Records that no state knows are adopted, and not asked for again."""
    a = Stub("a", [page("", "one"), page("one")])
    run = Run(tmp_path, a)
    run()
    before = _texts(tmp_path)
    for file in tmp_path.glob("state.sqlite*"):
        file.unlink()
    a.asked.clear()
    run()
    assert run.outcome().keys() == {"", "one"}
    assert a.asked == ["list http://lost.example"]
    assert _texts(tmp_path)[: len(before)] == before
