"""Checks one site: crawled or known from a copy, then archives, then statistics. Resumes an interrupted visit."""

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
"""From so many addresses of a host on its list is asked for; fewer cost less when asked for one by one."""


def read_copied_resources(path: Path) -> tuple[Iterator[LiveResource], Problems]:
    """Return the resources of a copy of a site (WARC, WACZ, a folder of them), as being on the web, and what was bad.

    Nobody is asked whether they still are. Raises InputError, OSError.
    """
    site = open_site(path)
    if not site.resources:
        raise InputError(f"{path}: no resource of a site is in it")

    def each() -> Iterator[LiveResource]:
        for resource in site.resources.values():
            try:
                key = addresses.key(resource.uri)
            except UriError:
                continue  # a name that is none cannot be asked for
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

    return each(), site.problems


def hosts_to_list(uris: Iterable[str]) -> list[str]:
    """Return the hosts of which archives are asked for lists: those with several of the addresses.

    >>> hosts_to_list([f"http://a.example/{number}" for number in range(5)] + ["http://b.example/"])
    ['http://a.example/']
    """
    counts: Counter[str] = Counter()
    for uri in uris:
        parts = urlsplit(uri)
        counts[f"{parts.scheme}://{parts.netloc}/"] += 1
    return [host for host, count in counts.items() if count >= MIN_URLS_FOR_LISTING]


def folder_url(url: str) -> str:
    """Return the folder of an address: what is below it is the site.

    >>> folder_url("http://a.example/b/c.html?d"), folder_url("http://a.example")
    ('http://a.example/b/', 'http://a.example/')
    """
    parts = urlsplit(url)
    folder = parts.path.rpartition("/")[0]
    return f"{parts.scheme}://{parts.netloc}{folder}/"


_BATCH_SIZE = 200  # resources that are kept together
_MAX_VISIT_AGE_SECONDS = 86_400.0  # seconds after which a visit that did not end is begun anew: what it saw may be gone


class SiteSource(Protocol):
    """Whoever knows what a site has.

    knows_links: whether links are followed, so that what nothing leads to can be told.
    look: looks at single addresses; None if nobody can.
    """

    @property
    def knows_links(self) -> bool:
        """Whether links are followed."""
        ...

    @property
    def probe(self) -> UrlProber | None:
        """What looks at single addresses; None if nobody can."""
        ...

    def resources(self) -> AsyncIterator[LiveResource]:
        """Yield what the site has; of one that was yielded twice the second counts."""
        ...

    def prefixes(self) -> Sequence[str]:
        """Return what archives are asked for lists of, once all resources were yielded."""
        ...


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How thoroughly archives are asked.

    sample: how many pages are asked for one by one, at most; None for all. thorough: ask every archive for every page.
    beside: how many addresses that archives list, and the site was not seen to have, are looked at.
    judge: of how many pages copies are fetched and judged.
    """

    sample: int | None = 200
    thorough: bool = False
    max_probed: int = 50
    max_classified: int = 0


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a visit came to.

    left_over: archives that did not say all that they have to say, each with why.
    """

    visit: SiteVisit
    current: CurrentVisit
    archives: tuple[str, ...]
    stats: CheckStats
    listings: tuple[ListingResult, ...]
    incomplete: dict[str, str]
    now: str


async def resume_or_begin_visit(history: VisitHistory, clock: Clock) -> tuple[SiteVisit, int]:
    """Return the visit that goes on, or begin one; and how many visits lost their dates, since the clock went back."""
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
    """See what a site has, ask archives for it, and return what came of it. The visit is not ended."""
    present = history.current_visit(visit)
    if visit.stage is VisitStage.BEGUN:
        await _crawl(present, site)
    asking = AvailabilityQuery(
        present,
        access,
        sample=options.sample,
        thorough=options.thorough,
        probe=site.probe,
        max_probed=options.max_probed,
        progress=progress,
    )
    result = await asking.run(site.prefixes())
    archives = tuple(access.archives)
    if options.max_classified:
        await CaptureSampler(present, access.capture_clients, options.max_classified).classify_sample(archives)
    now = dates.from_epoch(str(int(visit.time)))
    figures = compute_check_stats(present.availabilities(archives), now, knows_links=site.knows_links)
    lists = tuple(present.listings())
    return CheckResult(visit, present, archives, figures, lists, _incomplete_archives(lists, result), now)


async def _crawl(present: CurrentVisit, site: SiteSource) -> None:
    batch: list[LiveResource] = []
    async for resource in site.resources():
        batch.append(resource)
        if len(batch) >= _BATCH_SIZE:
            present.record_live(batch)
            batch.clear()
    present.record_live(batch)
    present.mark_crawled()


def _incomplete_archives(lists: Sequence[ListingResult], result: ArchiveQueryResult) -> dict[str, str]:
    """Return which archives did not say all: those that were given up; a list that was cut is made up for by asking."""
    messages = {each.archive: each.message or "its list was cut" for each in lists if not each.is_whole}
    return {name: messages.get(name, message) for name, message in result.given_up.items()}


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
