"""A small live site defined by a table of pages, and crawls of it with a virtual clock."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.external.fault_server import Exchange, FaultServer, run_fault_server
from tests.virtual_clock import VirtualClock
from unlost.crawl import CrawlConfig, CrawlResult, LiveResource, crawl, read_resources
from unlost.http import AddressInfo, HostPort, Timeouts, literal_address_info

HASTY = Timeouts(connect=2.0, first_byte=0.5, idle=0.5, total=1.5)
"""Short real timeouts, for servers that hang."""


@dataclass(frozen=True)
class Page:
    """A response. `{base}` in header values and body is replaced by the URL of the site."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "text/html"})


def html(*links: str, more: str = "") -> Page:
    """Return a page with links."""
    anchors = "".join(f'<a href="{link}">x</a>' for link in links)
    return Page(f"<!doctype html><title>t</title>{more}{anchors}".encode())


def sitemap(*uris: str, kind: str = "url") -> Page:
    """Return a sitemap, or with the kind `sitemap` a sitemap index."""
    outer = {"url": "urlset", "sitemap": "sitemapindex"}[kind]
    body = "".join(f"<{kind}><loc>{uri}</loc></{kind}>" for uri in uris)
    namespace = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return Page(
        f'<?xml version="1.0"?><{outer} xmlns="{namespace}">{body}</{outer}>'.encode(),
        200,
        {"content-type": "text/xml"},
    )


def redirect_to(target: str, status: int = 301) -> Page:
    """Return a redirect."""
    return Page(b"", status, {"location": target})


def text(body: str) -> Page:
    """Return a plain text, such as robots.txt."""
    return Page(body.encode(), 200, {"content-type": "text/plain"})


SMALL = {
    "/": html("/a", "/b.html?x=1#top", "http://elsewhere.example/", "mailto:me@example.org", more='<img src="/i.png">'),
    "/a": html("/", "/deep/er/"),
    "/b.html?x=1": html("/a"),
    "/deep/er/": html("../est"),
    "/i.png": Page(b"PNG", 200, {"content-type": "image/png", "etag": '"e"', "cache-control": "max-age=9"}),
}

Pages = Mapping[str, Page] | Callable[[str], Page | None]


@dataclass
class LiveSite:
    """A running site. `events` has the events of its crawls."""

    server: FaultServer
    clock: VirtualClock
    events: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)

    @property
    def url(self) -> str:
        """URL of the site, without a path."""
        return self.server.url

    @property
    def paths(self) -> list[str]:
        """Requested paths, without robots.txt and the default sitemap."""
        return [path for path in self.server.paths if path not in ("/robots.txt", "/sitemap.xml")]

    async def crawl(self, folder: Path, *starts: str, **options: Any) -> CrawlResult:  # noqa: ANN401
        """Crawl the site; options are fields of `CrawlConfig` and arguments of `crawl`."""
        names = CrawlConfig.__dataclass_fields__
        planned = {name: value for name, value in options.items() if name in names}
        others = {name: value for name, value in options.items() if name not in names}
        plan = replace(CrawlConfig(tuple(self.url + path for path in starts or ("/",)), delay=0.0), **planned)
        others = {"contact": "me@example.org", "on_event": lambda *event: self.events.append(event), **others}
        return await crawl(plan, folder, self.clock, **others)


@asynccontextmanager
async def serve_live_site(pages: Pages) -> AsyncIterator[LiveSite]:
    """Run a site; unknown paths give 404."""
    clock = VirtualClock()
    get_page = pages.get if isinstance(pages, Mapping) else pages

    async def respond(exchange: Exchange) -> None:
        page = get_page(exchange.path) or Page(b"not found", 404)
        base = f"http://{exchange.headers['host']}"
        headers = {name: value.replace("{base}", base) for name, value in page.headers.items()}
        await exchange.respond(page.status, page.body.replace(b"{base}", base.encode()), **headers)

    async with run_fault_server(respond, clock) as server:
        yield LiveSite(server, clock)


def crawl_pages(
    pages: Pages,
    folder: Path,
    *starts: str,
    **options: Any,  # noqa: ANN401
) -> tuple[CrawlResult, list[LiveResource], LiveSite]:
    """Crawl a site once; return the result, the resources and the site."""

    async def run() -> tuple[CrawlResult, list[LiveResource], LiveSite]:
        async with serve_live_site(pages) as site:
            result = await site.crawl(folder, *starts, **options)
            return result, list(read_resources(folder)), site

    return asyncio.run(run())


def by_path(resources: list[LiveResource], site: LiveSite) -> dict[str, LiveResource]:
    """Return resources by path; those on other hosts by URL."""
    return {each.uri.removeprefix(site.url): each for each in resources}


class FixedResolver:
    """Resolver that returns one address for every name."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        self.address = address

    async def resolve(self, host: str, port: int) -> list[AddressInfo]:
        """Return the address."""
        del host
        return [literal_address_info(HostPort(self.address, port))]
