"""Frontier of a crawl: from links, redirects and sitemaps to what is fetched next.

A URL is enqueued if it is in scope, not known under another spelling, and no trap.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from unlost.clock import Clock
from unlost.crawl.models import CrawlConfig
from unlost.crawl.scope import OTHER_SITE, CrawlScope, host_of_name
from unlost.crawl.state import CrawlState, DiscoveredUrl, QueuedUrl
from unlost.crawl.traps import TrapDetector, is_endless_calendar
from unlost.dates import from_epoch
from unlost.errors import UriError
from unlost.html.links import Link, LinkKind
from unlost.http.url import parse_url
from unlost.uri import key_many
from unlost.uri.names import page_names
from unlost.uri.normalize import normalize_input_url

MAX_REDIRECT_CHAIN = 10
"""Redirects that are followed one behind the other. Browsers follow 20; who needs more than a few goes in a circle."""

MAX_KNOWN_URLS = 1_000_000
"""Addresses that are remembered: a state of some 500 MB. What links lead to beyond that is only counted."""

MAX_SITEMAPS = 500
"""Sitemaps of one crawl, with those in indexes."""

MAX_SITEMAP_URLS = 200_000
"""Addresses that are taken from sitemaps: at one a second, two days and a half."""

_MAX_EXCLUDED_EXAMPLES = 1_000  # of addresses that are left out, for each reason
_UNREPORTED_REASONS = frozenset({OTHER_SITE, "unwanted"})


class CrawlFrontier:
    """Puts into the queue of a crawl what leads on.

    known: how many addresses are. hosts: those on which something was put into the queue since somebody emptied it.
    """

    def __init__(self, config: CrawlConfig, scope: CrawlScope, state: CrawlState, clock: Clock) -> None:
        self._config = config
        self._scope = scope
        self._state = state
        self._year = int(from_epoch(str(int(clock.now())))[:4])
        self._trap_detector = TrapDetector(max_similar=config.alike)
        for name in state.linked_names():  # as far as it had counted before
            self._trap_detector.check(name)
        self._excluded_links: Counter[str] = Counter(state.excluded_links())  # by the reason
        self._sitemap_count = state.count_sitemaps()
        self._in_sitemap_count = state.count_in_sitemaps()
        self.known_count = state.count_urls()
        self.new_hosts: set[str] = set()

    def add_seeds(self) -> None:
        """Want the addresses that were given. Raises UriError for one that is none."""
        for uris, is_start in ((self._config.starts, True), (self._config.extra, False)):
            spelled = [str(parse_url(normalize_input_url(uri))) for uri in uris]
            found = [Link(uri, LinkKind.PAGE) for uri in spelled]
            self._enqueue_links(found, 0, is_start=is_start)

    def add_sitemaps(self, origin: str, sitemaps: Sequence[str]) -> None:
        """Want the sitemaps of a site: those that its robots.txt names, and the one that most sites have."""
        if not self._config.sitemaps:
            return
        self._enqueue_links([Link(uri, LinkKind.LIST) for uri in sitemaps], 0, is_sitemap=True)
        self._enqueue_links([Link(f"{origin}/sitemap.xml", LinkKind.LIST)], 0, is_sitemap=True, is_guess=True)

    def add_links(self, source: QueuedUrl, links: Iterable[Link], *, is_sitemap: bool) -> None:
        """Want what a page, or a sitemap, links to."""
        found = list(links)
        if source.use is not LinkKind.LIST:
            targets = [
                *self._enqueue_links([link for link in found if link.kind is LinkKind.PAGE], source.distance + 1),
                *self._enqueue_links([link for link in found if link.kind is LinkKind.REQUISITE], source.distance),
            ]
            self._enqueue_links([link for link in found if link.kind is LinkKind.LIST], source.distance + 1)
            self._state.add_links(source.id, targets)
            return
        self._enqueue_links(
            [link for link in found if link.kind is LinkKind.LIST], source.distance, is_sitemap=is_sitemap
        )
        # What is named there is as near as what the front page links to.
        self._enqueue_links(
            [link for link in found if link.kind is not LinkKind.LIST], source.distance + 1, in_sitemap=is_sitemap
        )

    def add_redirect(self, source: QueuedUrl, target: str) -> tuple[int | None, str | None]:
        """Want what an address redirects to, in its place; return its id if it is known, and what is strange about it.

        What is strange is `elsewhere`, `circle`, `redirects` (too many of them), or why the target is left out.
        """
        name, key = page_names([target])[0], key_many([target])[0]
        if isinstance(name, UriError) or isinstance(key, UriError):
            return None, "no-address"
        own = page_names([source.uri])[0]
        reason = self._scope.exclusion_reason(target, name, source.use, source.distance, is_link=name != own)
        if reason in _UNREPORTED_REASONS:
            return None, reason
        names, uris = self._state.find_known([name], [target])
        # Only another spelling of the same page has to be asked for by itself: with https, or with a slash.
        number = uris.get(target) or (names.get(name) if name != own else None)
        if number is not None:
            is_circle = number == source.id or number in self._state.redirect_chain(source.id, MAX_REDIRECT_CHAIN)
            return number, "circle" if is_circle else None
        if source.redirects >= MAX_REDIRECT_CHAIN:
            reason = reason or "redirects"
        wanted = DiscoveredUrl(
            target, name, key, _politeness_host(name), source.use, source.distance,
            in_sitemap=False, is_sitemap=source.is_sitemap, redirects=source.redirects + 1, is_guess=source.is_guess,
        )  # fmt: skip
        return self._add_url(wanted, reason), reason

    def save_counts(self) -> None:
        """Put into the state how many links were not followed: call it before each commit."""
        self._state.record_excluded_links(self._excluded_links)

    def _enqueue_links(
        self,
        links: Sequence[Link],
        distance: int,
        *,
        in_sitemap: bool = False,
        is_sitemap: bool = False,
        is_start: bool = False,
        is_guess: bool = False,
    ) -> list[tuple[int, LinkKind]]:
        """Want what links lead to; return the ids of what is known then, with the use of each link."""
        names, keys = page_names([link.uri for link in links]), key_many([link.uri for link in links])
        fit: list[tuple[Link, DiscoveredUrl, str | None]] = []
        for link, name, key in zip(links, names, keys, strict=True):
            if isinstance(name, UriError) or isinstance(key, UriError):
                continue
            reason = self._scope.exclusion_reason(link.uri, name, link.kind, distance, is_link=not in_sitemap)
            host = _politeness_host(name)
            if reason in _UNREPORTED_REASONS:
                continue
            wanted = DiscoveredUrl(
                link.uri, name, key, host, link.kind, distance, in_sitemap, is_sitemap, 0, is_start, is_guess
            )
            fit.append((link, wanted, reason))
        by_name, by_uri = self._state.find_known([each.name for _, each, _ in fit], [each.uri for _, each, _ in fit])
        found: list[tuple[int, LinkKind]] = []
        named: set[int] = set()
        for link, wanted, reason in fit:
            number = by_uri.get(wanted.uri) or by_name.get(wanted.name)
            if number is None:
                number = self._add_url(wanted, reason)
                if number is not None:
                    by_name[wanted.name] = by_uri[wanted.uri] = number
            elif reason is None:
                self._state.enqueue_excluded(number, wanted)
                self.new_hosts.add(wanted.host)
            if number is not None:
                found.append((number, link.kind))
                named.add(number)
        if in_sitemap:
            self._state.mark_in_sitemap(named)
        return found

    def _add_url(self, wanted: DiscoveredUrl, reason: str | None) -> int | None:
        """Note an address that is not known; return its id, or None if it is only counted."""
        reason = reason or self._limit_reason(wanted)
        if reason is None:
            self.known_count += 1
            self._sitemap_count += wanted.is_sitemap
            self._in_sitemap_count += wanted.in_sitemap
            self.new_hosts.add(wanted.host)
            return self._state.enqueue(wanted)
        self._excluded_links[reason] += 1
        if self._excluded_links[reason] > _MAX_EXCLUDED_EXAMPLES or self.known_count >= MAX_KNOWN_URLS:
            return None
        self.known_count += 1
        return self._state.record_excluded(wanted, reason)

    def _limit_reason(self, wanted: DiscoveredUrl) -> str | None:
        """Return why an address is not visited although it is in scope; None if it is."""
        if self.known_count >= MAX_KNOWN_URLS:
            return "too-many"
        if wanted.is_start or wanted.is_guess or wanted.name in self._scope.given_names:
            return None
        if wanted.is_sitemap and self._sitemap_count >= MAX_SITEMAPS:
            return "too-many-sitemaps"
        if wanted.in_sitemap:
            return "too-many-listed" if self._in_sitemap_count >= MAX_SITEMAP_URLS else None
        is_trap = is_endless_calendar(wanted.name, self._year) or self._trap_detector.check(wanted.name) is not None
        return "trap" if is_trap else None


def _politeness_host(name: str) -> str:
    """Return the host that a page is on, without `www` and its port: what is visited by one request at a time."""
    host = host_of_name(name)
    before, _, port = host.rpartition(":")
    return before if port.isdecimal() and before else host
