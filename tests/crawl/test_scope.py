"""What belongs to a site that is visited."""

import pytest

from unlost.crawl.plan import Plan, Reach
from unlost.crawl.scope import Scope
from unlost.errors import UriError
from unlost.pages.link import Use
from unlost.uri.naming import name_of

START = "http://www.example.com/a/b.html"
CASES = [
    # the host: whatever the scheme and `www`, with its port
    ("https://example.com/", Use.PAGE, {}, None),
    ("http://example.com:8080/", Use.PAGE, {}, "elsewhere"),
    ("http://sub.example.com/", Use.PAGE, {}, "elsewhere"),
    ("http://sub.example.com/", Use.PAGE, {"reach": Reach.DOMAIN}, None),
    ("http://badexample.com/", Use.PAGE, {"reach": Reach.DOMAIN}, "elsewhere"),
    ("http://example.com.evil.example/", Use.PAGE, {"reach": Reach.DOMAIN}, "elsewhere"),
    # the folder holds pages only
    ("http://example.com/a/c", Use.PAGE, {"reach": Reach.PREFIX}, None),
    ("http://example.com/ac", Use.PAGE, {"reach": Reach.PREFIX}, "outside"),
    ("http://example.com/a/../c", Use.PAGE, {"reach": Reach.PREFIX}, "outside"),
    ("http://example.com/c.png", Use.REQUISITE, {"reach": Reach.PREFIX}, None),
    ("http://example.com/sitemap.xml", Use.LIST, {"reach": Reach.PREFIX}, None),
    # parts of other hosts, if they are wanted
    ("http://cdn.example.org/c.png", Use.REQUISITE, {}, "elsewhere"),
    ("http://cdn.example.org/c.png", Use.REQUISITE, {"foreign_parts": True}, None),
    ("http://cdn.example.org/c.html", Use.PAGE, {"foreign_parts": True}, "elsewhere"),
    # what is switched off
    ("http://example.com/", Use.PAGE, {"links": False}, "unwanted"),
    ("http://example.com/i.png", Use.REQUISITE, {"parts": False}, "unwanted"),
    ("http://example.com/s.xml", Use.LIST, {"sitemaps": False}, "unwanted"),
    # expressions, which lists need not have in them
    ("http://example.com/x", Use.PAGE, {"include": ("/y",)}, "excluded"),
    ("http://example.com/s.xml", Use.LIST, {"include": ("/y",)}, None),
    ("http://example.com/s.xml", Use.LIST, {"exclude": ("xml$",)}, "excluded"),
    # far and deep
    ("http://example.com/x/y/z", Use.PAGE, {"depth": 1}, "too-deep"),
    ("http://example.com/x/y", Use.PAGE, {"depth": 1}, None),
    ("http://example.com/x", Use.PAGE, {"hops": 1}, "too-far"),
    ("http://example.com/x.png", Use.REQUISITE, {"hops": 1}, None),
    # what was named is always wanted
    (START, Use.PAGE, {"hops": 0, "depth": 0, "exclude": (".",), "links": False}, None),
    ("http://other.example/e", Use.PAGE, {"extra": ("http://other.example/e",)}, None),
    ("http://other.example/f", Use.PAGE, {"extra": ("http://other.example/e",)}, "elsewhere"),
]


@pytest.mark.parametrize(("uri", "use", "options", "reason"), CASES)
def test_reasons(uri: str, use: Use, options: dict[str, object], reason: str | None) -> None:
    """Two links away from the start, an address is wanted, or there is a word for why not."""
    scope = Scope.of(Plan((START,), **options))  # type: ignore[arg-type]
    assert scope.reason_against(uri, name_of(uri), use, 2) == reason


def test_a_user_has_a_folder() -> None:
    """Nobody means the other users of a host."""
    scope = Scope.of(Plan(("http://example.com/~joe",), reach=Reach.PREFIX))
    assert scope.reason_against("http://example.com/~joe/a", "example.com/~joe/a", Use.PAGE, 1) is None
    assert scope.reason_against("http://example.com/~ann/", "example.com/~ann", Use.PAGE, 1) == "outside"


def test_an_address_that_is_none_is_refused() -> None:
    """Before anything is asked for."""
    with pytest.raises(UriError):
        Scope.of(Plan(("mailto:me@example.com",)))
