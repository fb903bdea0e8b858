"""What Chromium asks for when it opens a page that was rewritten."""

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
# What a browser asks for of it, below the base.
ASKED = [
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


def requests(browser: Browser, address: str, body: bytes, mime: str) -> set[str]:
    """Return what the browser asks for when it opens a page."""
    asked: set[str] = set()

    def answer(route: Route) -> None:
        if route.request.url == address:
            route.fulfill(body=body, content_type=mime)
            return
        asked.add(route.request.url)
        kind = {"css": "text/css", "html": "text/html", "js": "text/javascript"}
        route.fulfill(body="", content_type=kind.get(route.request.url.rsplit(".", 1)[-1], "image/png"))

    page = browser.new_page()
    try:
        page.route("**/*", answer)
        page.goto(address, wait_until="networkidle")
    finally:
        page.close()
    return asked


def replaced(charset: str) -> tuple[bytes, dict[str, str]]:
    """Return the page with new addresses, and these; `left.png` has none."""
    new: dict[str, str] = {}

    def replace(uri: str, _: LinkKind) -> str | None:
        if uri.endswith("left.png"):
            return None
        # Chromium looks for imports ahead of its parser, and does so without undoing escapes.
        name = (
            "&a=b.css"
            if uri.endswith(".css")
            else "&a='b'(c),d;e=%20." + uri.split("?", maxsplit=1)[0].rsplit(".", 1)[-1]
        )
        return new.setdefault(uri, f"img/{len(new)}{name}")

    body = PAGE.replace("CHARSET", charset).encode(charset)
    done = rewrite_links(body, "text/html", OLD, None, replace, drop_base=True, drop_integrity=True, drop_csp=True)
    assert done.has_csp
    return done.body, new


@pytest.mark.parametrize("charset", ["utf-8", "shift_jis"])
def test_a_browser_asks_for_the_new_addresses(browser: Browser, charset: str) -> None:
    """A page opened elsewhere asks for all that is new, and for what was left where it was, and for nothing else."""
    body, new = replaced(charset)
    asked = requests(browser, NEW, body, "text/html")
    unused = {new[uri] for uri in new if uri.endswith("/no.png")}
    expected = {urljoin(NEW, address) for address in new.values() if address not in unused}
    assert {uri.replace("%27", "'") for uri in asked} == expected | {"http://old.example/b/left.png"}


def test_a_browser_asked_for_the_same_before(browser: Browser) -> None:
    """The page asked for as much at its old place, but for what the policy and the hashes there would not let in."""
    body = PAGE.replace("CHARSET", "utf-8").replace("-Security", "-No").replace("integrity", "no").encode()
    asked = requests(browser, OLD, body, "text/html")
    assert len(asked) == len(ASKED)


def test_a_page_that_keeps_its_base_is_caught(browser: Browser) -> None:
    """The comparison sees a base that was not dropped, and a policy."""
    _, new = replaced("utf-8")
    body = PAGE.replace("CHARSET", "utf-8").encode()
    done = rewrite_links(body, "text/html", OLD, None, lambda uri, _: new.get(uri))
    asked = requests(browser, NEW, done.body, "text/html")
    assert not asked & {urljoin(NEW, address) for address in new.values()}
