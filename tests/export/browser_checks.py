"""Looks at an exported site as its visitors do: in Chromium, page after page, without a network."""

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
"""Asked for when a page is done: once that was refused, all that the page asked for before was heard of."""

# Whatever waits until it is scrolled to is loaded at once; then come the images that are none.
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
    """On which page, and about which address."""

    page: str
    about: str


@dataclass(slots=True)
class Findings:
    """What a visitor finds.

    pages: that were opened, in order. broken: images that show nothing, style sheets, scripts, fonts and frames that
    did not come. outside: requests that would have left the machine. dead: links within the site that lead to nothing.
    """

    pages: list[str] = field(default_factory=list)
    broken: set[Fault] = field(default_factory=set)
    outside: set[Fault] = field(default_factory=set)
    dead: set[Fault] = field(default_factory=set)

    def about(self, kind: str) -> set[str]:
        """Return the last parts of the addresses that faults of a kind are about, without escapes."""
        return {unquote(fault.about.rpartition("/")[2]) for fault in getattr(self, kind)}


def look_at(
    browser: Browser,
    starts: Sequence[str],
    within: str,
    *,
    also: Iterable[str] = (),
    replayed: tuple[str, ...] = (),
    limit: int = 1_000,
    tried: int = 10_000,
) -> Findings:
    """Open pages and whatever they lead to.

    starts: addresses, of files or of a server on this machine. within: how addresses begin that belong to the site.
    also: beginnings of others that may be asked for on this machine, and are no pages.
    replayed: of an archive, how addresses begin that stand behind `within`: its scripts show links as they once were.
    limit: of the pages that are opened. tried: how many links of these are tried, at most.
    """
    looking = _Looking(within, (within, *also), replayed, Findings())
    context = browser.new_context(service_workers="block", accept_downloads=False)
    try:
        context.route("**/*", looking.on_route)
        page = context.new_page()
        page.on("requestfailed", looking.on_failure)
        page.on("response", looking.on_response)
        page.on("dialog", lambda dialog: dialog.dismiss())
        found = looking.found
        waiting, seen = deque((start, start) for start in starts), set(starts)
        while waiting:
            above, address = waiting.popleft()
            kind = looking.kind(address)
            if kind is None:
                found.dead.add(Fault(above, address))
            elif kind == "text/html" and len(found.pages) < limit:
                for link in looking.open(page, above, address):
                    if link not in seen and len(seen) < tried:
                        seen.add(link)
                        waiting.append((address, link))
    finally:
        context.close()
    return looking.found


@dataclass  # without slots: Playwright leaves notes on it
class _Looking:
    within: str
    allowed: tuple[str, ...]
    replayed: tuple[str, ...]
    found: Findings
    page: str = ""

    def open(self, page: Page, above: str, address: str) -> list[str]:
        """Open a page, note what is wrong with it, and return the links of it that belong to the site."""
        self.page = address
        try:
            page.goto(address, wait_until="load", timeout=15_000)
            broken = page.evaluate(_BROKEN, _LAST)
            links = page.evaluate(_LINKS)
        except PlaywrightError:
            if not any(fault.page == address for fault in self.found.outside):  # it wanted to leave, which is told
                self.found.dead.add(Fault(above, address))
            return []
        self.found.pages.append(address)
        self.found.broken.update(Fault(address, each) for each in broken)
        whole = (link.partition("#")[0] for link in links)
        here = (self.within + link if self.replayed and link.startswith(self.replayed) else link for link in whole)
        return [link for link in here if link.startswith(self.within)]

    def kind(self, address: str) -> str | None:
        """Return the type of what is at an address, without asking a browser; None if there is nothing."""
        if address.startswith("file://"):
            path = Path(unquote(urlsplit(address).path))
            if not path.is_file():
                return None
            return "text/html" if path.suffix.lower() in (".html", ".htm", ".xhtml") else "other"
        for _ in range(5):
            parts = urlsplit(address)
            connection = http.client.HTTPConnection(parts.netloc, timeout=20)
            try:
                connection.request("GET", parts.path + (f"?{parts.query}" if parts.query else ""))
                answer = connection.getresponse()
                answer.read()
            finally:
                connection.close()
            place = answer.getheader("Location")
            if answer.status == 200:
                return (answer.getheader("Content-Type") or "").partition(";")[0].lower()
            if answer.status not in (301, 302, 303, 307, 308) or place is None:
                return None
            address = urljoin(address, place)
            if not address.startswith(self.allowed):
                return "elsewhere"
        return None

    def on_route(self, route: Route) -> None:
        """Let a request pass if it stays here."""
        if route.request.url.endswith(_LAST):  # replays put their own address before it
            route.abort("aborted")
        elif route.request.url.startswith(self.allowed):
            route.continue_()
        else:
            self.found.outside.add(Fault(self.page, route.request.url))
            route.abort()

    def on_failure(self, request: Request) -> None:
        """Note a part of a page that did not come; what would have left the machine is noted already."""
        is_main = request.is_navigation_request() and request.frame.parent_frame is None
        if not is_main and request.url.startswith(self.allowed) and request.failure != "net::ERR_ABORTED":
            self.found.broken.add(Fault(self.page, request.url))

    def on_response(self, response: Response) -> None:
        """Note a part of a page that the server does not have."""
        request = response.request
        is_main = request.is_navigation_request() and request.frame.parent_frame is None
        if not is_main and response.status in _GONE:
            self.found.broken.add(Fault(self.page, response.url))
