"""What only scripts name: looked for where lists know it, and never missed."""

from pathlib import Path

import pytest

from tests.recover.running import SITE, Run, page
from tests.recover.stubs import Held, Stub
from unlost.errors import FailedError, ListCutError
from unlost.recover import RecoverPolicy
from unlost.recover.state import ResourceStatus

DAY = "20140101000000"


def scripted(path: str, *named: str, links: tuple[str, ...] = ()) -> Held:
    """Return a page whose script names addresses."""
    strings = ", ".join(f"'{each}'" for each in named)
    body = "".join(f"<a href='{link}'>x</a>" for link in links) + f"<script>show([{strings}])</script>"
    return page(path, body=f"<title>{path}</title>{body}".encode())


def picture(path: str, **more: object) -> Held:
    """Return a picture."""
    return Held(SITE + path, DAY, b"GIF89a " + path.encode(), "image/gif", **more)  # type: ignore[arg-type]


def asked_for(stub: Stub, part: str) -> list[str]:
    """Return what an archive was asked about addresses with this in them."""
    return [question for question in stub.asked if part in question]


def test_what_lists_have_comes_and_nobody_is_asked_for_the_rest(tmp_path: Path) -> None:
    """A guess that is listed is recovered; one that is not costs nothing, and is not missing."""
    stub = Stub("a", [scripted("", "/a.gif", "/never.gif", "/page.html"), picture("a.gif"), page("page.html", "b")])
    run = Run(tmp_path, stub)
    result = run()
    day = f"a {DAY}"
    assert run.outcome() == {"": day, "a.gif": day, "page.html": day, "b": None}
    assert result.is_done
    assert asked_for(stub, "never") == []
    assert [fields["uri"] for fields in run.told("missing")] == [f"{SITE}b"]
    assert result.counts[ResourceStatus.LISTED] == 0


def test_scripts_and_data_in_files_are_read(tmp_path: Path) -> None:
    """What a script names that a page needs is wanted, too, and so on."""
    script = Held(f"{SITE}s.js", DAY, b"load('/data.json')", "application/javascript")
    data = Held(f"{SITE}data.json", DAY, b'{"src": "\\/a.gif"}', "application/json")
    start = page("", body=b"<title>x</title><script src=s.js></script>")
    run = Run(tmp_path, Stub("a", [start, script, data, picture("a.gif")]))
    run()
    assert run.outcome().keys() == {"", "s.js", "data.json", "a.gif"}


def test_event_handlers_and_data_attributes_are_read(tmp_path: Path) -> None:
    """What is listed of the URLs in them is recovered; what is not listed is neither requested nor missing."""
    start = page(
        "",
        body=b"<body onload=\"loadHTML('header','generics/header.html')\" data-next='/next' data-json='[\"/j.gif\"]'>"
        b"<p onclick='go(&quot;/never.html&quot;)' data-tab=about data-type=text/html data-x=/never.gif>",
    )
    held = [start, page("generics/header.html"), page("next"), picture("j.gif"), page("about"), page("text/html")]
    stub = Stub("a", held)
    run = Run(tmp_path, stub, policy=RecoverPolicy.KNOWLEDGEABLE)
    run()
    assert run.outcome().keys() == {"", "generics/header.html", "next", "j.gif"}
    assert asked_for(stub, "never") == []


def test_lazily_loaded_images_are_recovered(tmp_path: Path) -> None:
    """Attributes of lazy loading are links: what they name is needed to show the page."""
    start = page(
        "",
        body=b"<img data-lazy-src=a.gif data-lazy-srcset='b.gif 1x, c.gif 2x'><img data-original=d.gif>"
        b"<div data-bg=e.gif></div><div data-bg='url(f.gif)' data-original='red'></div>"
        b"<div data-background-image='/g.gif'></div><img data-src=h.gif data-srcset='i.gif 2x'>",
    )
    names = [f"{letter}.gif" for letter in "abcdefghi"]
    run = Run(tmp_path, Stub("a", [start, *map(picture, names[:-1])]), policy=RecoverPolicy.KNOWLEDGEABLE)
    run()
    assert run.outcome() == {"": f"a {DAY}", **dict.fromkeys(names, f"a {DAY}"), "i.gif": None}


def test_a_guess_that_a_page_links_to_is_missing(tmp_path: Path) -> None:
    """Whoever links to it says that it was there; in whatever order that is seen."""
    held = [scripted("", "/x.html", links=("one",)), page("one", "/x.html", "/y.html"), scripted("two", "/y.html")]
    run = Run(tmp_path, Stub("a", [*held]), policy=RecoverPolicy.NAIVE)
    run()
    assert run.outcome() == {"": f"a {DAY}", "one": f"a {DAY}", "x.html": None, "y.html": None}


def test_a_listed_guess_of_which_all_copies_are_bad_is_not_missing(tmp_path: Path) -> None:
    """It stays listed."""
    gone = page("x.html", body=b"<title>Page not found</title><h1>Page not found</h1>")
    run = Run(tmp_path, Stub("a", [scripted("", "/x.html", "/e.gif"), gone, picture("e.gif", status=404)]))
    result = run()
    assert run.outcome() == {"": f"a {DAY}"}
    assert (result.counts[ResourceStatus.LISTED], result.is_done) == (2, True)


@pytest.mark.parametrize("is_naive", [True, False])
def test_without_lists_some_guesses_are_asked_for_and_last(tmp_path: Path, *, is_naive: bool) -> None:
    """Fifty of a page, each once however many pages name it, when all links were followed."""
    guesses = [f"/never-{number}.gif" for number in range(80)]
    held = [scripted("", "/a.gif", *guesses, links=("one", "two")), picture("a.gif")]
    held += [scripted("one", *guesses[:5], links=("three",)), page("two"), page("three")]
    stub = Stub("a", held, lister=False)
    run = Run(tmp_path, stub, policy=RecoverPolicy.NAIVE if is_naive else RecoverPolicy.KNOWLEDGEABLE)
    result = run(connections=1)
    assert run.outcome().keys() == {"", "a.gif", "one", "two", "three"}
    assert result.is_done
    never = asked_for(stub, "never")
    assert len(never) == len(set(never)) == 49
    assert max(stub.asked.index(f"fetch {DAY} {SITE}{path}") for path in ("two", "three")) < stub.asked.index(never[0])
    assert run.told("missing") == []


def test_guesses_that_pages_make_up_have_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many pages name others, so many are asked for in all."""
    monkeypatch.setattr("unlost.recover.frontier._MAX_GUESSES", 30)
    names = [f"p{number}" for number in range(10)]
    held = [page("", *names)] + [scripted(name, *(f"/{name}/never-{i}.gif" for i in range(10))) for name in names]
    stub = Stub("a", held)
    run = Run(tmp_path, stub, policy=RecoverPolicy.NAIVE)
    run()
    assert len(asked_for(stub, "never")) == 30


def test_a_list_that_comes_later_knows_what_a_script_named_before(tmp_path: Path) -> None:
    """What was read in the first run is wanted when an archive tells in the second that it has it."""
    start = scripted("", "/a.gif", "/never.gif")
    one, other = Stub("a", [start]), Stub("b", [picture("a.gif")], error=FailedError("down", "b", "timeout"))
    run = Run(tmp_path, one, other)
    run()
    assert run.outcome() == {"": f"a {DAY}"}
    run.archives = (one, Stub("b", [picture("a.gif")]))
    run()
    assert run.outcome() == {"": f"a {DAY}", "a.gif": f"b {DAY}"}
    assert not asked_for(other, "never")


def test_what_archives_gain_is_found(tmp_path: Path) -> None:
    """A guess that nobody had is looked for again when all was done, as what is missing is."""
    stub = Stub("a", [scripted("", "/a.gif")], lister=False)
    run = Run(tmp_path, stub)
    run()
    assert run.outcome() == {"": f"a {DAY}"}
    stub.held.append(picture("a.gif"))
    run()
    assert run.outcome() == {"": f"a {DAY}", "a.gif": f"a {DAY}"}


def test_a_list_that_was_cut_is_a_list(tmp_path: Path) -> None:
    """What it has not is not asked for, though the archive may hold it."""
    stub = Stub("a", [scripted("", "/never.gif")], error=ListCutError("a", "too long"))
    run = Run(tmp_path, stub)
    run()
    assert asked_for(stub, "never") == []


def test_the_scope_holds_for_guesses(tmp_path: Path) -> None:
    """Other hosts are not asked for, not even with their requisites; neither is what is excluded, or too deep."""
    other, held = "http://b.example/b.gif", picture("no/c.gif")
    guesses = scripted("", other, "/no/c.gif", "/d.html", links=())
    stub = Stub("a", [guesses, held, page("d.html"), Held(other, DAY, b"GIF89a", "image/gif")])
    run = Run(tmp_path, stub, page_requisites=True, exclude=("/no/",), depth=0, policy=RecoverPolicy.NAIVE)
    run()
    assert run.outcome() == {"": f"a {DAY}"}
    assert stub.fetched == [SITE]
    assert asked_for(stub, "b.example") == []


def test_with_another_scope_guesses_are_made_anew(tmp_path: Path) -> None:
    """What was beyond the scope of the first run is looked for in the second, without asking for pages again."""
    stub = Stub("a", [scripted("", "/no/c.gif"), picture("no/c.gif")])
    run = Run(tmp_path, stub, exclude=("/no/",))
    run()
    assert run.outcome().keys() == {""}
    wider = Run(tmp_path, stub)
    wider()
    assert wider.outcome().keys() == {"", "no/c.gif"}
    assert stub.fetched.count(SITE) == 1


def test_an_address_that_was_given_is_missing_whoever_else_names_it(tmp_path: Path) -> None:
    """A script that names it makes it no guess."""
    run = Run(tmp_path, Stub("a", [scripted("", "/x.html")]), policy=RecoverPolicy.NAIVE, urls=(f"{SITE}x.html",))
    run()
    assert run.outcome() == {"": f"a {DAY}", "x.html": None}
