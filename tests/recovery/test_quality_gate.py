"""Tests of rejected captures, with in-memory archives."""

import sqlite3
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.html.stub_pages import HUGO, JEKYLL, MKDOCS, MOVED, SCRIPTED
from tests.quality.classified import is_labelled_bad, real_pages
from tests.recovery.recovery_runner import SITE, RecoveryRunner, page
from tests.recovery.stub_archive import Held, Stub
from unlost.recovery import SiteContext
from unlost.recovery.state import SCHEMA_VERSION, RecoveryState, StateReader
from unlost.sqlite import STATE_FILE_NAME

PARKED = "<title>lost.example</title><p>This domain is for sale</p><a href='/spam'>Related searches</a>"
GONE = "<title>Page not found</title><h1>Page not found</h1><p>Sorry, the page does not exist.</p>"
CASINO = (
    "<title>Lucky Slots</title><a href='/bonus'>bonus</a>"
    + "<p>Online casino: slots, poker, roulette and blackjack. Place your bets for the jackpot, free spins today!" * 3
)
ORIGINAL = (
    "<title>The old mill</title><a href='/wheel'>wheel</a><p>The society of the old mill at Eastwater looks after the"
    " wheel, the pond and the bridge. The miller shows the stones on Sundays, and children feed the ducks.</p>"
)


def bad(path: str, date: str, text: str = PARKED) -> Held:
    """Return a bad page; all bodies are distinct."""
    return Held(SITE + path, date, f"{text}<!-- {date} -->".encode())


def rejections(folder: Path) -> list[tuple[str, str]]:
    """Return date and kind of each rejected capture in the state."""
    with RecoveryState(folder) as state:
        return [
            (state.records.get(each.record).record.capture.datetime, each.kind)
            for each in state.rejections.all()
            if each.reason and each.resource
        ]


@pytest.mark.parametrize(("text", "kind"), [(PARKED, "parked"), (GONE, "soft-404")])
def test_older_good_capture_replaces_rejected_one(text: str, kind: str, tmp_path: Path) -> None:
    """The rejected capture is stored and reported with its reason; its links are not followed."""
    stub = Stub(
        "a", [page("", "one"), bad("one", "20150101000000", text), page("one", date="20120101000000"), page("spam")]
    )
    run = RecoveryRunner(tmp_path, stub)
    assert run().is_done
    assert run.outcome() == {"": "a 20140101000000", "one": "a 20120101000000"}
    assert rejections(tmp_path) == [("20150101000000", kind)]
    (event,) = run.events_of("rejected")
    assert (event["uri"], event["archive"], event["datetime"], event["verdict"]) == (
        f"{SITE}one", "a", "20150101000000", kind,
    )  # fmt: skip
    assert event["reason"]
    assert len(stub.fetched) == 3 + stub.fetched.count(f"{SITE}robots.txt") + stub.fetched.count(f"{SITE}sitemap.xml")


@pytest.mark.parametrize("stub", [JEKYLL, MKDOCS, HUGO, MOVED, SCRIPTED])
def test_redirect_stub_is_recovered_and_followed(stub: str, tmp_path: Path) -> None:
    """A home page that redirects by HTML is not rejected, and its target is recovered."""
    home = Held(SITE, "20150101000000", stub.format(url=f"{SITE}en/").encode())
    run = RecoveryRunner(tmp_path, Stub("a", [home, page("en/", "/one"), page("one")]))
    assert run().is_done
    assert run.outcome() == {"": "a 20150101000000", "en/": "a 20140101000000", "one": "a 20140101000000"}
    assert rejections(tmp_path) == []


def test_resource_with_only_rejected_captures_is_missing(tmp_path: Path) -> None:
    """The captures stay in the WARCs and are not requested again."""
    stub = Stub("a", [page("", "one"), bad("one", "20150101000000"), bad("one", "20130101000000")])
    run = RecoveryRunner(tmp_path, stub)
    assert run().is_done
    assert run.outcome() == {"": "a 20140101000000", "one": None}
    assert [event["reason"] for event in run.events_of("missing") if event["uri"] == f"{SITE}one"] == ["rejected"]
    assert len(rejections(tmp_path)) == 2
    with StateReader(tmp_path) as state:
        assert [chosen.uri for chosen in state.chosen_captures()] == [SITE]
        assert list(state.unrecovered_listed()) == []
        rejected = [(each.uri, each.archive, each.datetime, each.kind) for each in state.rejected()]
        assert all(each.reason and each.file and each.offset for each in state.rejected())
    assert rejected == [(f"{SITE}one", "a", f"{year}0101000000", "parked") for year in (2015, 2013)]
    stub.requests.clear()
    assert run().is_done
    assert stub.fetched == []
    assert run.outcome()["one"] is None


def test_redirect_within_the_site_beats_rejected_capture(tmp_path: Path) -> None:
    """A redirect is better than a soft 404."""
    moved = Held(f"{SITE}one", "20120101000000", b"moved", status=301, redirect="/two")
    stub = Stub("a", [page("", "one"), bad("one", "20150101000000", GONE), moved, page("two")])
    run = RecoveryRunner(tmp_path, stub)
    run()
    assert run.outcome() == {"": "a 20140101000000", "one": "a 20120101000000", "two": "a 20140101000000"}


def test_rejected_digest_is_not_requested_again(tmp_path: Path) -> None:
    """A rejected digest is skipped, also for other pages."""
    body = GONE.encode()
    held = [Held(f"{SITE}one", f"20{year}0101000000", body) for year in range(10, 16)]
    other = Held(f"{SITE}two", "20150101000000", body)
    stub = Stub("a", [page("", "one", "two"), *held, page("one", date="20090101000000"), other])
    run = RecoveryRunner(tmp_path, stub)
    run()
    assert run.outcome() == {"": "a 20140101000000", "one": "a 20090101000000", "two": None}
    assert stub.fetched.count(f"{SITE}one") + stub.fetched.count(f"{SITE}two") == 2


def test_long_series_of_parked_captures_is_skipped(tmp_path: Path) -> None:
    """After some rejections the search skips further back, so that a long bad period does not use up all tries."""
    parked = [bad("one", f"20{year}{month:02}01000000") for year in range(12, 22) for month in range(1, 13)]
    good = [page("one", date=f"20{year:02}0101000000") for year in range(2, 12)]
    stub = Stub("a", [page("", "one"), *parked, *good])
    run = RecoveryRunner(tmp_path, stub)
    run()
    assert run.outcome()["one"] in {f"a 20{year:02}0101000000" for year in range(2, 12)}
    assert stub.fetched.count(f"{SITE}one") <= 12


def test_rejected_page_is_doubtful_without_better_capture(tmp_path: Path) -> None:
    """It is recovered and marked as doubtful, and its links are followed; other captures are tried first."""
    stub = Stub("a", [page("", "one"), bad("one", "20150101000000"), bad("one", "20130101000000"), page("spam")])
    run = RecoveryRunner(tmp_path, stub, drop_rejected=False)
    result = run()
    assert result.is_done
    assert run.outcome() == {"": "a 20140101000000", "one": "a 20150101000000", "spam": "a 20140101000000"}
    assert (result.doubtful, len(rejections(tmp_path))) == (1, 2)
    assert [event["doubtful"] for event in run.events_of("recovered") if event["uri"] == f"{SITE}one"] == [True]
    with StateReader(tmp_path) as state:
        assert [(each.uri, each.datetime) for each in state.doubtful()] == [(f"{SITE}one", "20150101000000")]
        assert f"{SITE}one" in [chosen.uri for chosen in state.chosen_captures()]
    stub.requests.clear()
    assert run().is_done
    assert stub.fetched == []


def test_drop_rejected_can_be_changed_between_runs(tmp_path: Path) -> None:
    """Rejected pages are added and removed without fetching them again."""
    stub = Stub("a", [page("", "one"), bad("one", "20150101000000"), page("spam")])
    run = RecoveryRunner(tmp_path, stub, drop_rejected=True)
    assert run().is_done
    assert run.outcome() == {"": "a 20140101000000", "one": None}
    run.plan = run.planned(drop_rejected=False)
    stub.requests.clear()
    assert run().doubtful == 1
    assert run.outcome() == {"": "a 20140101000000", "one": "a 20150101000000", "spam": "a 20140101000000"}
    assert f"{SITE}one" not in stub.fetched
    run.plan = run.planned(drop_rejected=True)
    assert run().doubtful == 0
    assert run.outcome()["one"] is None


def test_hijacked_site_is_detected_by_its_oldest_capture(tmp_path: Path) -> None:
    """A suspicious home page costs one request for its oldest capture; the last good one is recovered."""
    stub = Stub(
        "a",
        [
            bad("", "20190101000000", CASINO),
            bad("", "20180101000000", CASINO),
            Held(SITE, "20120101000000", ORIGINAL.encode()),
            Held(SITE, "20050101000000", ORIGINAL.replace("Sundays", "Fridays").encode()),
            Held(f"{SITE}wheel", "20120101000000", ORIGINAL.replace("stones", "wheel").encode()),
            bad("bonus", "20190101000000", CASINO),
        ],
    )
    run = RecoveryRunner(tmp_path, stub)
    assert run().is_done
    assert run.outcome() == {"": "a 20120101000000", "wheel": "a 20120101000000"}
    assert rejections(tmp_path) == [("20190101000000", "hijacked"), ("20180101000000", "hijacked")]


@pytest.mark.parametrize(
    ("date", "is_detected"), [("20180301000000", True), ("20180930000000", True), ("20181015000000", False)]
)
def test_hijacking_needs_evidence_older_than_a_month(tmp_path: Path, date: str, *, is_detected: bool) -> None:
    """A capture from at least a month before is evidence; a closer one is not."""
    stub = Stub("a", [bad("", "20181101000000", CASINO), Held(SITE, date, ORIGINAL.encode())])
    run = RecoveryRunner(tmp_path, stub)
    assert run().is_done
    assert run.outcome()[""] == f"a {date if is_detected else '20181101000000'}"


def test_site_with_constant_gambling_topic_is_not_hijacked(tmp_path: Path) -> None:
    """Its last captures are recovered, at the cost of one more request."""
    early = Held(SITE, "20050101000000", CASINO.replace("bonus", "welcome").encode())
    stub = Stub(
        "a", [bad("", "20190101000000", CASINO), early, bad("bonus", "20190101000000", CASINO), page("welcome")]
    )
    run = RecoveryRunner(tmp_path, stub)
    assert run().is_done
    assert run.outcome() == {"": "a 20190101000000", "bonus": "a 20190101000000"}
    assert rejections(tmp_path) == []
    assert stub.fetched.count(SITE) == 2


def test_hijacked_pages_are_detected_by_other_good_pages(tmp_path: Path) -> None:
    """Earlier good pages of the site are evidence, so no further captures are requested."""
    stub = Stub(
        "a",
        [
            Held(SITE, "20120101000000", ORIGINAL.encode()),
            Held(f"{SITE}wheel", "20110101000000", ORIGINAL.encode()),
            bad("wheel", "20190101000000", CASINO),
        ],
    )
    run = RecoveryRunner(tmp_path, stub)
    assert run().is_done
    assert run.outcome() == {"": "a 20120101000000", "wheel": "a 20110101000000"}
    assert rejections(tmp_path) == [("20190101000000", "hijacked")]


def test_version_1_state_is_migrated(tmp_path: Path) -> None:
    """The state is migrated without loss; readers do not need the migration."""
    run = RecoveryRunner(tmp_path, Stub("a", [page("", "one"), page("one")]))
    run()
    before = run.outcome()
    connection = sqlite3.connect(tmp_path / STATE_FILE_NAME)
    connection.executescript(
        "DROP TABLE rejected; DROP TABLE candidate; DROP TABLE substitute; PRAGMA user_version = 1"
    )
    connection.close()
    with StateReader(tmp_path) as state:
        assert len(list(state.chosen_captures())) == 2
        assert list(state.rejected()) == []
    assert run.outcome() == before
    connection = sqlite3.connect(tmp_path / STATE_FILE_NAME)
    assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    connection.close()
    assert rejections(tmp_path) == []


@pytest.mark.real_data
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_site_context_rejects_at_most_1_percent_of_good_pages() -> None:
    """Real pages are classified with the context of their site, in both orders."""
    pages = list(real_pages())
    for order in (pages, pages[::-1]):
        sites: dict[str | None, SiteContext] = {}
        wrong = []
        for real in order:
            context = sites.setdefault(urlsplit(real.uri).hostname, SiteContext())
            if context.classify(real) is None:
                context.add_good_page(real)
            elif not is_labelled_bad(real.uri, real.datetime):
                wrong.append(real.uri)
        assert len(wrong) <= 0.01 * len(pages), wrong


def test_links_of_rewritten_pages_are_followed(tmp_path: Path) -> None:
    """A rewritten page is stored unchanged, and its links resolve to the original URLs."""
    rewritten = f'<title>The mill</title><a href="http://a.example/20140101000000/{SITE}wheel">wheel</a>'.encode()
    stub = Stub("a", [Held(SITE, "20140101000000", rewritten), page("wheel")])
    capture = stub._capture
    stub._capture = lambda held: replace(capture(held), migrated=True)  # type: ignore[method-assign]
    run = RecoveryRunner(tmp_path, stub)
    run()
    assert run.outcome() == {"": "a 20140101000000", "wheel": "a 20140101000000"}
