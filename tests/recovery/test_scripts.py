"""Tests of URLs that occur only in scripts: they are recovered if listed, and never missing."""

from pathlib import Path

import pytest

from tests.recovery.recovery_runner import SITE, RecoveryRunner, page
from tests.recovery.stub_archive import Held, Stub
from unlost.errors import FailedError, ListCutError
from unlost.recovery import RecoverPolicy
from unlost.recovery.state import ResourceStatus

DAY = "20140101000000"


def page_with_script(path: str, *named: str, links: tuple[str, ...] = ()) -> Held:
    """Return a page whose script contains URLs."""
    strings = ", ".join(f"'{each}'" for each in named)
    body = "".join(f"<a href='{link}'>x</a>" for link in links) + f"<script>show([{strings}])</script>"
    return page(path, body=f"<title>{path}</title>{body}".encode())


def image_capture(path: str, **more: object) -> Held:
    """Return an image."""
    return Held(SITE + path, DAY, b"GIF89a " + path.encode(), "image/gif", **more)  # type: ignore[arg-type]


def requests_with(stub: Stub, part: str) -> list[str]:
    """Return the requests that contain a text."""
    return [request for request in stub.requests if part in request]


def test_only_listed_guesses_are_requested(tmp_path: Path) -> None:
    """A listed guess is recovered; an unlisted one costs no request and is not missing."""
    stub = Stub(
        "a",
        [page_with_script("", "/a.gif", "/never.gif", "/page.html"), image_capture("a.gif"), page("page.html", "b")],
    )
    run = RecoveryRunner(tmp_path, stub)
    result = run()
    day = f"a {DAY}"
    assert run.outcome() == {"": day, "a.gif": day, "page.html": day, "b": None}
    assert result.is_done
    assert requests_with(stub, "never") == []
    assert [fields["uri"] for fields in run.events_of("missing")] == [f"{SITE}b"]
    assert result.counts[ResourceStatus.LISTED] == 0


def test_scripts_and_data_in_files_are_read(tmp_path: Path) -> None:
    """Script files and JSON data are searched for URLs, too."""
    script = Held(f"{SITE}s.js", DAY, b"load('/data.json')", "application/javascript")
    data = Held(f"{SITE}data.json", DAY, b'{"src": "\\/a.gif"}', "application/json")
    start = page("", body=b"<title>x</title><script src=s.js></script>")
    run = RecoveryRunner(tmp_path, Stub("a", [start, script, data, image_capture("a.gif")]))
    run()
    assert run.outcome().keys() == {"", "s.js", "data.json", "a.gif"}


def test_event_handlers_and_data_attributes_are_read(tmp_path: Path) -> None:
    """Their listed URLs are recovered; unlisted ones are neither requested nor missing."""
    start = page(
        "",
        body=b"<body onload=\"loadHTML('header','generics/header.html')\" data-next='/next' data-json='[\"/j.gif\"]'>"
        b"<p onclick='go(&quot;/never.html&quot;)' data-tab=about data-type=text/html data-x=/never.gif>",
    )
    held = [start, page("generics/header.html"), page("next"), image_capture("j.gif"), page("about"), page("text/html")]
    stub = Stub("a", held)
    run = RecoveryRunner(tmp_path, stub, policy=RecoverPolicy.KNOWLEDGEABLE)
    run()
    assert run.outcome().keys() == {"", "generics/header.html", "next", "j.gif"}
    assert requests_with(stub, "never") == []


def test_lazily_loaded_images_are_recovered(tmp_path: Path) -> None:
    """Attributes of lazy loading are links to requisites."""
    start = page(
        "",
        body=b"<img data-lazy-src=a.gif data-lazy-srcset='b.gif 1x, c.gif 2x'><img data-original=d.gif>"
        b"<div data-bg=e.gif></div><div data-bg='url(f.gif)' data-original='red'></div>"
        b"<div data-background-image='/g.gif'></div><img data-src=h.gif data-srcset='i.gif 2x'>",
    )
    names = [f"{letter}.gif" for letter in "abcdefghi"]
    run = RecoveryRunner(
        tmp_path, Stub("a", [start, *map(image_capture, names[:-1])]), policy=RecoverPolicy.KNOWLEDGEABLE
    )
    run()
    assert run.outcome() == {"": f"a {DAY}", **dict.fromkeys(names, f"a {DAY}"), "i.gif": None}


def test_linked_guess_is_missing(tmp_path: Path) -> None:
    """A URL that is also linked is missing, in whatever order it is found."""
    held = [
        page_with_script("", "/x.html", links=("one",)),
        page("one", "/x.html", "/y.html"),
        page_with_script("two", "/y.html"),
    ]
    run = RecoveryRunner(tmp_path, Stub("a", [*held]), policy=RecoverPolicy.NAIVE)
    run()
    assert run.outcome() == {"": f"a {DAY}", "one": f"a {DAY}", "x.html": None, "y.html": None}


def test_listed_guess_with_only_bad_captures_is_not_missing(tmp_path: Path) -> None:
    """It stays listed."""
    gone = page("x.html", body=b"<title>Page not found</title><h1>Page not found</h1>")
    run = RecoveryRunner(
        tmp_path, Stub("a", [page_with_script("", "/x.html", "/e.gif"), gone, image_capture("e.gif", status=404)])
    )
    result = run()
    assert run.outcome() == {"": f"a {DAY}"}
    assert (result.counts[ResourceStatus.LISTED], result.is_done) == (2, True)


@pytest.mark.parametrize("is_naive", [True, False])
def test_guesses_without_listings_are_limited_and_requested_last(tmp_path: Path, *, is_naive: bool) -> None:
    """At most fifty per page are requested, once each, after all links."""
    guesses = [f"/never-{number}.gif" for number in range(80)]
    held = [page_with_script("", "/a.gif", *guesses, links=("one", "two")), image_capture("a.gif")]
    held += [page_with_script("one", *guesses[:5], links=("three",)), page("two"), page("three")]
    stub = Stub("a", held, lister=False)
    run = RecoveryRunner(tmp_path, stub, policy=RecoverPolicy.NAIVE if is_naive else RecoverPolicy.KNOWLEDGEABLE)
    result = run(connections=1)
    assert run.outcome().keys() == {"", "a.gif", "one", "two", "three"}
    assert result.is_done
    never = requests_with(stub, "never")
    assert len(never) == len(set(never)) == 49
    assert max(stub.requests.index(f"fetch {DAY} {SITE}{path}") for path in ("two", "three")) < stub.requests.index(
        never[0]
    )
    assert run.events_of("missing") == []


def test_total_number_of_guesses_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit holds for all pages together."""
    monkeypatch.setattr("unlost.recovery.frontier._MAX_GUESSES", 30)
    names = [f"p{number}" for number in range(10)]
    held = [page("", *names)] + [
        page_with_script(name, *(f"/{name}/never-{i}.gif" for i in range(10))) for name in names
    ]
    stub = Stub("a", held)
    run = RecoveryRunner(tmp_path, stub, policy=RecoverPolicy.NAIVE)
    run()
    assert len(requests_with(stub, "never")) == 30


def test_later_listing_confirms_earlier_guess(tmp_path: Path) -> None:
    """A guess of the first run is recovered once an archive lists it."""
    start = page_with_script("", "/a.gif", "/never.gif")
    one, other = Stub("a", [start]), Stub("b", [image_capture("a.gif")], error=FailedError("down", "b", "timeout"))
    run = RecoveryRunner(tmp_path, one, other)
    run()
    assert run.outcome() == {"": f"a {DAY}"}
    run.archives = (one, Stub("b", [image_capture("a.gif")]))
    run()
    assert run.outcome() == {"": f"a {DAY}", "a.gif": f"b {DAY}"}
    assert not requests_with(other, "never")


def test_unarchived_guess_is_requested_again(tmp_path: Path) -> None:
    """A later run looks the guess up again, as it does for missing resources."""
    stub = Stub("a", [page_with_script("", "/a.gif")], lister=False)
    run = RecoveryRunner(tmp_path, stub)
    run()
    assert run.outcome() == {"": f"a {DAY}"}
    stub.held.append(image_capture("a.gif"))
    run()
    assert run.outcome() == {"": f"a {DAY}", "a.gif": f"a {DAY}"}


def test_truncated_listing_counts_for_guesses(tmp_path: Path) -> None:
    """Guesses that are not in it are not requested."""
    stub = Stub("a", [page_with_script("", "/never.gif")], error=ListCutError("a", "too long"))
    run = RecoveryRunner(tmp_path, stub)
    run()
    assert requests_with(stub, "never") == []


def test_guesses_out_of_scope_are_not_requested(tmp_path: Path) -> None:
    """Other hosts, excluded URLs and pages that are too deep are not requested."""
    other, held = "http://b.example/b.gif", image_capture("no/c.gif")
    guesses = page_with_script("", other, "/no/c.gif", "/d.html", links=())
    stub = Stub("a", [guesses, held, page("d.html"), Held(other, DAY, b"GIF89a", "image/gif")])
    run = RecoveryRunner(tmp_path, stub, page_requisites=True, exclude=("/no/",), depth=0, policy=RecoverPolicy.NAIVE)
    run()
    assert run.outcome() == {"": f"a {DAY}"}
    assert stub.fetched == [SITE]
    assert requests_with(stub, "b.example") == []


def test_changed_scope_reconsiders_guesses(tmp_path: Path) -> None:
    """Guesses out of the first scope are recovered by the second run without fetching pages again."""
    stub = Stub("a", [page_with_script("", "/no/c.gif"), image_capture("no/c.gif")])
    run = RecoveryRunner(tmp_path, stub, exclude=("/no/",))
    run()
    assert run.outcome().keys() == {""}
    wider = RecoveryRunner(tmp_path, stub)
    wider()
    assert wider.outcome().keys() == {"", "no/c.gif"}
    assert stub.fetched.count(SITE) == 1


def test_given_url_is_missing_despite_script(tmp_path: Path) -> None:
    """A URL from the options is not a guess."""
    run = RecoveryRunner(
        tmp_path, Stub("a", [page_with_script("", "/x.html")]), policy=RecoverPolicy.NAIVE, urls=(f"{SITE}x.html",)
    )
    run()
    assert run.outcome() == {"": f"a {DAY}", "x.html": None}
