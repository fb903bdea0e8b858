"""Requests of Chromium for a rewritten page."""

from urllib.parse import urljoin

import pytest
from playwright.sync_api import Browser, Route

from unlost.html import LinkKind, rewrite_links

pytestmark = pytest.mark.browser

OLD = "http://old.example/d/p.html"
NEW = "http://new.example/copy/p.html"

PAGE = r"""<!DOCTYPE html><meta charset=CHARSET><base href="/b/">
<meta http-equiv=Content-Security-Policy content="default-src http://old.example"><title>ソ表</title>
<link rel=stylesheet href="s.css" integrity="sha256-AAAA" crossorigin=anonymous>
<style>@import 'i.css'; p { background: url(a\29.png) } div { background: url("ソ&'.png") }</style>
<p style="border-image: url(&quot;c.png&quot;)">ソ<div>表</div>
<img src=d.png><img src='e&amp;f.png?x=1&amp;y=2'><img srcset="g.png 1x, no.png 9x"><img src="left.png">
<iframe srcdoc="<img src='h.png'>"></iframe><iframe src='j.html#top'></iframe>
<svg><image href="k.png" width=9 height=9 /><use xlink:href="#none"/></svg><video poster=l.png></video>
<input type=image src=m.png><object data=n.png></object><script src="o.js" integrity="sha256-AAAA"></script>
<table background=q.png><tr><td background='r.png'>x</table><picture><source srcset='t,u.png'><img src=no.png></picture>
"""
# The browser's requests, relative to the base.
EXPECTED_PATHS = [
    "s.css",
    "i.css",
    "a).png",
    "ソ&'.png",
    "c.png",
    "d.png",
    "e&f.png?x=1&y=2",
    "g.png",
    "left.png",
    "h.png",
    "j.html",
    "k.png",
    "l.png",
    "m.png",
    "n.png",
    "o.js",
    "q.png",
    "r.png",
    "t,u.png",
]


def requested_urls(browser: Browser, url: str, body: bytes, mime: str) -> set[str]:
    """Return the URLs that the browser requests for a page."""
    requested: set[str] = set()

    def fulfill(route: Route) -> None:
        if route.request.url == url:
            route.fulfill(body=body, content_type=mime)
            return
        requested.add(route.request.url)
        kind = {"css": "text/css", "html": "text/html", "js": "text/javascript"}
        route.fulfill(body="", content_type=kind.get(route.request.url.rsplit(".", 1)[-1], "image/png"))

    page = browser.new_page()
    try:
        page.route("**/*", fulfill)
        page.goto(url, wait_until="networkidle")
    finally:
        page.close()
    return requested


def rewrite_page(charset: str) -> tuple[bytes, dict[str, str]]:
    """Return the rewritten page and the replacements; `left.png` has none."""
    new: dict[str, str] = {}

    def replace(uri: str, _: LinkKind) -> str | None:
        if uri.endswith("left.png"):
            return None
        # Chromium's preload scanner reads imports without decoding escapes.
        name = (
            "&a=b.css"
            if uri.endswith(".css")
            else "&a='b'(c),d;e=%20." + uri.split("?", maxsplit=1)[0].rsplit(".", 1)[-1]
        )
        return new.setdefault(uri, f"img/{len(new)}{name}")

    body = PAGE.replace("CHARSET", charset).encode(charset)
    result = rewrite_links(body, "text/html", OLD, None, replace, drop_base=True, drop_integrity=True, drop_csp=True)
    assert result.has_csp
    return result.body, new


@pytest.mark.parametrize("charset", ["utf-8", "shift_jis"])
def test_browser_requests_replaced_urls(browser: Browser, charset: str) -> None:
    """The browser requests all replacements, the unreplaced URL, and nothing else."""
    body, new = rewrite_page(charset)
    requested = requested_urls(browser, NEW, body, "text/html")
    unused = {new[uri] for uri in new if uri.endswith("/no.png")}
    expected = {urljoin(NEW, url) for url in new.values() if url not in unused}
    assert {uri.replace("%27", "'") for uri in requested} == expected | {"http://old.example/b/left.png"}


def test_browser_requests_same_number_of_original_urls(browser: Browser) -> None:
    """The original page without policy and hashes has as many requests."""
    body = PAGE.replace("CHARSET", "utf-8").replace("-Security", "-No").replace("integrity", "no").encode()
    requested = requested_urls(browser, OLD, body, "text/html")
    assert len(requested) == len(EXPECTED_PATHS)


def test_browser_comparison_detects_kept_base(browser: Browser) -> None:
    """A page whose base and policy were not dropped fails the comparison."""
    _, new = rewrite_page("utf-8")
    body = PAGE.replace("CHARSET", "utf-8").encode()
    result = rewrite_links(body, "text/html", OLD, None, lambda uri, _: new.get(uri))
    requested = requested_urls(browser, NEW, result.body, "text/html")
    assert not requested & {urljoin(NEW, url) for url in new.values()}
