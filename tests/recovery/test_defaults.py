"""Tests of the default options: everything that an archive holds is recovered."""

from pathlib import Path

import pytest

from tests.recovery.recovery_runner import SITE, RecoveryRunner, page
from tests.recovery.stub_archive import Held, Stub
from unlost.archives import FetchedCapture
from unlost.capture import Capture
from unlost.errors import ArchiveError, ListCutError
from unlost.recovery import (
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
from unlost.recovery.state import ResourceStatus, StateReader

DAY = "20140101000000"


def recovery_with_defaults(folder: Path, *archives: Stub, **plan: object) -> RecoveryRunner:
    """Return a recovery with the default options, except for these."""
    return RecoveryRunner(folder, *archives).with_defaults(**plan)


def held(path: str, body: bytes, mime: str = "text/css", date: str = DAY, **more: object) -> Held:
    """Return a file of the site, or of another host."""
    uri = path if "://" in path else SITE + path
    return Held(uri, date, body, mime, **more)  # type: ignore[arg-type]


def test_unlinked_listed_resources_are_recovered(tmp_path: Path) -> None:
    """Listed resources without a link are fetched, too."""
    run = recovery_with_defaults(
        tmp_path, Stub("a", [page("", "one"), page("one"), page("unlinked", "two"), page("two")])
    )
    result = run()
    assert result.is_done
    assert run.outcome() == dict.fromkeys(("", "one", "unlinked", "two"), f"a {DAY}")
    assert result.counts[ResourceStatus.LISTED] == 0


def test_redirecting_home_page_does_not_prevent_recovery(tmp_path: Path) -> None:
    """The rest of the site is listed and recovered."""
    home = Held(SITE, DAY, b"", status=301, redirect=f"{SITE}en/")
    run = recovery_with_defaults(tmp_path, Stub("a", [home, page("en/"), page("page-data/app.json"), page("app.js")]))
    assert run().is_done
    assert run.outcome().keys() == {"", "en/", "page-data/app.json", "app.js"}


def test_linked_resources_precede_only_listed_ones(tmp_path: Path) -> None:
    """The start page comes first, then its links and requisites, then resources that are only listed."""
    rest = [page(f"a{number}") for number in range(20)]
    home = Held(SITE, DAY, b"<link rel=stylesheet href=s.css><a href=z>z</a>")
    stub = Stub("a", [*rest, home, held("s.css", b"p {}"), page("z")])
    run = recovery_with_defaults(tmp_path, stub)
    assert run().is_done
    own = [uri.removeprefix(SITE) for uri in stub.fetched]
    assert (own[0], set(own[1:3])) == ("", {"s.css", "z"})
    assert len(own) == 23


def test_crawl_traps_and_duplicates_are_left_out_and_reported(tmp_path: Path) -> None:
    """They are counted by reason, and fetched with `include_left_out`."""
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
    run = recovery_with_defaults(tmp_path, stub)
    result = run()
    assert result.is_done
    assert result.left_out == {TRAP: 1, CALENDAR: 1, DUPLICATE: 2, NO_CONTENT: 2}
    assert run.outcome().keys() == {"", "article", "article?utm_source=other", "shop?id=1"}
    with StateReader(tmp_path) as state:
        assert dict(state.skipped_urls())[f"{SITE}article?utm_source=mail"] == DUPLICATE
    run.with_defaults(include_left_out=True)
    assert run().left_out == {NO_CONTENT: 2}
    assert {"a/b/a/b/a/b/c", "calendar/2091/07/", "article?utm_source=mail"} <= run.outcome().keys()


def test_robots_txt_with_error_status_is_left_out(tmp_path: Path) -> None:
    """It is reported as left out with its reason, like any other listed error without a link."""
    run = recovery_with_defaults(tmp_path, Stub("a", [page(""), page("robots.txt", status=404)]))
    result = run()
    assert result.is_done
    assert result.left_out == {NO_CONTENT: 1}
    assert (result.counts[ResourceStatus.LISTED], result.counts[ResourceStatus.MISSING]) == (1, 0)


def test_urls_with_session_ids_are_one_resource_and_counted(tmp_path: Path) -> None:
    """Their captures are those of the URL without the id, and the report counts them."""
    ids = [f"{number:032x}" for number in range(3)]
    run = recovery_with_defaults(tmp_path, Stub("a", [page(""), *(page(f"shop?PHPSESSID={each}") for each in ids)]))
    assert run().session_ids == 3
    assert len(run.outcome()) == 2
    with StateReader(tmp_path) as state:
        assert state.count_skipped() == {"session-id": 3}


def test_shared_error_pages_are_not_duplicates(tmp_path: Path) -> None:
    """URLs are duplicates only if all successful captures are equal; redirects and empty bodies do not count."""
    ids = ("5f3c9a7b1e2d4c6f8a0b1c2d", "6a4d0b8c2f3e5d7a9b1c2d3e")
    texts = [page(f"article?id={each}", body=each.encode(), date="20120101000000") for each in ids]
    logins = [held(f"article?id={each}", b"", "text/html", status=302, redirect="/login") for each in ids]
    empties = [held(f"article?id={each}", b"", "text/html", date="20150101000000") for each in ids]
    run = recovery_with_defaults(tmp_path, Stub("a", [page(""), *texts, *logins, *empties]))
    assert run().left_out == {}
    assert run.outcome().keys() == {"", *(f"article?id={each}" for each in ids)}


def test_unfetchable_listed_capture_is_missing(tmp_path: Path) -> None:
    """It is missing and not left out, since the archive lists it."""
    stub = Stub("a", [page(""), page("gone")])
    fetch = stub.fetch

    async def absent(capture: Capture) -> FetchedCapture | None:
        return None if capture.uri.endswith("gone") else await fetch(capture)

    stub.fetch = absent  # type: ignore[method-assign]
    run = recovery_with_defaults(tmp_path, stub)
    result = run()
    assert (result.counts[ResourceStatus.MISSING], result.left_out) == (1, {})
    assert run.outcome()["gone"] is None


def test_single_page_ignores_listed_resources(tmp_path: Path) -> None:
    """This also holds if an earlier run has listed the whole site."""
    stub = Stub("a", [page("", "one"), page("one"), held("s.css", b"p {}")])
    run = recovery_with_defaults(tmp_path, stub, limit=1)
    run()
    run.with_defaults(page=True)
    run()
    assert run.outcome().keys() == {""}


def test_left_out_reasons_follow_current_options(tmp_path: Path) -> None:
    """Resources that other options left out or missed are decided again."""
    stub = Stub("a", [page("", "error"), page("error", status=404), page("a/a/a/b"), page("no/x")])
    run = recovery_with_defaults(tmp_path, stub, exclude=("/no/",))
    assert run().left_out == {TRAP: 1, OUT_OF_SCOPE: 1}
    run.with_defaults(policy=RecoverPolicy.KNOWLEDGEABLE, exclude=("error",))
    assert run().left_out == {}


def test_linked_duplicate_is_recovered(tmp_path: Path) -> None:
    """It is recovered, so that the link works, but its bytes are not requested twice."""
    stub = Stub("a", [page("", "article?utm_source=mail"), page("article?utm_source=mail", body=b"<p>x")])
    stub.held.append(page("article", body=b"<p>x"))
    run = recovery_with_defaults(tmp_path, stub)
    run()
    assert run.outcome().keys() == {"", "article?utm_source=mail", "article"}
    assert len([uri for uri in stub.fetched if "article" in uri]) == 1


def test_listed_urls_out_of_scope_are_left_out(tmp_path: Path) -> None:
    """Excluded URLs are counted and not fetched; with a depth, links decide."""
    stub = Stub("a", [page("", "one"), page("one"), page("no/two"), page("three")])
    run = recovery_with_defaults(tmp_path, stub, exclude=("/no/",))
    assert run().left_out == {OUT_OF_SCOPE: 1}
    assert run.outcome().keys() == {"", "one", "three"}
    (tmp_path / "deep").mkdir()
    run = recovery_with_defaults(tmp_path / "deep", stub, depth=1)
    assert run().left_out == {NOT_LINKED: 2}
    assert run.outcome().keys() == {"", "one"}


def test_linked_only_run_after_complete_run_is_done(tmp_path: Path) -> None:
    """With `--linked-only` after a complete recovery, nothing is left to do."""
    stub = Stub("a", [page("", "one"), page("one"), page("unlinked")])
    run = recovery_with_defaults(tmp_path, stub)
    run()
    run.with_defaults(policy=RecoverPolicy.KNOWLEDGEABLE)
    assert run().is_done


@pytest.mark.parametrize("is_confirmed", [True, False])
def test_many_listed_urls_require_confirmation(tmp_path: Path, *, is_confirmed: bool) -> None:
    """Without confirmation nothing is fetched; a given confirmation is stored."""
    stub = Stub("a", [page(""), *(page(f"p{number}") for number in range(CONFIRMATION_THRESHOLD + 1))])
    calls = []

    def confirm(count: int, costs: object, _is_begun: object) -> bool:
        found = costs(1.0)  # type: ignore[operator]
        calls.append((count, sum(each.fetches for each in found)))
        return is_confirmed

    run = recovery_with_defaults(tmp_path, stub)
    result = run(confirm=confirm, should_stop=lambda: bool(stub.fetched))
    assert calls == [(CONFIRMATION_THRESHOLD + 2, CONFIRMATION_THRESHOLD + 2)]
    assert bool(stub.fetched) is is_confirmed
    assert result.unconfirmed == (0 if is_confirmed else CONFIRMATION_THRESHOLD + 2)
    assert not result.is_done
    if is_confirmed:
        stub.requests.clear()
        run(confirm=confirm, should_stop=lambda: bool(stub.fetched))
        assert len(calls) == 1


def test_limit_requires_no_confirmation(tmp_path: Path) -> None:
    """With a limit, at most that many are fetched without confirmation."""
    stub = Stub("a", [page(f"p{number}") for number in range(CONFIRMATION_THRESHOLD + 1)])

    def confirm(count: int, *_: object) -> bool:
        raise AssertionError(count)

    run = recovery_with_defaults(tmp_path, stub, limit=2)
    assert run(confirm=confirm).has_reached_limit


@pytest.mark.parametrize("options", [{"include": ("nothing",)}, {"depth": 1}, {"page": True}])
def test_urls_out_of_scope_require_no_confirmation(tmp_path: Path, options: dict[str, object]) -> None:
    """Listed URLs out of scope do not count."""
    stub = Stub("a", [page(""), *(page(f"p{number}") for number in range(CONFIRMATION_THRESHOLD + 1))])

    def confirm(count: int, *_: object) -> bool:
        raise AssertionError(count)

    recovery_with_defaults(tmp_path, stub, **options)(confirm=confirm)
    assert stub.fetched == [SITE]


@pytest.mark.parametrize("is_confirmed", [True, False])
def test_late_large_listing_requires_confirmation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_confirmed: bool
) -> None:
    """Confirmed URLs are fetched in the same run."""
    monkeypatch.setattr(scheduler, "CONFIRMATION_THRESHOLD", 3)
    monkeypatch.setattr(scheduler, "LISTING_TIMEOUT_SECONDS", 0.0)
    calls = []

    def confirm(count: int, _costs: object, is_begun: bool) -> bool:
        calls.append((count, is_begun))
        return is_confirmed

    stub = Stub("a", [page(""), *(page(f"p{number}") for number in range(9))])
    run = recovery_with_defaults(tmp_path, stub)
    result = run(confirm=confirm)
    assert len(calls) == 1
    assert result.counts[ResourceStatus.RECOVERED] == (10 if is_confirmed else 1 - (not calls[0][1]))
    assert result.unconfirmed == (0 if is_confirmed else calls[0][0])


def test_archives_without_complete_listing_are_reported(tmp_path: Path) -> None:
    """One has no listing API, and the listing of the other is truncated."""
    none = Stub("none", [], lister=False)
    cut = Stub("cut", [page("")], error=ListCutError("cut after 1 row", "cut"))
    assert recovery_with_defaults(tmp_path, none, cut)().unlistable == {"none": "unsupported", "cut": "cut"}


def test_empty_file_is_recovered(tmp_path: Path) -> None:
    """A successful empty response is recovered; an older capture with content is preferred."""
    stub = Stub(
        "a", [page(""), held("empty.css", b""), held("more.css", b""), held("more.css", b"p", date="2010" + DAY[4:])]
    )
    run = recovery_with_defaults(tmp_path, stub)
    assert run().is_done
    assert run.outcome() == {"": f"a {DAY}", "empty.css": f"a {DAY}", "more.css": "a 20100101000000"}


# Page requisites on other hosts


def page_with_images(*uris: str) -> Held:
    """Return a home page with images."""
    return Held(SITE, DAY, "".join(f"<img src='{uri}'>" for uri in uris).encode())


def test_page_requisites_of_other_hosts_are_recovered(tmp_path: Path) -> None:
    """Each takes one look-up at the archive that has the page, and none at archives without the site."""
    uris = [f"http://cdn.example/{number}.png" for number in range(2)]
    a = Stub("a", [page_with_images(*uris), *(held(uri, uri.encode(), "image/png") for uri in uris)])
    b = Stub("b", [])
    run = recovery_with_defaults(tmp_path, b, a)
    result = run()
    assert result.is_done
    assert run.outcome().keys() == {"", *uris}
    assert result.other_host_lookups == 2
    assert b.requests == ["list http://lost.example"]
    assert not [requested for requested in a.requests if requested.startswith("list") and "cdn" in requested]


def test_requisite_of_another_host_costs_one_lookup(tmp_path: Path) -> None:
    """A file that no archive has costs one look-up, although several archives hold the site."""
    uris = [f"http://{host}.example/logo.png" for host in ("cdn", "img")]
    a = Stub("a", [page_with_images(*uris), held(uris[0], b"logo", "image/png")])
    others = [Stub(name, [Held(SITE, "20120101000000", b"old")]) for name in "bc"]
    run = recovery_with_defaults(tmp_path, *others, a)
    result = run()
    assert run.outcome() == {"": f"a {DAY}", uris[0]: f"a {DAY}", uris[1]: None}
    assert result.other_host_lookups == 2
    assert not [requested for other in others for requested in other.requests if ".example/logo" in requested]


def test_requisite_lookups_option_queries_more_archives(tmp_path: Path) -> None:
    """A later run with a higher `--requisite-lookups` finds what the first run missed."""
    uri = "http://cdn.example/logo.png"
    a = Stub("a", [page_with_images(uri)])
    b = Stub("b", [Held(SITE, "20120101000000", b"old"), held(uri, b"logo", "image/png")])
    run = recovery_with_defaults(tmp_path, a, b)
    run()
    assert run.outcome()[uri] is None
    run.with_defaults(requisite_lookups=2)
    assert run().is_done
    assert run.outcome()[uri] == f"b {DAY}"


def test_failed_requisite_lookup_queries_next_archive(tmp_path: Path) -> None:
    """A failed look-up does not count as one."""
    uri = "http://cdn.example/logo.png"
    a = Stub("a", [page_with_images(uri)])

    def fail(request: str) -> None:
        if uri in request:
            raise ArchiveError("broken", "a")

    a.before = fail
    b = Stub("b", [Held(SITE, "20120101000000", b"old"), held(uri, b"logo", "image/png")])
    run = recovery_with_defaults(tmp_path, a, b)
    run()
    assert run.outcome()[uri] == f"b {DAY}"


def test_many_requisites_of_a_folder_take_one_listing(tmp_path: Path) -> None:
    """One prefix listing replaces the look-ups."""
    uris = [f"http://cdn.example/img/{number}.png" for number in range(30)]
    a = Stub("a", [page_with_images(*uris), *(held(uri, uri.encode(), "image/png") for uri in uris[:-1])])
    run = recovery_with_defaults(tmp_path, a)
    result = run(connections=2)
    assert run.outcome()[uris[0]] == f"a {DAY}"
    assert run.outcome()[uris[-1]] is None
    assert result.other_host_lookups == 2
    assert [
        requested for requested in a.requests if requested.startswith(("list", "captures")) and "cdn" in requested
    ] == ["list http://cdn.example/img/"]


@pytest.mark.parametrize("caps", [{"requisite_files": 2}, {"requisite_bytes": 1}])
def test_requisites_of_other_hosts_are_capped(tmp_path: Path, caps: dict[str, int]) -> None:
    """Over all runs, requisites beyond the cap are left out."""
    first, second = ([f"http://cdn.example/{page}/{number}.png" for number in range(2)] for page in "12")
    files = [held(uri, uri.encode(), "image/png") for uri in first + second]
    next_page = Held(f"{SITE}two", DAY, "".join(f"<img src='{uri}'>" for uri in second).encode())
    home = Held(SITE, DAY, ("".join(f"<img src='{uri}'>" for uri in first) + "<a href=two>two</a>").encode())
    run = recovery_with_defaults(tmp_path, Stub("a", [home, next_page, *files]), **caps)
    for _ in range(2):
        run(connections=1)
        assert run.outcome().keys() == {"", "two", *first}


# Another query


def test_requisite_with_another_query_is_substituted(tmp_path: Path) -> None:
    """For a requisite the capture closest in time is used; a page is never substituted."""
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
    run = recovery_with_defaults(tmp_path, stub)
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


def test_substitute_is_closest_capture_in_time(tmp_path: Path) -> None:
    """An unlinked substitute is chosen by the date of the page that uses it."""
    home = Held(SITE, DAY, b"<script src='x.js?v=2'></script>")
    dates = ("20100101000000", "20131201000000", "20200101000000")
    stub = Stub("a", [home, *(held("x.js", date.encode(), "text/javascript", date) for date in dates)])
    run = recovery_with_defaults(tmp_path, stub)
    run()
    assert run.outcome()["x.js"] == "a 20131201000000"


def test_stopped_run_defers_substitutes(tmp_path: Path) -> None:
    """Resources that are still queued are not missing."""
    home = Held(SITE, DAY, b"<script src='x.js?v=2'></script>")
    stub = Stub("a", [home, held("x.js", b"1", "text/javascript")])
    run = recovery_with_defaults(tmp_path, stub, limit=1)
    assert run(connections=1).counts[ResourceStatus.MISSING] == 0
    run.with_defaults()
    assert run().counts[ResourceStatus.SUBSTITUTED] == 1


def test_reused_resource_id_is_not_a_substitute(tmp_path: Path) -> None:
    """A discarded guess and the resource that gets its id are unrelated."""
    home = Held(SITE, DAY, b"<link rel=stylesheet href='x.css?v=1'><a href=one>one</a>")
    stub = Stub("a", [home, page("one", "two"), page("two", "three"), page("three")], lister=False)
    run = recovery_with_defaults(tmp_path, stub)
    assert run(connections=1).counts[ResourceStatus.SUBSTITUTED] == 0
    assert run.outcome()["x.css?v=1"] is None


def test_path_without_query_is_looked_up_without_listings(tmp_path: Path) -> None:
    """The URL without its query is not reported as missing."""
    home = Held(SITE, DAY, b"<link rel=stylesheet href='x.css?v=2'><link rel=stylesheet href='y.css?v=2'>")
    stub = Stub("a", [home, held("x.css", b"x")], lister=False)
    run = recovery_with_defaults(tmp_path, stub)
    result = run()
    assert result.counts[ResourceStatus.SUBSTITUTED] == 1
    assert run.outcome() == {"": f"a {DAY}", "x.css": f"a {DAY}", "x.css?v=2": f"a {DAY}", "y.css?v=2": None}


# Letter case


def test_case_insensitive_server_is_detected(tmp_path: Path) -> None:
    """If spellings have equal bytes, all spellings are merged, also those of pages with other bytes."""
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
    run = recovery_with_defaults(tmp_path, stub)
    assert run().is_done
    assert {uri.lower() for uri in run.outcome()} == {"", "about.asp", "logo.gif", "news.asp"}
    assert len(run.outcome()) == 4
    assert run.events_of("case-insensitive") == [{"merged": 3}]
    with StateReader(tmp_path) as state:
        assert state.is_case_insensitive


def test_different_bytes_keep_spellings_apart(tmp_path: Path) -> None:
    """Equal error pages are no evidence for case insensitivity."""
    pairs = [(f"{letter}.html", f"{letter.upper()}.html") for letter in "abcdef"]
    soft = [page(name, body=b"<p>welcome") for pair in pairs[:3] for name in pair]
    other = [page(name, body=name.encode()) for pair in pairs[3:] for name in pair]
    run = recovery_with_defaults(tmp_path, Stub("a", [page(""), *soft, *other]))
    run()
    assert len(run.outcome()) == 13
    assert run.events_of("case-insensitive") == []


def test_default_recover_options() -> None:
    """The command, the API and the service share these defaults."""
    plan = RecoverOptions(SITE)
    assert (plan.policy, plan.page_requisites, plan.drop_rejected) == (RecoverPolicy.COMPLETE, True, False)
    assert (plan.requisite_files, plan.requisite_bytes, plan.requisite_lookups) == (5_000, 1 << 30, 1)
