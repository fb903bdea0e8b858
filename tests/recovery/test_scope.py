"""Tests of the scope of a recovery."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.uri import strategies
from unlost import uri as uris
from unlost.archives import PrefixQuery
from unlost.crawl import MAX_SEARCHED_CHARS
from unlost.errors import UriError, UsageError
from unlost.html import LinkKind
from unlost.recovery import RecoverOptions, RecoveryScope
from unlost.uri import page_name

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
def test_prefix_is_folder_host_or_domain_of_the_start(url: str, options: dict[str, bool], prefix: str) -> None:
    """Archives are queried for the folder, the host or the domain."""
    scope = RecoveryScope.of(RecoverOptions(url, **options))  # type: ignore[arg-type]
    assert scope.prefixes == (prefix,)
    PrefixQuery.parse(prefix)


def test_single_pages_have_no_prefix() -> None:
    """With `--page`, each page is looked up by its URL."""
    assert RecoveryScope.of(RecoverOptions("http://example.com/", page=True)).prefixes == ()


SITE = "http://www.example.com/a/"
SCOPE_CASES = [
    # pages: the folder itself and what is below it, whatever the scheme, `www` and final slash
    (SITE, LinkKind.PAGE, {}, True),
    ("http://example.com/a", LinkKind.PAGE, {}, True),
    ("https://example.com/a/b/c.html", LinkKind.PAGE, {}, True),
    ("http://example.com:80/a/?b=1", LinkKind.PAGE, {}, True),
    ("http://example.com/ab", LinkKind.PAGE, {}, False),
    ("http://example.com/", LinkKind.PAGE, {}, False),
    ("http://example.com/a/../b", LinkKind.PAGE, {}, False),
    ("http://example.com/A/b", LinkKind.PAGE, {}, False),
    ("http://example.com/A/b", LinkKind.PAGE, {"ignore_case": True}, True),
    ("http://example.com:8080/a/b", LinkKind.PAGE, {}, False),
    ("http://sub.example.com/a/b", LinkKind.PAGE, {}, False),
    ("http://sub.example.com/x", LinkKind.PAGE, {"subdomains": True}, True),
    ("http://sub.example.com:81/x", LinkKind.PAGE, {"subdomains": True}, False),
    ("http://notexample.com/a/b", LinkKind.PAGE, {"subdomains": True}, False),
    ("http://example.com/x", LinkKind.PAGE, {"subdomains": True}, False),
    ("http://other.example/a/b", LinkKind.PAGE, {}, False),
    # what pages need: anywhere, or only on the site's hosts
    ("http://example.com/logo.png", LinkKind.REQUISITE, {}, True),
    ("http://cdn.example/logo.png", LinkKind.REQUISITE, {}, True),
    ("http://cdn.example/logo.png", LinkKind.REQUISITE, {"page_requisites": False}, False),
    ("http://img.example.com/logo.png", LinkKind.REQUISITE, {"page_requisites": False}, False),
    ("http://img.example.com/logo.png", LinkKind.REQUISITE, {"subdomains": True, "page_requisites": False}, True),
    ("http://example.com/logo.png", LinkKind.REQUISITE, {"page": True}, True),
    # lists: on the site's hosts
    ("http://example.com/sitemap2.xml", LinkKind.LIST, {}, True),
    ("http://other.example/sitemap.xml", LinkKind.LIST, {}, False),
    ("http://example.com/sitemap.xml", LinkKind.LIST, {"page": True}, False),
    ("http://example.com/sitemap.xml", LinkKind.LIST, {"include": (r"\.html$",)}, True),
    ("http://example.com/sitemap.xml", LinkKind.LIST, {"exclude": ("sitemap",)}, False),
    # only named pages
    ("http://example.com/a/b", LinkKind.PAGE, {"page": True}, False),
    ("http://example.com/a/index.html", LinkKind.PAGE, {"page": True}, True),
    ("http://other.example/x", LinkKind.PAGE, {"page": True, "urls": ("http://other.example/x",)}, True),
    ("http://other.example/x/", LinkKind.PAGE, {"urls": ("http://www.other.example/x",), "exclude": (".",)}, True),
    ("http://other.example/y", LinkKind.PAGE, {"urls": ("http://other.example/x",)}, False),
    ("http://other.example/y.css", LinkKind.REQUISITE, {"urls": ("http://other.example/x",)}, True),
    # expressions match anywhere in the URL
    ("http://example.com/a/b.html", LinkKind.PAGE, {"include": ("nothing", "b.html")}, True),
    ("http://example.com/a/b.html", LinkKind.PAGE, {"include": ("^b",)}, False),
    ("http://example.com/a/b.html", LinkKind.PAGE, {"include": ("b",), "exclude": ("html$",)}, False),
    ("http://example.com/a/B.html", LinkKind.PAGE, {"exclude": ("b.html",)}, True),
    ("http://example.com/a/B.html", LinkKind.PAGE, {"exclude": ("b.html",), "ignore_case": True}, False),
    (SITE, LinkKind.PAGE, {"include": ("nothing",)}, True),
    # invalid pages
    ("mailto:me@example.com", LinkKind.PAGE, {}, False),
    ("ftp://example.com/a/b", LinkKind.PAGE, {}, False),
    ("data:,x", LinkKind.REQUISITE, {}, False),
    ("http://exa mple.com/", LinkKind.REQUISITE, {}, False),
    ("", LinkKind.PAGE, {}, False),
]


@pytest.mark.parametrize(("uri", "use", "options", "expected"), SCOPE_CASES)
def test_scope_admits_expected_urls(uri: str, use: LinkKind, options: dict[str, object], expected: bool) -> None:
    """Every rule of the scope, with admitted and rejected URLs."""
    assert RecoveryScope.of(RecoverOptions(SITE, **options)).admits(uri, use, 1) is expected  # type: ignore[arg-type]


def test_depth_applies_to_pages_and_lists_but_not_requisites() -> None:
    """A page at the greatest depth is recovered with its requisites, and its links are not followed."""
    scope = RecoveryScope.of(RecoverOptions(SITE, depth=2))
    far, near = f"{SITE}far", f"{SITE}near"
    assert scope.admits(near, LinkKind.PAGE, 2)
    assert not scope.admits(far, LinkKind.PAGE, 3)
    assert not scope.admits("http://example.com/feed.xml", LinkKind.LIST, 3)
    assert scope.admits(f"{SITE}far.css", LinkKind.REQUISITE, 3)
    assert RecoveryScope.of(RecoverOptions(SITE, depth=0)).admits(SITE, LinkKind.PAGE, 0)


def test_redirect_ownership_depends_on_host() -> None:
    """Another folder of the host belongs to the site; another port or host does not."""
    scope = RecoveryScope.of(RecoverOptions(SITE, urls=("http://other.example/x",)))
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
    assert RecoveryScope.of(RecoverOptions(SITE, subdomains=True)).is_own("http://a.b.example.com/")


def test_seeds_are_distinct_pages_and_lists() -> None:
    """The start, further URLs and the default lists are seeds, without passwords."""
    plan = RecoverOptions("http://me:pw@www.Example.com/a?b#c", urls=("http://x.example/", "https://example.com/a/?b"))
    pages = (("http://www.Example.com/a?b", LinkKind.PAGE), ("http://x.example/", LinkKind.PAGE))
    lists = (
        ("http://www.Example.com/robots.txt", LinkKind.LIST),
        ("http://www.Example.com/sitemap.xml", LinkKind.LIST),
    )
    assert RecoveryScope.of(plan).seeds() == pages + lists
    assert RecoveryScope.of(RecoverOptions(plan.url, urls=plan.urls, page=True)).seeds() == pages


@pytest.mark.parametrize("expression", ["(", "a**", "(?P<", "[z-a]", "x{99999999999999999999}"])
def test_invalid_expression_is_named_in_the_error(expression: str) -> None:
    """The error contains the expression."""
    for plan in (RecoverOptions(SITE, include=(expression,)), RecoverOptions(SITE, exclude=("fine", expression))):
        with pytest.raises(UsageError) as caught:
            RecoveryScope.of(plan)
        assert expression in str(caught.value)


def test_expressions_match_only_the_beginning_of_long_urls() -> None:
    """The cost of an expression is bounded, whatever a page links to."""
    scope = RecoveryScope.of(RecoverOptions(SITE, exclude=("x+y",)))
    assert scope.admits(SITE + "x" * 1_000_000, LinkKind.PAGE, 1)
    assert scope.admits(SITE + "z" * MAX_SEARCHED_CHARS + "xy", LinkKind.PAGE, 1)
    assert not scope.admits(SITE + "xy", LinkKind.PAGE, 1)


@pytest.mark.parametrize(
    "plan",
    [RecoverOptions("mailto:a@example.com"), RecoverOptions("http://"), RecoverOptions(SITE, urls=("ftp://a.com/",))],
)
def test_invalid_start_url_is_refused(plan: RecoverOptions) -> None:
    """A start without http(s) or host is refused."""
    with pytest.raises(UriError):
        RecoveryScope.of(plan)


@given(strategies.uris(), strategies.uris(), st.sampled_from(LinkKind), st.booleans(), st.booleans(), st.booleans())
@example("http://a.com/~%2F/", "http://a.com/~%2F/x", LinkKind.PAGE, False, False, False)
@example("http://com? #", "http://a.com/", LinkKind.PAGE, False, False, False)
@example("http://com?\xa0", "http://a.com/", LinkKind.PAGE, True, False, False)
@example("http://a.com/x\\y/z", "http://a.com/x/y/", LinkKind.PAGE, False, False, False)
def test_scope_invariants_hold_for_any_urls(
    start: str, other: str, use: LinkKind, page: bool, subdomains: bool, ignore_case: bool
) -> None:
    """Seeds are admitted, spellings of a page are treated alike, and pages are on own hosts and in a prefix."""
    plan = RecoverOptions(start, page=page, subdomains=subdomains, ignore_case=ignore_case, page_requisites=False)
    scope = RecoveryScope.of(plan)
    assert all(scope.admits(uri, each, 0) for uri, each in scope.seeds())
    assert page_name(scope.seeds()[0][0]) == page_name(start)
    admitted = scope.admits(other, use, 1)
    assert scope.admits(f"http://{page_name(other)}", use, 1) == admitted
    if admitted:
        assert scope.is_own(other)
    for prefix in scope.prefixes:
        listed = PrefixQuery.parse(prefix)
        if "%" in start:
            continue  # keys decode double escapes and question marks
        # Keys keep the port of the other scheme, which names do not know.
        assert listed.covers(re.sub(r":(80|443)\)", ")", uris.key(start)))
