"""Checks one site: crawls it or reads a local copy, queries archives, and computes statistics.

An interrupted visit is resumed.
"""

from base64 import b32encode
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree
from typing import Protocol
from urllib.parse import urlsplit

from unlost import dates
from unlost import uri as addresses
from unlost.check.archives import (
    ArchiveAccess,
    ArchiveQueryResult,
    AvailabilityQuery,
    CaptureSampler,
    CheckProgress,
    UrlProber,
)
from unlost.check.history import VisitHistory
from unlost.check.summary import CheckStats, compute_check_stats
from unlost.check.visit_store import CurrentVisit, ListingResult, SiteVisit, VisitStage
from unlost.clock import Clock
from unlost.comparison.site_readers import open_site
from unlost.crawl.engine import crawl
from unlost.crawl.models import CrawlConfig, CrawlOutcome, CrawlResult, LiveResource
from unlost.crawl.politeness import EventCallback
from unlost.crawl.state import read_resources
from unlost.errors import InputError, UriError
from unlost.problems import Problems

MIN_URLS_FOR_LISTING = 5
"""Minimum URLs of a host for a CDX listing of it; for fewer, single queries are cheaper."""


def read_copied_resources(path: Path) -> tuple[Iterator[LiveResource], Problems]:
    """Return the resources in a local copy of a site as live resources, and the problems of reading it.

    Nothing is requested from the web.

    Args:
        path: A WARC, a WACZ, or a folder of them.

    Raises:
        InputError: The copy has no resources, or cannot be read.
        OSError: The copy cannot be read.
    """
    site = open_site(path)
    if not site.resources:
        raise InputError(f"{path}: no resource of a site is in it")

    def live_resources() -> Iterator[LiveResource]:
        for resource in site.resources.values():
            try:
                key = addresses.key(resource.uri)
            except UriError:
                continue  # archives cannot be queried for an invalid URL
            yield LiveResource(
                resource.uri,
                key,
                CrawlOutcome.FETCHED,
                200,
                resource.mime,
                resource.size,
                f"sha1:{b32encode(resource.digest).decode()}",
                resource.datetime,
                resource.modified,
            )

    return live_resources(), site.problems


def hosts_to_list(uris: Iterable[str]) -> list[str]:
    """Return the hosts to list in archives: those with at least `MIN_URLS_FOR_LISTING` of the URLs.

    >>> hosts_to_list([f"http://a.example/{number}" for number in range(5)] + ["http://b.example/"])
    ['http://a.example/']
    """
    counts: Counter[str] = Counter()
    for uri in uris:
        parts = urlsplit(uri)
        counts[f"{parts.scheme}://{parts.netloc}/"] += 1
    return [host for host, count in counts.items() if count >= MIN_URLS_FOR_LISTING]


def containing_folder(url: str) -> str:
    """Return the URL of the folder that contains a URL; the site consists of everything below it.

    >>> containing_folder("http://a.example/b/c.html?d"), containing_folder("http://a.example")
    ('http://a.example/b/', 'http://a.example/')
    """
    parts = urlsplit(url)
    folder = parts.path.rpartition("/")[0]
    return f"{parts.scheme}://{parts.netloc}{folder}/"


_BATCH_SIZE = 200  # resources per transaction
_MAX_VISIT_AGE_SECONDS = 86_400.0  # an older unfinished visit is restarted, since the site may have changed


class SiteSource(Protocol):
    """Provides the resources of a site, by crawling it or from a local copy."""

    @property
    def knows_links(self) -> bool:
        """Whether links are followed, so that pages without incoming links can be detected."""
        ...

    @property
    def probe(self) -> UrlProber | None:
        """Requests single URLs of the site; None if the site cannot be requested."""
        ...

    def resources(self) -> AsyncIterator[LiveResource]:
        """Yield the resources; if one is yielded twice, the second counts."""
        ...

    def prefixes(self) -> Sequence[str]:
        """Return the URL prefixes to list in archives. Valid after all resources were yielded."""
        ...


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How thoroughly archives are queried.

    Attributes:
        sample: Maximum number of resources that are queried one by one; None for all.
        thorough: Query every archive for every resource.
        max_probed: Maximum number of URLs that archives list and the crawl did not find, and that are requested from
            the site.
        max_classified: Number of pages whose captures are fetched and classified.
    """

    sample: int | None = 200
    thorough: bool = False
    max_probed: int = 50
    max_classified: int = 0


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a visit.

    Attributes:
        visit: The visit.
        current: The tables of the visit.
        archives: Ids of the archives that were queried.
        stats: The statistics.
        listings: The results of the CDX listings.
        incomplete: The archives whose queries were not completed, each with the reason.
        now: Start of the visit, 14 digits.
    """

    visit: SiteVisit
    current: CurrentVisit
    archives: tuple[str, ...]
    stats: CheckStats
    listings: tuple[ListingResult, ...]
    incomplete: dict[str, str]
    now: str


async def resume_or_begin_visit(history: VisitHistory, clock: Clock) -> tuple[SiteVisit, int]:
    """Resume the unfinished visit, or begin one.

    Returns:
        The visit, and how many earlier visits lost their dates because the clock was set back.
    """
    now = clock.now()
    visit = history.unfinished_visit()
    if visit is not None and 0 <= now - visit.time < _MAX_VISIT_AGE_SECONDS:
        return visit, 0
    return history.begin_visit(now)


async def check_site(
    history: VisitHistory,
    visit: SiteVisit,
    site: SiteSource,
    access: ArchiveAccess,
    options: CheckOptions,
    progress: CheckProgress | None = None,
) -> CheckResult:
    """Crawl a site, query archives for its resources, and compute the statistics. Does not finish the visit."""
    current = history.current_visit(visit)
    if visit.stage is VisitStage.BEGUN:
        await _crawl(current, site)
    query = AvailabilityQuery(
        current,
        access,
        sample=options.sample,
        thorough=options.thorough,
        probe=site.probe,
        max_probed=options.max_probed,
        progress=progress,
    )
    result = await query.run(site.prefixes())
    archives = tuple(access.archives)
    if options.max_classified:
        await CaptureSampler(current, access.capture_clients, options.max_classified).classify_sample(archives)
    now = dates.from_epoch(str(int(visit.time)))
    stats = compute_check_stats(current.availabilities(archives), now, knows_links=site.knows_links)
    listings = tuple(current.listings())
    return CheckResult(visit, current, archives, stats, listings, _incomplete_archives(listings, result), now)


async def _crawl(current: CurrentVisit, site: SiteSource) -> None:
    batch: list[LiveResource] = []
    async for resource in site.resources():
        batch.append(resource)
        if len(batch) >= _BATCH_SIZE:
            current.record_live(batch)
            batch.clear()
    current.record_live(batch)
    current.mark_crawled()


def _incomplete_archives(listings: Sequence[ListingResult], result: ArchiveQueryResult) -> dict[str, str]:
    """Return the archives that were given up. A listing that was cut is no loss: single queries replaced it."""
    messages = {each.archive: each.message or "its list was cut" for each in listings if not each.is_whole}
    return {name: messages.get(name, message) for name, message in result.given_up.items()}


_MAX_BODY_BYTES = 8 << 20
"""Limit of one body: enough to extract links and to compute a digest. Bodies are not stored."""


@dataclass(frozen=True, slots=True)
class SiteCrawlOptions:
    """How a site is crawled.

    Attributes:
        folder: Directory for the state of the crawl, so that it can resume. Its parent must exist.
        clock: The clock.
        contact: Contact for the User-Agent header.
        proxies: Whether the proxies of the environment are used.
        on_event: Receives the events of the crawl.
    """

    folder: Path
    clock: Clock
    contact: str | None = None
    proxies: bool = False
    on_event: EventCallback = lambda _, __: None


class CrawledSite:
    """A site that is crawled.

    Args:
        plan: What to crawl.
        options: How to crawl it.
        prefixes: URL prefixes to list in archives; by default the hosts that are found.
        must_answer: Raise InputError if nothing could be fetched.
        is_sitemap: Count only URLs that sitemaps list, and raise InputError if there are none.

    Attributes:
        result: The result of the crawl; None before it has ended.
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
        """Requests single URLs of the site."""
        return self._probe_urls

    async def resources(self) -> AsyncIterator[LiveResource]:
        """Crawl the site, or resume the crawl, and yield its resources."""
        self.result = await self._crawl(self._plan, self._options.folder)
        if self._must_answer and not self.result.counts[CrawlOutcome.FETCHED]:
            raise self._forget_crawl(self._no_response_error())
        # Compared by key, since a URL in a sitemap may redirect to another form of itself, such as https.
        sitemap_keys = {each.key for each in self._read() if each.is_in_sitemap} if self._is_sitemap else set()
        if self._is_sitemap and not sitemap_keys:
            message = (
                f"{self._plan.starts[0]}: no sitemap names a page of it: robots.txt would say where one is, or it "
                "would be at /sitemap.xml; without --sitemap links are followed"
            )
            raise self._forget_crawl(InputError(message))
        for each in self._read():
            if not self._is_sitemap or each.key in sitemap_keys:
                yield each

    def _forget_crawl(self, error: InputError) -> InputError:
        """Delete the state of a failed crawl, so that the next run starts from scratch; return the error."""
        rmtree(self._options.folder, ignore_errors=True)
        return error

    def _read(self) -> Iterator[LiveResource]:
        return read_resources(self._options.folder)

    def prefixes(self) -> Sequence[str]:
        """Return the URL prefixes to list in archives."""
        if self._prefixes is not None:
            return self._prefixes
        return hosts_to_list(self._uris())

    def _no_response_error(self) -> InputError:
        """Return an error that says why nothing was fetched."""
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
        """Request single URLs without following links."""
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
        options = self._options
        return await crawl(
            plan,
            folder,
            options.clock,
            contact=options.contact,
            write_warcs=False,
            on_event=options.on_event,
            use_proxies=options.proxies,
        )


class CopiedSite:
    """A site that is read from a local copy; nothing is requested from the web."""

    knows_links = False
    probe: UrlProber | None = None

    def __init__(self, resources: Sequence[LiveResource]) -> None:
        self._resources = resources

    async def resources(self) -> AsyncIterator[LiveResource]:
        """Yield the resources of the copy."""
        for each in self._resources:
            yield each

    def prefixes(self) -> Sequence[str]:
        """Return the hosts to list in archives."""
        return hosts_to_list(each.uri for each in self._resources)
