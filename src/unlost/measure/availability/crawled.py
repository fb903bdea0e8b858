"""A living site that is crawled, and single addresses of it that are looked at."""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree

from unlost.clock import Clock
from unlost.crawl.crawling import crawl
from unlost.crawl.plan import CrawlConfig
from unlost.crawl.polite import EventCallback
from unlost.crawl.reading import read_resources
from unlost.crawl.resource import LiveResource, CrawlOutcome
from unlost.crawl.result import CrawlResult
from unlost.errors import InputError
from unlost.measure.availability.asking import UrlProber
from unlost.measure.availability.sources import hosts_to_list

_MAX_BODY_BYTES = 8 << 20
"""Of one body: enough to find its links and tell whether it changed; nothing is kept."""


@dataclass(frozen=True, slots=True)
class SiteCrawlOptions:
    """In whose name a site is visited, and how.

    folder: for what a crawl remembers, so that it can go on; its parent must be there.
    """

    folder: Path
    clock: Clock
    contact: str | None = None
    proxies: bool = False
    on_event: EventCallback = lambda _, __: None


class CrawledSite:
    """A site that is crawled by a plan.

    prefixes: what archives list of it; by default the hosts that are seen. must_answer: whether to raise InputError if
    nothing of it could be fetched. is_sitemap: whether only what sitemaps name counts; none is an InputError.
    result: how the crawl ended, once it has.
    """

    def __init__(
        self,
        plan: CrawlConfig,
        options: SiteCrawlOptions,
        prefixes: Sequence[str] | None = None,
        *,
        must_answer: bool = False,
        is_sitemap: bool = False,
    ) -> None:
        self._must_answer = must_answer
        self._is_sitemap = is_sitemap
        self._plan = replace(plan, bytes_each=min(plan.bytes_each, _MAX_BODY_BYTES))
        self._options = options
        self._prefixes = prefixes
        self.result: CrawlResult | None = None

    @property
    def knows_links(self) -> bool:
        """Whether links are followed."""
        return self._plan.links

    @property
    def probe(self) -> UrlProber | None:
        """What looks at single addresses."""
        return self._probe_urls

    async def resources(self) -> AsyncIterator[LiveResource]:
        """Crawl the site, or go on where that was interrupted, and yield what it has."""
        self.result = await self._crawl(self._plan, self._options.folder)
        if self._must_answer and not self.result.counts[CrawlOutcome.FETCHED]:
            raise self._forget_crawl(self._no_response_error())
        # By their keys: what a sitemap names may have led to another spelling, with https for example.
        named = {each.key for each in self._read() if each.is_in_sitemap} if self._is_sitemap else set()
        if self._is_sitemap and not named:
            text = (
                f"{self._plan.starts[0]}: no sitemap names a page of it: robots.txt would say where one is, or it "
                "would be at /sitemap.xml; without --sitemap links are followed"
            )
            raise self._forget_crawl(InputError(text))
        for each in self._read():
            if not self._is_sitemap or each.key in named:
                yield each

    def _forget_crawl(self, error: InputError) -> InputError:
        """Forget a crawl that came to nothing, so that the next one sees what was mended meanwhile."""
        rmtree(self._options.folder, ignore_errors=True)
        return error

    def _read(self) -> Iterator[LiveResource]:
        return read_resources(self._options.folder)

    def prefixes(self) -> Sequence[str]:
        """Return what archives are asked for lists of."""
        if self._prefixes is not None:
            return self._prefixes
        return hosts_to_list(self._uris())

    def _no_response_error(self) -> InputError:
        """Return in words why nothing was fetched."""
        first = next(self._read(), None)
        what, reason = (first.uri, first.reason) if first is not None else ("the site", None)
        if first is not None and first.outcome is CrawlOutcome.FORBIDDEN and reason == "robots":
            return InputError(f"{what}: its robots.txt forbids to visit it: check a copy of your own with --warc")
        return InputError(
            f"{what}: no answer ({reason or 'nothing came'}): try again later; if the site is lost, "
            "`unlost recover` brings back what archives have"
        )

    def _uris(self) -> Iterator[str]:
        for each in self._read():
            if each.outcome is not CrawlOutcome.EXCLUDED:
                yield each.uri

    async def _probe_urls(self, uris: list[str]) -> list[LiveResource]:
        """Look at single addresses, and follow nothing."""
        folder = self._options.folder.with_name(f"{self._options.folder.name}-beside")
        if folder.exists():
            rmtree(folder)
        plan = replace(
            self._plan, starts=(), extra=tuple(uris), links=False, parts=False, sitemaps=False, resources=None
        )
        try:
            await self._crawl(plan, folder)
            return [each for each in read_resources(folder) if each.outcome is not CrawlOutcome.EXCLUDED]
        finally:
            rmtree(folder, ignore_errors=True)

    async def _crawl(self, plan: CrawlConfig, folder: Path) -> CrawlResult:
        visiting = self._options
        return await crawl(
            plan,
            folder,
            visiting.clock,
            contact=visiting.contact,
            write_warcs=False,
            on_event=visiting.on_event,
            use_proxies=visiting.proxies,
        )


class CopiedSite:
    """A site that is known from a copy of it: nobody is visited."""

    knows_links = False
    probe: UrlProber | None = None

    def __init__(self, resources: Sequence[LiveResource]) -> None:
        self._resources = resources

    async def resources(self) -> AsyncIterator[LiveResource]:
        """Yield what the copy has."""
        for each in self._resources:
            yield each

    def prefixes(self) -> Sequence[str]:
        """Return the hosts of which archives are asked for lists."""
        return hosts_to_list(each.uri for each in self._resources)
