"""Tests of a recovery with in-memory archives."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.recovery.recovery_runner import SITE, RecoveryRunner, page
from tests.recovery.stub_archive import Held, Stub
from unlost.errors import FailedError
from unlost.recovery import RecoverPolicy
from unlost.recovery.state import ResourceStatus


def test_site_is_recovered_from_two_archives(tmp_path: Path) -> None:
    """Links are followed; each resource is fetched once from the archive with its best capture."""
    a = Stub("a", [page("", "one", "two", "none"), page("one", "/deep/three"), page("two", date="20120101000000")])
    b = Stub("b", [page("two", date="20130101000000"), page("deep/three"), page("unlinked")])
    run = RecoveryRunner(tmp_path, a, b)
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
    assert run.events_of("missing")[-1]["reason"] == "not-held"


@pytest.mark.parametrize(
    "newer",
    [
        {"status": 404},
        {"status": 503},
        {"status": 302, "redirect": "http://elsewhere.example/"},
        {"body": b""},
    ],
)
def test_bad_capture_never_replaces_older_page(tmp_path: Path, newer: dict[str, Any]) -> None:
    """Errors, redirects to other sites and empty bodies are not chosen and cost no request."""
    good = page("", date="20100101000000")
    bad = Held(SITE, "20200101000000", **newer)
    a = Stub("a", [good, bad])
    run = RecoveryRunner(tmp_path, a)
    run()
    assert run.outcome() == {"": "a 20100101000000"}
    assert len(a.fetched) == 1


def test_error_without_listed_status_is_replaced_by_next_capture(tmp_path: Path) -> None:
    """A capture that turns out to be an error is followed by the next best."""
    a = Stub("a", [page("", date="20100101000000"), page("", date="20200101000000")])
    hidden = a._capture

    def without_status(held: Held) -> Any:  # noqa: ANN401
        from dataclasses import replace

        return replace(hidden(held), status=None, digest=None, mime=None)

    error = Held(SITE, "20200101000000", b"gone", status=404)
    a.held[1] = error
    a._capture = without_status  # type: ignore[method-assign]
    fetch = a.fetch

    async def fetch_with_status(capture: Any) -> Any:  # noqa: ANN401
        from dataclasses import replace

        fetched = await fetch(capture)
        assert fetched is not None
        status = 404 if capture.datetime.startswith("2020") else 200
        return replace(fetched, capture=replace(fetched.capture, status=status))

    a.fetch = fetch_with_status  # type: ignore[method-assign]
    run = RecoveryRunner(tmp_path, a)
    run()
    assert run.outcome() == {"": "a 20100101000000"}


def test_equal_digests_are_fetched_once(tmp_path: Path) -> None:
    """In one archive or several, each URL has its own record with its own links."""
    same = b"<title>same</title><a href=next>next</a>"
    a = Stub("a", [page("", "x/1", "y/2"), Held(f"{SITE}x/1", "20140101000000", same), page("x/next")])
    b = Stub("b", [Held(f"{SITE}y/2", "20150101000000", same), page("y/next")])
    run = RecoveryRunner(tmp_path, a, b)
    run()
    assert set(run.outcome()) == {"", "x/1", "y/2", "x/next", "y/next"}
    assert None not in run.outcome().values()
    assert len(a.fetched) + len(b.fetched) == 4


def test_wrong_digest_is_not_trusted_across_archives(tmp_path: Path) -> None:
    """If the fetched bytes have another digest, the other archive's capture is fetched."""
    a = Stub("a", [page("", "1", "2"), Held(f"{SITE}1", "20140101000000", b"one", digest="sha1:" + "A" * 32)])
    b = Stub("b", [Held(f"{SITE}2", "20140101000000", b"two", digest="sha1:" + "A" * 32)])
    RecoveryRunner(tmp_path, a, b)()
    assert b.fetched == [f"{SITE}2"]


def test_repeated_run_retries_failures_and_adds_new_captures(tmp_path: Path) -> None:
    """Stored captures are not requested again."""
    a = Stub("a", [page("", "one", "two"), page("one"), page("two")])

    def fail(request: str) -> None:
        if request.endswith("two"):
            raise FailedError("timeout", "a", "timeout")

    a.before = fail
    run = RecoveryRunner(tmp_path, a)
    first = run()
    assert (first.is_done, first.failed) == (False, 1)
    a.before = lambda _: None
    a.requests.clear()
    assert run().is_done
    assert a.requests == [f"fetch 20140101000000 {SITE}two"]
    a.requests.clear()
    a.held.append(page("three"))
    a.held.append(page("none"))
    assert run().is_done
    assert a.requests == ["list http://lost.example"]  # nothing links to the new pages
    a.held[0] = page("", "one", "two", "three")
    run.plan = run.planned(urls=(f"{SITE}three",))
    a.requests.clear()
    run()
    assert a.fetched == [f"{SITE}three"]


def test_naive_and_exhaustive_policies(tmp_path: Path) -> None:
    """Naive looks up each page in all archives; exhaustive also recovers listed pages."""

    def archives() -> tuple[Stub, Stub]:
        a = Stub("a", [page("", "one"), page("one", date="20100101000000")])
        return a, Stub("b", [page("one"), page("unlinked")])

    a, b = archives()
    run = RecoveryRunner(tmp_path / "n", a, b, policy=RecoverPolicy.NAIVE)
    (tmp_path / "n").mkdir()
    run()
    assert run.outcome() == {"": "a 20140101000000", "one": "b 20140101000000"}
    assert not [request for request in a.requests + b.requests if request.startswith("list")]
    assert f"captures {SITE}" in b.requests
    a, b = archives()
    (tmp_path / "e").mkdir()
    run = RecoveryRunner(tmp_path / "e", a, b, policy=RecoverPolicy.EXHAUSTIVE)
    run()
    assert set(run.outcome()) == {"", "one", "unlinked"}


def test_missing_home_page_recovers_all_listed_pages(tmp_path: Path) -> None:
    """Without a home page nothing is linked, so all listed pages are recovered."""
    a = Stub("a", [page("one", "two"), page("two"), page("three")])
    run = RecoveryRunner(tmp_path, a)
    assert run().is_done
    assert set(run.outcome()) == {"", "one", "two", "three"}
    assert run.outcome()[""] is None
    assert run.events_of("no-start") == [{"uri": SITE}]


def test_redirect_within_the_site_is_followed(tmp_path: Path) -> None:
    """The redirect is stored, and its target is enqueued."""
    a = Stub(
        "a",
        [page("", "old"), Held(f"{SITE}old", "20140101000000", b"", status=301, redirect=f"{SITE}new"), page("new")],
    )
    run = RecoveryRunner(tmp_path, a)
    run()
    assert run.outcome().keys() == {"", "old", "new"}
    assert None not in run.outcome().values()


def test_requisite_is_closest_to_its_page_with_at(tmp_path: Path) -> None:
    """With `at`, an image is closest in time to the capture of its page."""
    text = b"<img src=/i.png>"
    a = Stub(
        "a",
        [
            Held(SITE, "20100601000000", text),
            *(Held(f"{SITE}i.png", f"{year}0101000000", str(year).encode(), "image/png") for year in range(2008, 2016)),
        ],
    )
    run = RecoveryRunner(tmp_path, a, at="2014")
    run()
    assert run.outcome()["i.png"] == "a 20100101000000"


def test_resources_are_fetched_by_priority(tmp_path: Path) -> None:
    """The home page comes first, then its requisites, then pages by distance."""
    home = Held(SITE, "20140101000000", b"<link rel=stylesheet href=/s.css><a href=/1>1</a><a href=/2>2</a>")
    one = Held(f"{SITE}1", "20140101000000", b"<link rel=stylesheet href=/s.css><img src=1.png><a href=/1/deep>d</a>")
    two = Held(f"{SITE}2", "20140101000000", b"<a href=/1/deep>d</a>")
    more = [Held(f"{SITE}1.png", "20140101000000", b"i", "image/png"), page("1/deep")]
    a = Stub("a", [*more, two, one, home, Held(f"{SITE}s.css", "20140101000000", b"p {}", "text/css")])
    RecoveryRunner(tmp_path, a)(connections=1)
    fetched = [uri.removeprefix(SITE) for uri in a.fetched]
    assert fetched[:2] == ["", "s.css"]
    assert set(fetched[2:4]) == {"1", "2"}
    assert fetched[4:] == ["1.png", "1/deep"]


def test_limit_holds_over_all_runs(tmp_path: Path) -> None:
    """A higher limit continues the recovery."""
    a = Stub("a", [page("", *map(str, range(9))), *(page(str(number)) for number in range(9))])
    run = RecoveryRunner(tmp_path, a, limit=3)
    run()
    run()
    assert len(run.outcome()) == 3
    run.plan = run.planned(limit=5)
    run()
    assert len(run.outcome()) == 5


def test_stopped_run_is_resumed(tmp_path: Path) -> None:
    """Responses in flight are stored; the next run completes the recovery."""
    a = Stub("a", [page("", *map(str, range(9))), *(page(str(number)) for number in range(9))])
    run = RecoveryRunner(tmp_path, a)
    result = run(should_stop=lambda: len(a.fetched) >= 3, connections=1)
    assert (result.is_stopped, result.is_done) == (True, False)
    assert run().is_done
    assert len(a.fetched) == 10


def test_wait_option_delays_requests(tmp_path: Path) -> None:
    """With `wait`, requests are sequential and delayed."""
    a = Stub("a", [page("", *map(str, range(9))), *(page(str(number)) for number in range(9))])
    run = RecoveryRunner(tmp_path, a)
    start = run.clock.now()
    run(wait=10.0)
    assert 50 <= run.clock.now() - start <= 200


def _texts(folder: Path) -> Sequence[bytes]:
    return [file.read_bytes() for file in sorted((folder / "warc").iterdir())]


def test_lost_state_is_rebuilt_from_warcs(tmp_path: Path) -> None:
    """Records that the state does not know are adopted and not requested again."""
    a = Stub("a", [page("", "one"), page("one")])
    run = RecoveryRunner(tmp_path, a)
    run()
    before = _texts(tmp_path)
    for file in tmp_path.glob("state.sqlite*"):
        file.unlink()
    a.requests.clear()
    run()
    assert run.outcome().keys() == {"", "one"}
    assert a.requests == ["list http://lost.example"]
    assert _texts(tmp_path)[: len(before)] == before
