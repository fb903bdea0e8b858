"""Checks an exported site in Chromium, page by page and without a network."""

import http.client
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from playwright.sync_api import Browser, Page, Request, Response, Route
from playwright.sync_api import Error as PlaywrightError

_LAST = "https://last.invalid/"
"""Requested at the end of a page: once it is refused, all earlier requests of the page are recorded."""

# Loads lazy images at once and returns the broken ones.
_BROKEN = """async last => {
    const images = [...document.images].filter(
        each => each.getAttribute("src") || each.getAttribute("srcset") || each.currentSrc);
    for (const each of images) each.loading = "eager";
    await Promise.all(images.map(each => each.decode().catch(() => null)));
    await fetch(last).catch(() => null);
    return images.filter(each => each.naturalWidth === 0).map(each => each.currentSrc || each.src);
}"""
_LINKS = """() => [...document.querySelectorAll("a[href], area[href], iframe[src], frame[src]")]
    .map(each => each.href || each.src).filter(each => typeof each === "string")"""
_GONE = frozenset((400, 401, 403, 404, 410, 500, 502, 503))


class Fault(NamedTuple):
    """A fault on a page. about: the URL that it concerns."""

    page: str
    about: str


@dataclass(slots=True)
class Findings:
    """The result of a check.

    Attributes:
        pages: Opened pages in order.
        broken: Broken images, and style sheets, scripts, fonts and frames that failed to load.
        outside: Requests to other machines, which were blocked.
        dead: Dead links within the site.
    """

    pages: list[str] = field(default_factory=list)
    broken: set[Fault] = field(default_factory=set)
    outside: set[Fault] = field(default_factory=set)
    dead: set[Fault] = field(default_factory=set)

    def about(self, kind: str) -> set[str]:
        """Return the last path segments of the URLs of all faults of a kind, unescaped."""
        return {unquote(fault.about.rpartition("/")[2]) for fault in getattr(self, kind)}


def check_in_browser(
    browser: Browser,
    starts: Sequence[str],
    within: str,
    *,
    also: Iterable[str] = (),
    replayed: tuple[str, ...] = (),
    limit: int = 1_000,
    tried: int = 10_000,
) -> Findings:
    """Open pages and the pages that they link to.

    Args:
        browser: The browser.
        starts: URLs of files or of a server on this machine.
        within: URL prefix of the site.
        also: Prefixes of other URLs on this machine that may be requested and are not pages.
        replayed: Prefixes of original URLs in a replay, whose scripts show original links.
        limit: Maximum number of opened pages.
        tried: Maximum number of checked links.
    """
    check = _BrowserCheck(within, (within, *also), replayed, Findings())
    context = browser.new_context(service_workers="block", accept_downloads=False)
    try:
        context.route("**/*", check.on_route)
        page = context.new_page()
        page.on("requestfailed", check.on_failure)
        page.on("response", check.on_response)
        page.on("dialog", lambda dialog: dialog.dismiss())
        found = check.found
        waiting, seen = deque((start, start) for start in starts), set(starts)
        while waiting:
            above, url = waiting.popleft()
            kind = check.kind(url)
            if kind is None:
                found.dead.add(Fault(above, url))
            elif kind == "text/html" and len(found.pages) < limit:
                for link in check.open(page, above, url):
                    if link not in seen and len(seen) < tried:
                        seen.add(link)
                        waiting.append((url, link))
    finally:
        context.close()
    return check.found


@dataclass  # without slots: Playwright sets attributes on it
class _BrowserCheck:
    within: str
    allowed: tuple[str, ...]
    replayed: tuple[str, ...]
    found: Findings
    page: str = ""

    def open(self, page: Page, above: str, url: str) -> list[str]:
        """Open a page, record its faults, and return its links that belong to the site."""
        self.page = url
        try:
            page.goto(url, wait_until="load", timeout=15_000)
            broken = page.evaluate(_BROKEN, _LAST)
            links = page.evaluate(_LINKS)
        except PlaywrightError:
            # A navigation to another machine is already recorded.
            if not any(fault.page == url for fault in self.found.outside):
                self.found.dead.add(Fault(above, url))
            return []
        self.found.pages.append(url)
        self.found.broken.update(Fault(url, each) for each in broken)
        whole = (link.partition("#")[0] for link in links)
        here = (self.within + link if self.replayed and link.startswith(self.replayed) else link for link in whole)
        return [link for link in here if link.startswith(self.within)]

    def kind(self, url: str) -> str | None:
        """Return the media type of a URL without a browser; None if it does not exist."""
        if url.startswith("file://"):
            path = Path(unquote(urlsplit(url).path))
            if not path.is_file():
                return None
            return "text/html" if path.suffix.lower() in (".html", ".htm", ".xhtml") else "other"
        for _ in range(5):
            parts = urlsplit(url)
            connection = http.client.HTTPConnection(parts.netloc, timeout=20)
            try:
                connection.request("GET", parts.path + (f"?{parts.query}" if parts.query else ""))
                response = connection.getresponse()
                response.read()
            finally:
                connection.close()
            location = response.getheader("Location")
            if response.status == 200:
                return (response.getheader("Content-Type") or "").partition(";")[0].lower()
            if response.status not in (301, 302, 303, 307, 308) or location is None:
                return None
            url = urljoin(url, location)
            if not url.startswith(self.allowed):
                return "elsewhere"
        return None

    def on_route(self, route: Route) -> None:
        """Let a request pass if it stays on this machine."""
        if route.request.url.endswith(_LAST):  # replays prepend their own URL
            route.abort("aborted")
        elif route.request.url.startswith(self.allowed):
            route.continue_()
        else:
            self.found.outside.add(Fault(self.page, route.request.url))
            route.abort()

    def on_failure(self, request: Request) -> None:
        """Record a failed subresource; requests to other machines are already recorded."""
        is_main = request.is_navigation_request() and request.frame.parent_frame is None
        if not is_main and request.url.startswith(self.allowed) and request.failure != "net::ERR_ABORTED":
            self.found.broken.add(Fault(self.page, request.url))

    def on_response(self, response: Response) -> None:
        """Record a subresource that the server does not have."""
        request = response.request
        is_main = request.is_navigation_request() and request.frame.parent_frame is None
        if not is_main and response.status in _GONE:
            self.found.broken.add(Fault(self.page, response.url))
