"""Hostile pages are rewritten in bounded time and memory, and omissions are counted."""

import time

import pytest

from tests.html.hostile_pages import HOSTILE_PAGES
from tests.html.rewrite_options import RewriteOptions
from unlost import _core
from unlost.html import find_urls_in_script, rewrite_links, scan_links

BASE = "http://h.example/d/p.html"
MB = 1 << 20

MORE_HOSTILE_PAGES: dict[str, tuple[bytes, str]] = {
    "entities around addresses": (b"<img srcset='" + b"&quot; x, " * (MB // 10) + b"'>", "text/html"),
    "zeros in a value": (b"<img srcset='" + b"\0 x, " * (MB // 5) + b"'>", "text/html"),
    "a page in a value": (b"<iframe srcdoc='" + b"<a href=&quot;x&amp;amp;y&quot;>" * (MB // 30) + b"'>", "text/html"),
    "codebases": (b"<object codebase=c data=x archive='y z'>" * (MB // 40), "text/html"),
    "bases and forms": (b"<base href=/b/><form action=z>" * (MB // 30), "text/html"),
    "guards": (b"<script src=x integrity=y>" * (MB // 26), "text/html"),
    "guards on one element": (b"<script src=x" + b" integrity" * (MB // 10) + b" crossorigin" * 9 + b">", "text/html"),
    "codebases on one element": (b"<object data=x" + b" codebase=y" * (MB // 11) + b">", "text/html"),
    "policies on one element": (
        b"<meta http-equiv='" + b"a&amp;" * (MB // 12) + b"'" + b" http-equiv" * (MB // 22) + b">",
        "text/html",
    ),
    "charsets on one element": (
        f"<meta http-equiv='{'a&amp;' * (MB // 24)}' {'content=a ' * (MB // 40)}><a href=x>".encode("utf-16"),
        "text/html",
    ),
    "letters without a mark": (b"<a href=" + b"\x83\x5c" * (MB // 2) + b">", "text/html; charset=shift_jis"),
    "marks": (b"<img srcset='" + b"\x83\x5c , " * (MB // 5) + b"'>", "text/html; charset=shift_jis"),
    "escapes in CSS": (b"url(\\78 )" * (MB // 9), "text/css"),
}


@pytest.mark.parametrize("name", [*HOSTILE_PAGES, *MORE_HOSTILE_PAGES])
def test_hostile_page_is_rewritten_in_linear_time(name: str) -> None:
    """One or two megabytes take seconds at most, and without replacements the page is unchanged."""
    body, mime = (HOSTILE_PAGES | MORE_HOSTILE_PAGES)[name]
    before = time.process_time()
    assert rewrite_links(body, mime, BASE, None, lambda *_: None).body == body
    options = RewriteOptions(drop_base=True, drop_integrity=True, drop_csp=True)
    rewrite_links(body, mime, BASE, None, lambda *_: "http://new.example/", **options)
    rewrite_links(body, mime, BASE, None, lambda uri, _: "y" if uri.endswith("x") else None, **options)
    find_urls_in_script(body, BASE)
    assert time.process_time() - before < 15


def test_number_of_rewritten_links_is_limited() -> None:
    """Excess and overlong links remain and are counted."""
    body = b"".join(b"<a href=%d>" % number for number in range(100_002)) + b"<a href=%s>" % (b"x" * 8_000)
    result = rewrite_links(body, "text/html", BASE, None, lambda *_: "y")
    assert (result.changed, result.skipped) == (100_000, 3)
    assert result.body.count(b"href=y>") == 100_000
    assert result.skipped == scan_links(body, "text/html", BASE).omitted


def test_number_of_replacements_is_limited() -> None:
    """A URL is replaced at most a million times."""
    result = rewrite_links(b"<a href=x>" * 1_000_001, "text/html", BASE, None, lambda *_: "y")
    assert (result.changed, result.skipped) == (1_000_000, 1)


def test_growth_of_rewritten_page_is_limited() -> None:
    """A page grows by at most 128 MiB."""
    result = rewrite_links(b"<a href=x>" * 20_000, "text/html", BASE, None, lambda *_: "y" * 8_000)
    assert len(result.body) < 200_000 + 128 * MB
    assert result.changed + result.skipped == 20_000


def test_body_beyond_size_limit_is_not_rewritten() -> None:
    """A body above 32 MiB is unchanged."""
    body = b"<a href=x>" + b" " * _core.MAX_PAGE_BYTES
    result = rewrite_links(body, "text/html", BASE, None, lambda *_: "y")
    assert result.body is body
    assert (result.changed, result.is_truncated) == (0, True)


def test_links_after_many_open_elements_are_rewritten() -> None:
    """Parsing continues after millions of open elements."""
    body = b"<a href=x>" + b"<p>" * 2_000_000 + b"<a href=x>"
    assert rewrite_links(body, "text/html", BASE, None, lambda *_: "y").body == body.replace(b"=x", b"=y")


def test_number_of_script_urls_is_limited() -> None:
    """A script has at most 10,000 candidates."""
    body = b",".join(b"'/%d.png'" % number for number in range(10_001))
    assert len(find_urls_in_script(body, BASE)) == 10_000
