"""Polite crawl of a live site, to plan a vault for its pages or to check which blocks they carry."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from unlost.clock import Clock
from unlost.comparison.warc_site import ArchiveFilePart
from unlost.crawl.engine import crawl
from unlost.crawl.models import CrawlConfig, CrawlOutcome, LiveResource, ScopeType
from unlost.crawl.politeness import EventCallback
from unlost.crawl.state import read_resources
from unlost.errors import ArchiveFileError, InputError, UsageError
from unlost.vault.block import MAX_BLOCK_BYTES
from unlost.vault.erasure_code import MAX_BLOCKS
from unlost.vault.pages import is_vault_page, page_key, page_url, strip_blocks
from unlost.vault.plan import CarrierPage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unlost.crawl.models import CrawlResult

_MAX_BODY = 4 * MAX_BLOCK_BYTES
_HTML = ("text/html", "application/xhtml+xml")


class SiteCrawl:
    """Crawls a site into a folder, politely. An interrupted crawl is resumed.

    Args:
        folder: The folder of the crawl.
        clock: The source of time.
        delay: Minimum seconds between two requests.
        contact: Email address or URL for site operators.
        on_event: Called with each event of the crawl.

    Attributes:
        result: Result of the last crawl; None before.
        visited_count: Number of responses fetched by this object, without those of earlier runs.
    """

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        delay: float,
        contact: str | None = None,
        on_event: EventCallback = lambda _, __: None,
    ) -> None:
        self._folder, self._clock, self._delay, self._contact, self._on_event = folder, clock, delay, contact, on_event
        self.result: CrawlResult | None = None
        self.visited_count = 0

    async def list_pages(self, start: str) -> list[CarrierPage]:
        """Follow links and sitemaps from a URL and return the pages that archives may store.

        Raises:
            UsageError: The URL is not HTTP(S).
            InputError: There are no such pages, or the site does not respond.
        """
        folder = urlsplit(_require_web_url(start)).path.rpartition("/")[0]
        scope = ScopeType.PREFIX if folder else ScopeType.HOST
        await self._crawl(CrawlConfig((start,), scope, parts=False, delay=self._delay, resources=2 * MAX_BLOCKS))
        pages = [
            CarrierPage(page_key(each.uri), len(strip_blocks(body)), each.hops)
            for each, body in self.iter_bodies()
            # Archives do not store pages that say `noarchive`, so they cannot carry blocks.
            if each.mime in _HTML and not each.is_noarchive and each.truncated is None
        ]
        pages = [page for page in pages if not is_vault_page(page.key)]
        if not pages:
            raise InputError(f"{ascii(start)[:80]}: {self._explain_no_pages()}")
        return sorted(pages, key=lambda page: (page.hops is None, page.hops))

    async def visit_pages(self, site: str, keys: Iterable[str]) -> None:
        """Fetch the pages of a vault and nothing else. Raises UsageError if the site's URL is not HTTP(S)."""
        urls = tuple(page_url(_require_web_url(site), key) for key in keys)
        config = CrawlConfig((), extra=urls, links=False, parts=False, sitemaps=False, delay=self._delay)
        await self._crawl(config)

    async def _crawl(self, config: CrawlConfig) -> None:
        # The user operates the site, so pages that say `noarchive` are stored, too.
        self.result = await crawl(
            replace(config, keep_noarchive=True),
            self._folder,
            self._clock,
            contact=self._contact,
            on_event=self._count_event,
        )

    def _count_event(self, event: str, details: "Mapping[str, object]") -> None:
        self.visited_count += event == "fetched"
        self._on_event(event, details)

    def iter_bodies(self) -> Iterator[tuple[LiveResource, bytes]]:
        """Yield each fetched URL with status 200 and its body."""
        for each in read_resources(self._folder):
            if each.status != 200 or each.file is None or each.offset is None:
                continue
            file = self._folder / "warc" / each.file
            try:
                body, _, _ = ArchiveFilePart(file, str(file)).open_record(each.offset, 0).read_decoded(_MAX_BODY)
            except ArchiveFileError:
                continue
            yield each, body

    def _explain_no_pages(self) -> str:
        first = next(read_resources(self._folder), None)
        if first is not None and first.outcome is CrawlOutcome.FORBIDDEN and first.reason == "robots":
            return "its robots.txt forbids to visit it, as it does to archives: give a folder or a list of pages"
        if first is not None and first.outcome is CrawlOutcome.FETCHED:
            return "no page of HTML is there that archives may keep"
        return f"no answer ({(first.reason if first is not None else None) or 'nothing came'}): is it running?"


def _require_web_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise UsageError(f"{ascii(url)[:80]}: expected an address that begins with http:// or https://")
    return url
