"""Tests of copies that came, and say that they are not the page: with archives in memory."""

import sqlite3
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.html.stub_pages import HUGO, JEKYLL, MKDOCS, MOVED, SCRIPTED
from tests.quality.classified import is_labelled_bad, real_pages
from tests.recover.running import SITE, Run, page
from tests.recover.stubs import Held, Stub
from unlost.recover import SiteContext
from unlost.recover.state import SCHEMA_VERSION, RecoveryState, StateReader
from unlost.sqlite import STATE_FILE_NAME

PARKED = "<title>lost.example</title><p>This domain is for sale</p><a href='/spam'>Related searches</a>"
GONE = "<title>Page not found</title><h1>Page not found</h1><p>Sorry, the page does not exist.</p>"
CASINO = (
    "<title>Lucky Slots</title><a href='/bonus'>bonus</a>"
    + "<p>Online casino: slots, poker, roulette and blackjack. Place your bets for the jackpot, free spins today!" * 3
)
MILL = (
    "<title>The old mill</title><a href='/wheel'>wheel</a><p>The society of the old mill at Eastwater looks after the"
    " wheel, the pond and the bridge. The miller shows the stones on Sundays, and children feed the ducks.</p>"
)


def bad(path: str, date: str, text: str = PARKED) -> Held:
    """Return a page that is none; no two have the same bytes."""
    return Held(SITE + path, date, f"{text}<!-- {date} -->".encode())


def rejections(folder: Path) -> list[tuple[str, str]]:
    """Return the date and the kind of each copy that was rejected, as the state has it."""
    with RecoveryState(folder) as state:
        return [
            (state.records.get(each.record).record.capture.datetime, each.kind)
            for each in state.rejections.all()
            if each.reason and each.resource
        ]


@pytest.mark.parametrize(("text", "kind"), [(PARKED, "parked"), (GONE, "soft-404")])
def test_an_older_good_copy_is_taken_instead(text: str, kind: str, tmp_path: Path) -> None:
    """The bad one is fetched, kept and told of with its reason; its links are not followed."""
    stub = Stub(
        "a", [page("", "one"), bad("one", "20150101000000", text), page("one", date="20120101000000"), page("spam")]
    )
    run = Run(tmp_path, stub)
    assert run().is_done
    assert run.outcome() == {"": "a 20140101000000", "one": "a 20120101000000"}
    assert rejections(tmp_path) == [("20150101000000", kind)]
    (told,) = run.told("rejected")
    assert (told["uri"], told["archive"], told["datetime"], told["verdict"]) == (
        f"{SITE}one", "a", "20150101000000", kind,
    )  # fmt: skip
    assert told["reason"]
    assert len(stub.fetched) == 3 + stub.fetched.count(f"{SITE}robots.txt") + stub.fetched.count(f"{SITE}sitemap.xml")


@pytest.mark.parametrize("stub", [JEKYLL, MKDOCS, HUGO, MOVED, SCRIPTED])
def test_a_redirect_stub_is_recovered_and_followed(stub: str, tmp_path: Path) -> None:
    """Also as the home page of the site: nothing of it is rejected, and what it redirects to is recovered."""
    home = Held(SITE, "20150101000000", stub.format(url=f"{SITE}en/").encode())
    run = Run(tmp_path, Stub("a", [home, page("en/", "/one"), page("one")]))
    assert run().is_done
    assert run.outcome() == {"": "a 20150101000000", "en/": "a 20140101000000", "one": "a 20140101000000"}
    assert rejections(tmp_path) == []


def test_what_is_only_rejected_is_missing_and_kept(tmp_path: Path) -> None:
    """The resource is missing for that reason, the copies stay in the WARCs, and nobody asks for them again."""
    stub = Stub("a", [page("", "one"), bad("one", "20150101000000"), bad("one", "20130101000000")])
    run = Run(tmp_path, stub)
    assert run().is_done
    assert run.outcome() == {"": "a 20140101000000", "one": None}
    assert [told["reason"] for told in run.told("missing") if told["uri"] == f"{SITE}one"] == ["rejected"]
    assert len(rejections(tmp_path)) == 2
    with StateReader(tmp_path) as state:
        assert [chosen.uri for chosen in state.chosen_captures()] == [SITE]
        assert list(state.unrecovered_listed()) == []
        told = [(each.uri, each.archive, each.datetime, each.kind) for each in state.rejected()]
        assert all(each.reason and each.file and each.offset for each in state.rejected())
    assert told == [(f"{SITE}one", "a", f"{year}0101000000", "parked") for year in (2015, 2013)]
    stub.asked.clear()
    assert run().is_done
    assert stub.fetched == []
    assert run.outcome()["one"] is None


def test_a_redirect_within_the_site_is_better(tmp_path: Path) -> None:
    """Where a page was moved to is worth more than what says that it is not there."""
    moved = Held(f"{SITE}one", "20120101000000", b"moved", status=301, redirect="/two")
    stub = Stub("a", [page("", "one"), bad("one", "20150101000000", GONE), moved, page("two")])
    run = Run(tmp_path, stub)
    run()
    assert run.outcome() == {"": "a 20140101000000", "one": "a 20120101000000", "two": "a 20140101000000"}


def test_the_same_bytes_are_not_asked_for_again(tmp_path: Path) -> None:
    """A digest that was rejected is passed over in the list of its page; of another page, nobody asks for it."""
    body = GONE.encode()
    held = [Held(f"{SITE}one", f"20{year}0101000000", body) for year in range(10, 16)]
    other = Held(f"{SITE}two", "20150101000000", body)
    stub = Stub("a", [page("", "one", "two"), *held, page("one", date="20090101000000"), other])
    run = Run(tmp_path, stub)
    run()
    assert run.outcome() == {"": "a 20140101000000", "one": "a 20090101000000", "two": None}
    assert stub.fetched.count(f"{SITE}one") + stub.fetched.count(f"{SITE}two") == 2


def test_years_of_parking_are_passed_over(tmp_path: Path) -> None:
    """After some rejected ones the next is ever further away, so that a long bad time does not use up all tries."""
    parked = [bad("one", f"20{year}{month:02}01000000") for year in range(12, 22) for month in range(1, 13)]
    good = [page("one", date=f"20{year:02}0101000000") for year in range(2, 12)]
    stub = Stub("a", [page("", "one"), *parked, *good])
    run = Run(tmp_path, stub)
    run()
    assert run.outcome()["one"] in {f"a 20{year:02}0101000000" for year in range(2, 12)}
    assert stub.fetched.count(f"{SITE}one") <= 12


def test_a_rejected_page_is_kept_if_there_is_no_better_capture(tmp_path: Path) -> None:
    """It counts as recovered, is marked as doubtful, and its links are followed; other captures are tried first."""
    stub = Stub("a", [page("", "one"), bad("one", "20150101000000"), bad("one", "20130101000000"), page("spam")])
    run = Run(tmp_path, stub, drop_rejected=False)
    result = run()
    assert result.is_done
    assert run.outcome() == {"": "a 20140101000000", "one": "a 20150101000000", "spam": "a 20140101000000"}
    assert (result.doubtful, len(rejections(tmp_path))) == (1, 2)
    assert [told["doubtful"] for told in run.told("recovered") if told["uri"] == f"{SITE}one"] == [True]
    with StateReader(tmp_path) as state:
        assert [(each.uri, each.datetime) for each in state.doubtful()] == [(f"{SITE}one", "20150101000000")]
        assert f"{SITE}one" in [chosen.uri for chosen in state.chosen_captures()]
    stub.asked.clear()
    assert run().is_done
    assert stub.fetched == []


def test_rejected_pages_come_back_and_go_with_the_option(tmp_path: Path) -> None:
    """What was dropped is kept when the option is left out, without being fetched again, and the other way round."""
    stub = Stub("a", [page("", "one"), bad("one", "20150101000000"), page("spam")])
    run = Run(tmp_path, stub, drop_rejected=True)
    assert run().is_done
    assert run.outcome() == {"": "a 20140101000000", "one": None}
    run.plan = run.planned(drop_rejected=False)
    stub.asked.clear()
    assert run().doubtful == 1
    assert run.outcome() == {"": "a 20140101000000", "one": "a 20150101000000", "spam": "a 20140101000000"}
    assert f"{SITE}one" not in stub.fetched
    run.plan = run.planned(drop_rejected=True)
    assert run().doubtful == 0
    assert run.outcome()["one"] is None


def test_a_site_that_was_taken_over_is_found_out_by_its_past(tmp_path: Path) -> None:
    """A suspicious front page costs one more request, for its oldest copy: then the last good one is looked for."""
    stub = Stub(
        "a",
        [
            bad("", "20190101000000", CASINO),
            bad("", "20180101000000", CASINO),
            Held(SITE, "20120101000000", MILL.encode()),
            Held(SITE, "20050101000000", MILL.replace("Sundays", "Fridays").encode()),
            Held(f"{SITE}wheel", "20120101000000", MILL.replace("stones", "wheel").encode()),
            bad("bonus", "20190101000000", CASINO),
        ],
    )
    run = Run(tmp_path, stub)
    assert run().is_done
    assert run.outcome() == {"": "a 20120101000000", "wheel": "a 20120101000000"}
    assert rejections(tmp_path) == [("20190101000000", "hijacked"), ("20180101000000", "hijacked")]


@pytest.mark.parametrize(
    ("date", "is_found_out"), [("20180301000000", True), ("20180930000000", True), ("20181015000000", False)]
)
def test_what_was_there_long_before_tells(tmp_path: Path, date: str, *, is_found_out: bool) -> None:
    """A month before is long before, in the same year or not; what is nearer tells nothing."""
    stub = Stub("a", [bad("", "20181101000000", CASINO), Held(SITE, date, MILL.encode())])
    run = Run(tmp_path, stub)
    assert run().is_done
    assert run.outcome()[""] == f"a {date if is_found_out else '20181101000000'}"


def test_a_casino_is_a_casino(tmp_path: Path) -> None:
    """A site that was always about such things is not taken over: its last copies are taken, for one more request."""
    early = Held(SITE, "20050101000000", CASINO.replace("bonus", "welcome").encode())
    stub = Stub(
        "a", [bad("", "20190101000000", CASINO), early, bad("bonus", "20190101000000", CASINO), page("welcome")]
    )
    run = Run(tmp_path, stub)
    assert run().is_done
    assert run.outcome() == {"": "a 20190101000000", "bonus": "a 20190101000000"}
    assert rejections(tmp_path) == []
    assert stub.fetched.count(SITE) == 2


def test_pages_of_a_site_that_was_taken_over_are_known_by_others(tmp_path: Path) -> None:
    """Once good pages from before are there, nobody needs to ask for more to know the rest."""
    stub = Stub(
        "a",
        [
            Held(SITE, "20120101000000", MILL.encode()),
            Held(f"{SITE}wheel", "20110101000000", MILL.encode()),
            bad("wheel", "20190101000000", CASINO),
        ],
    )
    run = Run(tmp_path, stub)
    assert run().is_done
    assert run.outcome() == {"": "a 20120101000000", "wheel": "a 20110101000000"}
    assert rejections(tmp_path) == [("20190101000000", "hijacked")]


def test_a_state_from_before_there_were_verdicts_is_read(tmp_path: Path) -> None:
    """It is brought to the version of today, and nothing in it is lost; those who only read need not do that."""
    run = Run(tmp_path, Stub("a", [page("", "one"), page("one")]))
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
def test_what_is_learned_of_a_site_rejects_nothing_good() -> None:
    """Real pages are judged by the pages of their site that came before them, in either order: at most 1 % are lost."""
    pages = list(real_pages())
    for order in (pages, pages[::-1]):
        sites: dict[str | None, SiteContext] = {}
        wrong = []
        for real in order:
            judging = sites.setdefault(urlsplit(real.uri).hostname, SiteContext())
            if judging.classify(real) is None:
                judging.add_good_page(real)
            elif not is_labelled_bad(real.uri, real.datetime):
                wrong.append(real.uri)
        assert len(wrong) <= 0.01 * len(pages), wrong


def test_links_of_pages_that_an_archive_rewrote_are_followed(tmp_path: Path) -> None:
    """What cannot be had raw is kept as it came, and leads to where the page led."""
    shown = f'<title>The mill</title><a href="http://a.example/20140101000000/{SITE}wheel">wheel</a>'.encode()
    stub = Stub("a", [Held(SITE, "20140101000000", shown), page("wheel")])
    capture = stub._capture
    stub._capture = lambda held: replace(capture(held), migrated=True)  # type: ignore[method-assign]
    run = Run(tmp_path, stub)
    run()
    assert run.outcome() == {"": "a 20140101000000", "wheel": "a 20140101000000"}
