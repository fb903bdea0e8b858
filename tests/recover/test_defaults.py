"""Tests of what a recovery does unless it is told otherwise: everything an archive holds comes back."""

from pathlib import Path

import pytest

from tests.recover.running import SITE, Run, page
from tests.recover.stubs import Held, Stub
from unlost.archives import FetchedCapture
from unlost.capture import Capture
from unlost.errors import ArchiveError, ListCutError
from unlost.recover import (
    CALENDAR,
    CONFIRMATION_THRESHOLD,
    DUPLICATE,
    NO_CONTENT,
    NOT_LINKED,
    OUT_OF_SCOPE,
    TRAP,
    RecoverOptions,
    RecoverPolicy,
    scheduler,
)
from unlost.recover.state import ResourceStatus, StateReader

DAY = "20140101000000"


def complete(folder: Path, *archives: Stub, **plan: object) -> Run:
    """Return a recovery with the defaults, but for these options."""
    return Run(folder, *archives).with_defaults(**plan)


def held(path: str, body: bytes, mime: str = "text/css", date: str = DAY, **more: object) -> Held:
    """Return a file of the site, or of another host."""
    uri = path if "://" in path else SITE + path
    return Held(uri, date, body, mime, **more)  # type: ignore[arg-type]


def test_everything_listed_comes_back(tmp_path: Path) -> None:
    """What no link points to is fetched, too."""
    run = complete(tmp_path, Stub("a", [page("", "one"), page("one"), page("unlinked", "two"), page("two")]))
    result = run()
    assert result.is_done
    assert run.outcome() == dict.fromkeys(("", "one", "unlinked", "two"), f"a {DAY}")
    assert result.counts[ResourceStatus.LISTED] == 0


def test_a_home_page_that_redirects_loses_nothing(tmp_path: Path) -> None:
    """The rest of the site is listed, and comes back."""
    home = Held(SITE, DAY, b"", status=301, redirect=f"{SITE}en/")
    run = complete(tmp_path, Stub("a", [home, page("en/"), page("page-data/app.json"), page("app.js")]))
    assert run().is_done
    assert run.outcome().keys() == {"", "en/", "page-data/app.json", "app.js"}


def test_links_decide_the_order(tmp_path: Path) -> None:
    """The start page comes first, then what it links to and needs, then what is only listed."""
    rest = [page(f"a{number}") for number in range(20)]
    home = Held(SITE, DAY, b"<link rel=stylesheet href=s.css><a href=z>z</a>")
    stub = Stub("a", [*rest, home, held("s.css", b"p {}"), page("z")])
    run = complete(tmp_path, stub)
    assert run().is_done
    own = [uri.removeprefix(SITE) for uri in stub.fetched]
    assert (own[0], set(own[1:3])) == ("", {"s.css", "z"})
    assert len(own) == 23


def test_crawl_traps_and_duplicates_are_left_out_and_reported(tmp_path: Path) -> None:
    """They are counted by their reason, and fetched if that is asked for."""
    stub = Stub(
        "a",
        [
            page(""),
            page("a/b/a/b/a/b/c"),
            page("calendar/2091/07/"),
            page("article", body=b"<p>article"),
            page("article?utm_source=mail", body=b"<p>article"),
            page("article?utm_source=other", body=b"<p>another article"),
            page("shop?id=1", body=b"<p>one"),
            page("shop?id=1&visit=9f86d081884c7d659a2feaa0c55ad015", body=b"<p>one"),
            page("gone", status=404),
            held("away", b"", status=302, redirect="http://elsewhere.example/"),
        ],
    )
    run = complete(tmp_path, stub)
    result = run()
    assert result.is_done
    assert result.left_out == {TRAP: 1, CALENDAR: 1, DUPLICATE: 2, NO_CONTENT: 2}
    assert run.outcome().keys() == {"", "article", "article?utm_source=other", "shop?id=1"}
    with StateReader(tmp_path) as state:
        assert dict(state.skipped_urls())[f"{SITE}article?utm_source=mail"] == DUPLICATE
    run.with_defaults(include_left_out=True)
    assert run().left_out == {NO_CONTENT: 2}
    assert {"a/b/a/b/a/b/c", "calendar/2091/07/", "article?utm_source=mail"} <= run.outcome().keys()


def test_a_robots_file_that_is_an_error_is_left_out(tmp_path: Path) -> None:
    """It is listed, and reported as left out with its reason, like any other listed error that no page links to."""
    run = complete(tmp_path, Stub("a", [page(""), page("robots.txt", status=404)]))
    result = run()
    assert result.is_done
    assert result.left_out == {NO_CONTENT: 1}
    assert (result.counts[ResourceStatus.LISTED], result.counts[ResourceStatus.MISSING]) == (1, 0)


def test_urls_with_session_ids_are_one_resource_and_counted(tmp_path: Path) -> None:
    """Their captures are those of the URL without the id, and the report says how many there are."""
    ids = [f"{number:032x}" for number in range(3)]
    run = complete(tmp_path, Stub("a", [page(""), *(page(f"shop?PHPSESSID={each}") for each in ids)]))
    assert run().session_ids == 3
    assert len(run.outcome()) == 2
    with StateReader(tmp_path) as state:
        assert state.count_skipped() == {"session-id": 3}


def test_a_common_error_page_makes_no_duplicates(tmp_path: Path) -> None:
    """All successful captures must be the same: a redirect to a login page says nothing, nor does an empty body."""
    ids = ("5f3c9a7b1e2d4c6f8a0b1c2d", "6a4d0b8c2f3e5d7a9b1c2d3e")
    texts = [page(f"article?id={each}", body=each.encode(), date="20120101000000") for each in ids]
    logins = [held(f"article?id={each}", b"", "text/html", status=302, redirect="/login") for each in ids]
    empties = [held(f"article?id={each}", b"", "text/html", date="20150101000000") for each in ids]
    run = complete(tmp_path, Stub("a", [page(""), *texts, *logins, *empties]))
    assert run().left_out == {}
    assert run.outcome().keys() == {"", *(f"article?id={each}" for each in ids)}


def test_a_listed_capture_that_cannot_be_had_is_missing(tmp_path: Path) -> None:
    """It is not left out on purpose: the archive says that it has it."""
    stub = Stub("a", [page(""), page("gone")])
    fetch = stub.fetch

    async def absent(capture: Capture) -> FetchedCapture | None:
        return None if capture.uri.endswith("gone") else await fetch(capture)

    stub.fetch = absent  # type: ignore[method-assign]
    run = complete(tmp_path, stub)
    result = run()
    assert (result.counts[ResourceStatus.MISSING], result.left_out) == (1, {})
    assert run.outcome()["gone"] is None


def test_a_page_alone_takes_nothing_that_is_only_listed(tmp_path: Path) -> None:
    """Also if the listing of the whole site is known from an earlier run."""
    stub = Stub("a", [page("", "one"), page("one"), held("s.css", b"p {}")])
    run = complete(tmp_path, stub, limit=1)
    run()
    run.with_defaults(page=True)
    run()
    assert run.outcome().keys() == {""}


def test_reasons_are_those_of_the_last_plan(tmp_path: Path) -> None:
    """What another plan left out, or found missing, is decided again."""
    stub = Stub("a", [page("", "error"), page("error", status=404), page("a/a/a/b"), page("no/x")])
    run = complete(tmp_path, stub, exclude=("/no/",))
    assert run().left_out == {TRAP: 1, OUT_OF_SCOPE: 1}
    run.with_defaults(policy=RecoverPolicy.KNOWLEDGEABLE, exclude=("error",))
    assert run().left_out == {}


def test_what_a_link_leads_to_is_no_duplicate(tmp_path: Path) -> None:
    """It is fetched, so that the link works, but its bytes are not requested twice."""
    stub = Stub("a", [page("", "article?utm_source=mail"), page("article?utm_source=mail", body=b"<p>x")])
    stub.held.append(page("article", body=b"<p>x"))
    run = complete(tmp_path, stub)
    run()
    assert run.outcome().keys() == {"", "article?utm_source=mail", "article"}
    assert len([uri for uri in stub.fetched if "article" in uri]) == 1


def test_listed_urls_out_of_scope_are_left_out(tmp_path: Path) -> None:
    """What is excluded is not fetched, and counted; with a depth, links decide."""
    stub = Stub("a", [page("", "one"), page("one"), page("no/two"), page("three")])
    run = complete(tmp_path, stub, exclude=("/no/",))
    assert run().left_out == {OUT_OF_SCOPE: 1}
    assert run.outcome().keys() == {"", "one", "three"}
    (tmp_path / "deep").mkdir()
    run = complete(tmp_path / "deep", stub, depth=1)
    assert run().left_out == {NOT_LINKED: 2}
    assert run.outcome().keys() == {"", "one"}


def test_a_smaller_plan_fetches_less(tmp_path: Path) -> None:
    """With `--linked-only` after a whole recovery, what came back stays and is no longer part of it."""
    stub = Stub("a", [page("", "one"), page("one"), page("unlinked")])
    run = complete(tmp_path, stub)
    run()
    run.with_defaults(policy=RecoverPolicy.KNOWLEDGEABLE)
    assert run().is_done


@pytest.mark.parametrize("answer", [True, False])
def test_many_listed_urls_need_a_confirmation(tmp_path: Path, *, answer: bool) -> None:
    """Whoever declines gets nothing fetched; whoever agrees is not asked again."""
    stub = Stub("a", [page(""), *(page(f"p{number}") for number in range(CONFIRMATION_THRESHOLD + 1))])
    asked = []

    def confirm(count: int, costs: object, _is_begun: object) -> bool:
        found = costs(1.0)  # type: ignore[operator]
        asked.append((count, sum(each.fetches for each in found)))
        return answer

    run = complete(tmp_path, stub)
    result = run(confirm=confirm, should_stop=lambda: bool(stub.fetched))
    assert asked == [(CONFIRMATION_THRESHOLD + 2, CONFIRMATION_THRESHOLD + 2)]
    assert bool(stub.fetched) is answer
    assert result.unconfirmed == (0 if answer else CONFIRMATION_THRESHOLD + 2)
    assert not result.is_done
    if answer:
        stub.asked.clear()
        run(confirm=confirm, should_stop=lambda: bool(stub.fetched))
        assert len(asked) == 1


def test_a_limit_needs_no_confirmation(tmp_path: Path) -> None:
    """No more than that many are fetched."""
    stub = Stub("a", [page(f"p{number}") for number in range(CONFIRMATION_THRESHOLD + 1)])

    def confirm(count: int, *_: object) -> bool:
        raise AssertionError(count)

    run = complete(tmp_path, stub, limit=2)
    assert run(confirm=confirm).has_reached_limit


@pytest.mark.parametrize("options", [{"include": ("nothing",)}, {"depth": 1}, {"page": True}])
def test_only_what_would_be_fetched_needs_a_confirmation(tmp_path: Path, options: dict[str, object]) -> None:
    """Listed URLs out of scope do not count."""
    stub = Stub("a", [page(""), *(page(f"p{number}") for number in range(CONFIRMATION_THRESHOLD + 1))])

    def confirm(count: int, *_: object) -> bool:
        raise AssertionError(count)

    complete(tmp_path, stub, **options)(confirm=confirm)
    assert stub.fetched == [SITE]


@pytest.mark.parametrize("answer", [True, False])
def test_a_large_listing_that_comes_late_is_confirmed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, answer: bool
) -> None:
    """Whoever has agreed in advance gets it in the same run; others with the next."""
    monkeypatch.setattr(scheduler, "CONFIRMATION_THRESHOLD", 3)
    monkeypatch.setattr(scheduler, "LISTING_TIMEOUT_SECONDS", 0.0)
    asked = []

    def confirm(count: int, _costs: object, is_begun: bool) -> bool:
        asked.append((count, is_begun))
        return answer

    stub = Stub("a", [page(""), *(page(f"p{number}") for number in range(9))])
    run = complete(tmp_path, stub)
    result = run(confirm=confirm)
    assert len(asked) == 1
    assert result.counts[ResourceStatus.RECOVERED] == (10 if answer else 1 - (not asked[0][1]))
    assert result.unconfirmed == (0 if answer else asked[0][0])


def test_archives_without_a_whole_listing_are_named(tmp_path: Path) -> None:
    """One that has no listing API, and one whose listing was cut off."""
    none = Stub("none", [], lister=False)
    cut = Stub("cut", [page("")], error=ListCutError("cut after 1 row", "cut"))
    assert complete(tmp_path, none, cut)().unlistable == {"none": "unsupported", "cut": "cut"}


def test_an_empty_file_is_recovered(tmp_path: Path) -> None:
    """A successful response with no body is what the site had; an older one that is not empty goes before."""
    stub = Stub(
        "a", [page(""), held("empty.css", b""), held("more.css", b""), held("more.css", b"p", date="2010" + DAY[4:])]
    )
    run = complete(tmp_path, stub)
    assert run().is_done
    assert run.outcome() == {"": f"a {DAY}", "empty.css": f"a {DAY}", "more.css": "a 20100101000000"}


# Page requisites on other hosts


def needing(*uris: str) -> Held:
    """Return a home page with images."""
    return Held(SITE, DAY, "".join(f"<img src='{uri}'>" for uri in uris).encode())


def test_page_requisites_of_other_hosts_come_back(tmp_path: Path) -> None:
    """One look-up each, at the archive that has the page first, and none at archives without anything of the site."""
    uris = [f"http://cdn.example/{number}.png" for number in range(2)]
    a = Stub("a", [needing(*uris), *(held(uri, uri.encode(), "image/png") for uri in uris)])
    b = Stub("b", [])
    run = complete(tmp_path, b, a)
    result = run()
    assert result.is_done
    assert run.outcome().keys() == {"", *uris}
    assert result.other_host_lookups == 2
    assert b.asked == ["list http://lost.example"]
    assert not [asked for asked in a.asked if asked.startswith("list") and "cdn" in asked]


def test_one_archive_answers_for_a_requisite_of_another_host(tmp_path: Path) -> None:
    """With several archives that hold the site, a file that none of them has costs one look-up, not one for each."""
    uris = [f"http://{host}.example/logo.png" for host in ("cdn", "img")]
    a = Stub("a", [needing(*uris), held(uris[0], b"logo", "image/png")])
    others = [Stub(name, [Held(SITE, "20120101000000", b"old")]) for name in "bc"]
    run = complete(tmp_path, *others, a)
    result = run()
    assert run.outcome() == {"": f"a {DAY}", uris[0]: f"a {DAY}", uris[1]: None}
    assert result.other_host_lookups == 2
    assert not [asked for other in others for asked in other.asked if ".example/logo" in asked]


def test_more_archives_are_queried_for_a_requisite_on_request(tmp_path: Path) -> None:
    """A later run with a higher `--requisite-lookups` finds what the first left missing."""
    uri = "http://cdn.example/logo.png"
    a = Stub("a", [needing(uri)])
    b = Stub("b", [Held(SITE, "20120101000000", b"old"), held(uri, b"logo", "image/png")])
    run = complete(tmp_path, a, b)
    run()
    assert run.outcome()[uri] is None
    run.with_defaults(requisite_lookups=2)
    assert run().is_done
    assert run.outcome()[uri] == f"b {DAY}"


def test_another_archive_is_queried_for_a_requisite_if_the_first_fails(tmp_path: Path) -> None:
    """A failed query is no answer."""
    uri = "http://cdn.example/logo.png"
    a = Stub("a", [needing(uri)])

    def fail(question: str) -> None:
        if uri in question:
            raise ArchiveError("broken", "a")

    a.before = fail
    b = Stub("b", [Held(SITE, "20120101000000", b"old"), held(uri, b"logo", "image/png")])
    run = complete(tmp_path, a, b)
    run()
    assert run.outcome()[uri] == f"b {DAY}"


def test_many_requisites_of_one_folder_are_listed_at_once(tmp_path: Path) -> None:
    """One listing is cheaper than a look-up for each."""
    uris = [f"http://cdn.example/img/{number}.png" for number in range(30)]
    a = Stub("a", [needing(*uris), *(held(uri, uri.encode(), "image/png") for uri in uris[:-1])])
    run = complete(tmp_path, a)
    result = run(connections=2)
    assert run.outcome()[uris[0]] == f"a {DAY}"
    assert run.outcome()[uris[-1]] is None
    assert result.other_host_lookups == 2
    assert [asked for asked in a.asked if asked.startswith(("list", "captures")) and "cdn" in asked] == [
        "list http://cdn.example/img/"
    ]


@pytest.mark.parametrize("caps", [{"requisite_files": 2}, {"requisite_bytes": 1}])
def test_requisites_of_other_hosts_are_capped(tmp_path: Path, caps: dict[str, int]) -> None:
    """Beyond the cap they are left out, and counted, over all runs."""
    first, second = ([f"http://cdn.example/{page}/{number}.png" for number in range(2)] for page in "12")
    files = [held(uri, uri.encode(), "image/png") for uri in first + second]
    next_page = Held(f"{SITE}two", DAY, "".join(f"<img src='{uri}'>" for uri in second).encode())
    home = Held(SITE, DAY, ("".join(f"<img src='{uri}'>" for uri in first) + "<a href=two>two</a>").encode())
    run = complete(tmp_path, Stub("a", [home, next_page, *files]), **caps)
    for _ in range(2):
        run(connections=1)
        assert run.outcome().keys() == {"", "two", *first}


# Another query


def test_another_query_is_shown_where_the_right_one_is_not_archived(tmp_path: Path) -> None:
    """Of a style sheet, the capture closest to the page in time; of a page, never."""
    home = Held(SITE, DAY, b"<link rel=stylesheet href='x.css?v=2'><a href='list?page=2'>2</a>")
    stub = Stub(
        "a",
        [
            home,
            held("x.css?v=1", b"1", date="20131201000000"),
            held("x.css?v=9", b"9", date="20190101000000"),
            page("list?page=1"),
        ],
    )
    run = complete(tmp_path, stub)
    result = run()
    assert result.is_done
    assert (result.counts[ResourceStatus.SUBSTITUTED], result.counts[ResourceStatus.MISSING]) == (1, 1)
    assert run.outcome()["list?page=2"] is None
    with StateReader(tmp_path) as state:
        (found,) = [each for each in state.finished_resources() if each.substitute]
        assert (found.uri, found.substitute) == (f"{SITE}x.css?v=2", f"{SITE}x.css?v=1")
        assert dict(state.aliases())["lost.example/x.css?v=2"] == "lost.example/x.css?v=1"
    stub.held.append(held("x.css?v=2", b"2"))
    assert run().is_done
    assert run.outcome()["x.css?v=2"] == f"a {DAY}"
    with StateReader(tmp_path) as state:
        assert not [each for each in state.finished_resources() if each.substitute]


def test_a_substitute_is_the_capture_closest_in_time(tmp_path: Path) -> None:
    """If no link points to it, it needs to fit this page alone."""
    home = Held(SITE, DAY, b"<script src='x.js?v=2'></script>")
    dates = ("20100101000000", "20131201000000", "20200101000000")
    stub = Stub("a", [home, *(held("x.js", date.encode(), "text/javascript", date) for date in dates)])
    run = complete(tmp_path, stub)
    run()
    assert run.outcome()["x.js"] == "a 20131201000000"


def test_a_run_that_is_stopped_keeps_substitutes_for_the_next(tmp_path: Path) -> None:
    """What is still queued is not missing."""
    home = Held(SITE, DAY, b"<script src='x.js?v=2'></script>")
    stub = Stub("a", [home, held("x.js", b"1", "text/javascript")])
    run = complete(tmp_path, stub, limit=1)
    assert run(connections=1).counts[ResourceStatus.MISSING] == 0
    run.with_defaults()
    assert run().counts[ResourceStatus.SUBSTITUTED] == 1


def test_an_id_that_is_used_again_is_no_substitute(tmp_path: Path) -> None:
    """A guess that no archive has goes, and what gets its number has nothing to do with it."""
    home = Held(SITE, DAY, b"<link rel=stylesheet href='x.css?v=1'><a href=one>one</a>")
    stub = Stub("a", [home, page("one", "two"), page("two", "three"), page("three")], lister=False)
    run = complete(tmp_path, stub)
    assert run(connections=1).counts[ResourceStatus.SUBSTITUTED] == 0
    assert run.outcome()["x.css?v=1"] is None


def test_without_listings_the_path_alone_is_looked_up(tmp_path: Path) -> None:
    """It is not missing itself if it is not there."""
    home = Held(SITE, DAY, b"<link rel=stylesheet href='x.css?v=2'><link rel=stylesheet href='y.css?v=2'>")
    stub = Stub("a", [home, held("x.css", b"x")], lister=False)
    run = complete(tmp_path, stub)
    result = run()
    assert result.counts[ResourceStatus.SUBSTITUTED] == 1
    assert run.outcome() == {"": f"a {DAY}", "x.css": f"a {DAY}", "x.css?v=2": f"a {DAY}", "y.css?v=2": None}


# Letter case


def test_a_server_that_ignores_letter_case_is_detected(tmp_path: Path) -> None:
    """Where the same bytes are under several spellings, these are one resource, also of pages with other bytes."""
    stub = Stub(
        "a",
        [
            page("", "About.asp", "LOGO.gif"),
            *(page(name, body=b"<p>about") for name in ("About.asp", "about.asp")),
            *(held(name, b"GIF", "image/gif") for name in ("logo.gif", "LOGO.gif")),
            page("News.asp", body=b"<p>news at noon"),
            page("news.asp", body=b"<p>news at noon", date="20150101000000"),
        ],
    )
    run = complete(tmp_path, stub)
    assert run().is_done
    assert {uri.lower() for uri in run.outcome()} == {"", "about.asp", "logo.gif", "news.asp"}
    assert len(run.outcome()) == 4
    assert run.told("case-insensitive") == [{"merged": 3}]
    with StateReader(tmp_path) as state:
        assert state.is_case_insensitive


def test_other_bytes_speak_for_letter_case(tmp_path: Path) -> None:
    """A server with different pages under such URLs tells them apart; the same error page everywhere says nothing."""
    pairs = [(f"{letter}.html", f"{letter.upper()}.html") for letter in "abcdef"]
    soft = [page(name, body=b"<p>welcome") for pair in pairs[:3] for name in pair]
    other = [page(name, body=name.encode()) for pair in pairs[3:] for name in pair]
    run = complete(tmp_path, Stub("a", [page(""), *soft, *other]))
    run()
    assert len(run.outcome()) == 13
    assert run.told("case-insensitive") == []


def test_the_defaults_of_a_plan() -> None:
    """They are those of the command, the API and the service."""
    plan = RecoverOptions(SITE)
    assert (plan.policy, plan.page_requisites, plan.drop_rejected) == (RecoverPolicy.COMPLETE, True, False)
    assert (plan.requisite_files, plan.requisite_bytes, plan.requisite_lookups) == (5_000, 1 << 30, 1)
