"""What belongs to a site that is being recovered."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.uri import strategies
from unlost import uri as addresses
from unlost.archives.prefix import Prefix
from unlost.crawl.bounds import SEARCHED
from unlost.errors import UriError, UsageError
from unlost.pages.link import Use
from unlost.recover.plan import Plan
from unlost.recover.scope import Scope
from unlost.uri.naming import name_of

PREFIXES = [
    ("http://www.Example.com", {}, "http://example.com"),
    ("http://example.com/", {}, "http://example.com"),
    ("http://example.com/index.html", {}, "http://example.com"),
    ("http://example.com/about", {}, "http://example.com"),
    ("http://example.com/?page=/a/b", {}, "http://example.com"),
    ("example.com/a/", {}, "http://example.com/a/"),
    ("http://example.com/a/b.html?c=d/e#f/g", {}, "http://example.com/a/"),
    ("http://example.com/x/../A%20b/c", {}, "http://example.com/A%20b/"),
    ("http://foo.edu/~joe", {}, "http://foo.edu/~joe/"),
    ("http://foo.edu/%7Ejoe/pub/", {}, "http://foo.edu/%7Ejoe/pub/"),
    ("https://me:secret@example.com:8443/a/", {}, "http://example.com:8443/a/"),
    ("http://[::1]:81/", {}, "http://[::1]:81"),
    ("http://www.example.com/a/", {"subdomains": True}, "*.example.com"),
    ("http://example.com:8080/", {"subdomains": True}, "*.example.com"),
    ("http://127.0.0.1:8080/", {"subdomains": True}, "http://127.0.0.1:8080"),
]


@pytest.mark.parametrize(("url", "options", "prefix"), PREFIXES)
def test_archives_are_asked_for_the_folder_of_the_start(url: str, options: dict[str, bool], prefix: str) -> None:
    """Listers get the folder, the host or the domain, as they take it."""
    scope = Scope.of(Plan(url, **options))  # type: ignore[arg-type]
    assert scope.prefixes == (prefix,)
    Prefix.below(prefix)


def test_for_named_pages_nothing_is_listed() -> None:
    """With `--page`, each page is asked for by its address."""
    assert Scope.of(Plan("http://example.com/", page=True)).prefixes == ()


SITE = "http://www.example.com/a/"
ADMITTED = [
    # pages: the folder itself and what is below it, whatever the scheme, `www` and final slash
    (SITE, Use.PAGE, {}, True),
    ("http://example.com/a", Use.PAGE, {}, True),
    ("https://example.com/a/b/c.html", Use.PAGE, {}, True),
    ("http://example.com:80/a/?b=1", Use.PAGE, {}, True),
    ("http://example.com/ab", Use.PAGE, {}, False),
    ("http://example.com/", Use.PAGE, {}, False),
    ("http://example.com/a/../b", Use.PAGE, {}, False),
    ("http://example.com/A/b", Use.PAGE, {}, False),
    ("http://example.com/A/b", Use.PAGE, {"ignore_case": True}, True),
    ("http://example.com:8080/a/b", Use.PAGE, {}, False),
    ("http://sub.example.com/a/b", Use.PAGE, {}, False),
    ("http://sub.example.com/x", Use.PAGE, {"subdomains": True}, True),
    ("http://sub.example.com:81/x", Use.PAGE, {"subdomains": True}, False),
    ("http://notexample.com/a/b", Use.PAGE, {"subdomains": True}, False),
    ("http://example.com/x", Use.PAGE, {"subdomains": True}, False),
    ("http://other.example/a/b", Use.PAGE, {}, False),
    # what pages need: anywhere, or only on the site's hosts
    ("http://example.com/logo.png", Use.REQUISITE, {}, True),
    ("http://cdn.example/logo.png", Use.REQUISITE, {}, True),
    ("http://cdn.example/logo.png", Use.REQUISITE, {"page_requisites": False}, False),
    ("http://img.example.com/logo.png", Use.REQUISITE, {"page_requisites": False}, False),
    ("http://img.example.com/logo.png", Use.REQUISITE, {"subdomains": True, "page_requisites": False}, True),
    ("http://example.com/logo.png", Use.REQUISITE, {"page": True}, True),
    # lists: on the site's hosts
    ("http://example.com/sitemap2.xml", Use.LIST, {}, True),
    ("http://other.example/sitemap.xml", Use.LIST, {}, False),
    ("http://example.com/sitemap.xml", Use.LIST, {"page": True}, False),
    ("http://example.com/sitemap.xml", Use.LIST, {"include": (r"\.html$",)}, True),
    ("http://example.com/sitemap.xml", Use.LIST, {"exclude": ("sitemap",)}, False),
    # only what was named
    ("http://example.com/a/b", Use.PAGE, {"page": True}, False),
    ("http://example.com/a/index.html", Use.PAGE, {"page": True}, True),
    ("http://other.example/x", Use.PAGE, {"page": True, "urls": ("http://other.example/x",)}, True),
    ("http://other.example/x/", Use.PAGE, {"urls": ("http://www.other.example/x",), "exclude": (".",)}, True),
    ("http://other.example/y", Use.PAGE, {"urls": ("http://other.example/x",)}, False),
    ("http://other.example/y.css", Use.REQUISITE, {"urls": ("http://other.example/x",)}, True),
    # expressions are searched for anywhere in the address
    ("http://example.com/a/b.html", Use.PAGE, {"include": ("nothing", "b.html")}, True),
    ("http://example.com/a/b.html", Use.PAGE, {"include": ("^b",)}, False),
    ("http://example.com/a/b.html", Use.PAGE, {"include": ("b",), "exclude": ("html$",)}, False),
    ("http://example.com/a/B.html", Use.PAGE, {"exclude": ("b.html",)}, True),
    ("http://example.com/a/B.html", Use.PAGE, {"exclude": ("b.html",), "ignore_case": True}, False),
    (SITE, Use.PAGE, {"include": ("nothing",)}, True),
    # what is no page
    ("mailto:me@example.com", Use.PAGE, {}, False),
    ("ftp://example.com/a/b", Use.PAGE, {}, False),
    ("data:,x", Use.REQUISITE, {}, False),
    ("http://exa mple.com/", Use.REQUISITE, {}, False),
    ("", Use.PAGE, {}, False),
]


@pytest.mark.parametrize(("uri", "use", "options", "expected"), ADMITTED)
def test_what_is_wanted(uri: str, use: Use, options: dict[str, object], expected: bool) -> None:
    """Every rule of the scope, with what it lets in and what it keeps out."""
    assert Scope.of(Plan(SITE, **options)).admits(uri, use, 1) is expected  # type: ignore[arg-type]


def test_depth_counts_for_pages_and_lists_and_not_for_what_they_need() -> None:
    """A page at the greatest depth is shown whole, and no link of it is followed."""
    scope = Scope.of(Plan(SITE, depth=2))
    far, near = f"{SITE}far", f"{SITE}near"
    assert scope.admits(near, Use.PAGE, 2)
    assert not scope.admits(far, Use.PAGE, 3)
    assert not scope.admits("http://example.com/feed.xml", Use.LIST, 3)
    assert scope.admits(f"{SITE}far.css", Use.REQUISITE, 3)
    assert Scope.of(Plan(SITE, depth=0)).admits(SITE, Use.PAGE, 0)


def test_a_redirect_is_judged_by_its_host() -> None:
    """Another folder of the host is not elsewhere; another port or host is."""
    scope = Scope.of(Plan(SITE, urls=("http://other.example/x",)))
    own = ["http://example.com/b/", "https://www.example.com/", "http://other.example/"]
    foreign = [
        "http://example.com:81/",
        "http://sub.example.com/",
        "http://example.org/",
        "mailto:a@example.com",
        "http://",
    ]
    assert all(map(scope.is_own, own))
    assert not any(map(scope.is_own, foreign))
    assert Scope.of(Plan(SITE, subdomains=True)).is_own("http://a.b.example.com/")


def test_beginnings_are_pages_and_lists() -> None:
    """The start, the further addresses, each page once, and where lists are kept; no password is passed on."""
    plan = Plan("http://me:pw@www.Example.com/a?b#c", urls=("http://x.example/", "https://example.com/a/?b"))
    pages = (("http://www.Example.com/a?b", Use.PAGE), ("http://x.example/", Use.PAGE))
    lists = (("http://www.Example.com/robots.txt", Use.LIST), ("http://www.Example.com/sitemap.xml", Use.LIST))
    assert Scope.of(plan).beginnings() == pages + lists
    assert Scope.of(Plan(plan.url, urls=plan.urls, page=True)).beginnings() == pages


@pytest.mark.parametrize("expression", ["(", "a**", "(?P<", "[z-a]", "x{99999999999999999999}"])
def test_a_bad_expression_is_named(expression: str) -> None:
    """Who mistyped an expression is told which."""
    for plan in (Plan(SITE, include=(expression,)), Plan(SITE, exclude=("fine", expression))):
        with pytest.raises(UsageError) as caught:
            Scope.of(plan)
        assert expression in str(caught.value)


def test_expressions_see_the_beginning_of_long_addresses() -> None:
    """What an expression costs is bounded, whatever a page links to."""
    scope = Scope.of(Plan(SITE, exclude=("x+y",)))
    assert scope.admits(SITE + "x" * 1_000_000, Use.PAGE, 1)
    assert scope.admits(SITE + "z" * SEARCHED + "xy", Use.PAGE, 1)
    assert not scope.admits(SITE + "xy", Use.PAGE, 1)


@pytest.mark.parametrize("plan", [Plan("mailto:a@example.com"), Plan("http://"), Plan(SITE, urls=("ftp://a.com/",))])
def test_a_start_that_is_no_page_is_refused(plan: Plan) -> None:
    """Nothing can begin there."""
    with pytest.raises(UriError):
        Scope.of(plan)


@given(strategies.uris(), strategies.uris(), st.sampled_from(Use), st.booleans(), st.booleans(), st.booleans())
@example("http://a.com/~%2F/", "http://a.com/~%2F/x", Use.PAGE, False, False, False)
@example("http://com? #", "http://a.com/", Use.PAGE, False, False, False)
@example("http://com?\xa0", "http://a.com/", Use.PAGE, True, False, False)
@example("http://a.com/x\\y/z", "http://a.com/x/y/", Use.PAGE, False, False, False)
def test_scopes_hold_together(
    start: str, other: str, use: Use, page: bool, subdomains: bool, ignore_case: bool
) -> None:
    """Beginnings are wanted; spellings of one page are judged alike; pages are on own hosts and in what is listed."""
    plan = Plan(start, page=page, subdomains=subdomains, ignore_case=ignore_case, page_requisites=False)
    scope = Scope.of(plan)
    assert all(scope.admits(uri, each, 0) for uri, each in scope.beginnings())
    assert name_of(scope.beginnings()[0][0]) == name_of(start)
    admitted = scope.admits(other, use, 1)
    assert scope.admits(f"http://{name_of(other)}", use, 1) == admitted
    if admitted:
        assert scope.is_own(other)
    for prefix in scope.prefixes:
        listed = Prefix.below(prefix)
        if "%" in start:
            continue  # keys decode what is escaped twice, and question marks
        # Keys keep the port of the other scheme, which names do not know.
        assert listed.covers(re.sub(r":(80|443)\)", ")", addresses.key(start)))
