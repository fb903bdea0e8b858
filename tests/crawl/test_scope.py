"""Scope of a crawl."""

import pytest

from unlost.crawl import CrawlConfig, CrawlScope, ScopeType
from unlost.errors import UriError
from unlost.html import LinkKind
from unlost.uri import page_name

START = "http://www.example.com/a/b.html"
CASES = [
    # the host: whatever the scheme and `www`, with its port
    ("https://example.com/", LinkKind.PAGE, {}, None),
    ("http://example.com:8080/", LinkKind.PAGE, {}, "elsewhere"),
    ("http://sub.example.com/", LinkKind.PAGE, {}, "elsewhere"),
    ("http://sub.example.com/", LinkKind.PAGE, {"reach": ScopeType.DOMAIN}, None),
    ("http://badexample.com/", LinkKind.PAGE, {"reach": ScopeType.DOMAIN}, "elsewhere"),
    ("http://example.com.evil.example/", LinkKind.PAGE, {"reach": ScopeType.DOMAIN}, "elsewhere"),
    # the folder holds pages only
    ("http://example.com/a/c", LinkKind.PAGE, {"reach": ScopeType.PREFIX}, None),
    ("http://example.com/ac", LinkKind.PAGE, {"reach": ScopeType.PREFIX}, "outside"),
    ("http://example.com/a/../c", LinkKind.PAGE, {"reach": ScopeType.PREFIX}, "outside"),
    ("http://example.com/c.png", LinkKind.REQUISITE, {"reach": ScopeType.PREFIX}, None),
    ("http://example.com/sitemap.xml", LinkKind.LIST, {"reach": ScopeType.PREFIX}, None),
    # requisites of other hosts, if enabled
    ("http://cdn.example.org/c.png", LinkKind.REQUISITE, {}, "elsewhere"),
    ("http://cdn.example.org/c.png", LinkKind.REQUISITE, {"foreign_parts": True}, None),
    ("http://cdn.example.org/c.html", LinkKind.PAGE, {"foreign_parts": True}, "elsewhere"),
    # disabled kinds of links
    ("http://example.com/", LinkKind.PAGE, {"links": False}, "unwanted"),
    ("http://example.com/i.png", LinkKind.REQUISITE, {"parts": False}, "unwanted"),
    ("http://example.com/s.xml", LinkKind.LIST, {"sitemaps": False}, "unwanted"),
    # expressions; lists need not match `include`
    ("http://example.com/x", LinkKind.PAGE, {"include": ("/y",)}, "excluded"),
    ("http://example.com/s.xml", LinkKind.LIST, {"include": ("/y",)}, None),
    ("http://example.com/s.xml", LinkKind.LIST, {"exclude": ("xml$",)}, "excluded"),
    # hops and depth
    ("http://example.com/x/y/z", LinkKind.PAGE, {"depth": 1}, "too-deep"),
    ("http://example.com/x/y", LinkKind.PAGE, {"depth": 1}, None),
    ("http://example.com/x", LinkKind.PAGE, {"hops": 1}, "too-far"),
    ("http://example.com/x.png", LinkKind.REQUISITE, {"hops": 1}, None),
    # seeds and extra URLs are always in scope
    (START, LinkKind.PAGE, {"hops": 0, "depth": 0, "exclude": (".",), "links": False}, None),
    ("http://other.example/e", LinkKind.PAGE, {"extra": ("http://other.example/e",)}, None),
    ("http://other.example/f", LinkKind.PAGE, {"extra": ("http://other.example/e",)}, "elsewhere"),
]


@pytest.mark.parametrize(("uri", "use", "options", "reason"), CASES)
def test_exclusion_reasons(uri: str, use: LinkKind, options: dict[str, object], reason: str | None) -> None:
    """Reason of exclusion for links two hops from the seed."""
    scope = CrawlScope.from_config(CrawlConfig((START,), **options))  # type: ignore[arg-type]
    assert scope.exclusion_reason(uri, page_name(uri), use, 2) == reason


def test_home_directory_is_a_folder() -> None:
    """`/~joe` is a folder even without a slash."""
    scope = CrawlScope.from_config(CrawlConfig(("http://example.com/~joe",), reach=ScopeType.PREFIX))
    assert scope.exclusion_reason("http://example.com/~joe/a", "example.com/~joe/a", LinkKind.PAGE, 1) is None
    assert scope.exclusion_reason("http://example.com/~ann/", "example.com/~ann", LinkKind.PAGE, 1) == "outside"


def test_invalid_url_is_rejected() -> None:
    """The error is raised before the first request."""
    with pytest.raises(UriError):
        CrawlScope.from_config(CrawlConfig(("mailto:me@example.com",)))
