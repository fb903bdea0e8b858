"""Frontier of a crawl: decides which links, redirects and sitemap entries are enqueued.

A URL is enqueued if it is in scope, not known under another spelling, and not part of a trap.
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
"""Consecutive redirects that are followed. Browsers follow 20, but chains of more than a few are usually loops."""

MAX_KNOWN_URLS = 1_000_000
"""URLs stored in the state, about 500 MB. Links beyond that are only counted."""

MAX_SITEMAPS = 500
"""Sitemaps per crawl, including those named by sitemap indexes."""

MAX_SITEMAP_URLS = 200_000
"""URLs taken from sitemaps: two and a half days of requests at one per second."""

_MAX_EXCLUDED_EXAMPLES = 1_000  # excluded URLs stored per reason; further ones are only counted
_UNREPORTED_REASONS = frozenset({OTHER_SITE, "unwanted"})


class CrawlFrontier:
    """Adds discovered URLs to the queue of a crawl.

    Attributes:
        known_count: URLs in the state, enqueued or excluded.
        new_hosts: Hosts with URLs enqueued since the caller last cleared the set.
    """

    def __init__(self, config: CrawlConfig, scope: CrawlScope, state: CrawlState, clock: Clock) -> None:
        self._config = config
        self._scope = scope
        self._state = state
        self._year = int(from_epoch(str(int(clock.now())))[:4])
        self._trap_detector = TrapDetector(max_similar=config.alike)
        for name in state.linked_names():  # restore the counts of earlier runs
            self._trap_detector.check(name)
        self._excluded_links: Counter[str] = Counter(state.excluded_links())
        self._sitemap_count = state.count_sitemaps()
        self._in_sitemap_count = state.count_in_sitemaps()
        self.known_count = state.count_urls()
        self.new_hosts: set[str] = set()

    def add_seeds(self) -> None:
        """Enqueue the configured URLs. Raises UriError for an invalid one."""
        for uris, is_start in ((self._config.starts, True), (self._config.extra, False)):
            urls = [str(parse_url(normalize_input_url(uri))) for uri in uris]
            links = [Link(uri, LinkKind.PAGE) for uri in urls]
            self._enqueue_links(links, 0, is_start=is_start)

    def add_sitemaps(self, origin: str, sitemaps: Sequence[str]) -> None:
        """Enqueue the sitemaps named by robots.txt, and `/sitemap.xml`."""
        if not self._config.sitemaps:
            return
        self._enqueue_links([Link(uri, LinkKind.LIST) for uri in sitemaps], 0, is_sitemap=True)
        self._enqueue_links([Link(f"{origin}/sitemap.xml", LinkKind.LIST)], 0, is_sitemap=True, is_guess=True)

    def add_links(self, source: QueuedUrl, links: Iterable[Link], *, is_sitemap: bool) -> None:
        """Enqueue the links of a page, or the entries of a sitemap."""
        all_links = list(links)
        if source.link_kind is not LinkKind.LIST:
            targets = [
                *self._enqueue_links([link for link in all_links if link.kind is LinkKind.PAGE], source.distance + 1),
                *self._enqueue_links([link for link in all_links if link.kind is LinkKind.REQUISITE], source.distance),
            ]
            self._enqueue_links([link for link in all_links if link.kind is LinkKind.LIST], source.distance + 1)
            self._state.add_links(source.id, targets)
            return
        self._enqueue_links(
            [link for link in all_links if link.kind is LinkKind.LIST], source.distance, is_sitemap=is_sitemap
        )
        # Sitemap entries count as one link away from a seed, like the links of the home page.
        self._enqueue_links(
            [link for link in all_links if link.kind is not LinkKind.LIST], source.distance + 1, in_sitemap=is_sitemap
        )

    def add_redirect(self, source: QueuedUrl, target: str) -> tuple[int | None, str | None]:
        """Enqueue the target of a redirect.

        Returns:
            The id of the target, or None if it is not stored; and a reason, or None if the redirect is ordinary.
            Reasons: `elsewhere`, `circle`, `redirects` (chain too long), `no-address`, or why the target is excluded.
        """
        name, key = page_names([target])[0], key_many([target])[0]
        if isinstance(name, UriError) or isinstance(key, UriError):
            return None, "no-address"
        source_name = page_names([source.uri])[0]
        reason = self._scope.exclusion_reason(
            target, name, source.link_kind, source.distance, is_link=name != source_name
        )
        if reason in _UNREPORTED_REASONS:
            return None, reason
        ids_by_name, ids_by_uri = self._state.find_known([name], [target])
        # A redirect to another spelling of the same page (https, trailing slash) must be fetched, although its name
        # is known.
        target_id = ids_by_uri.get(target) or (ids_by_name.get(name) if name != source_name else None)
        if target_id is not None:
            is_circle = target_id == source.id or target_id in self._state.redirect_chain(source.id, MAX_REDIRECT_CHAIN)
            return target_id, "circle" if is_circle else None
        if source.redirects >= MAX_REDIRECT_CHAIN:
            reason = reason or "redirects"
        discovered = DiscoveredUrl(
            target, name, key, _politeness_host(name), source.link_kind, source.distance,
            in_sitemap=False, is_sitemap=source.is_sitemap, redirects=source.redirects + 1, is_guess=source.is_guess,
        )  # fmt: skip
        return self._add_url(discovered, reason), reason

    def save_counts(self) -> None:
        """Write the numbers of excluded links to the state; call it before each commit."""
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
        """Enqueue the targets of links; return the ids of those that are stored, with the kind of each link."""
        names, keys = page_names([link.uri for link in links]), key_many([link.uri for link in links])
        candidates: list[tuple[Link, DiscoveredUrl, str | None]] = []
        for link, name, key in zip(links, names, keys, strict=True):
            if isinstance(name, UriError) or isinstance(key, UriError):
                continue
            reason = self._scope.exclusion_reason(link.uri, name, link.kind, distance, is_link=not in_sitemap)
            host = _politeness_host(name)
            if reason in _UNREPORTED_REASONS:
                continue
            discovered = DiscoveredUrl(
                link.uri, name, key, host, link.kind, distance, in_sitemap, is_sitemap, 0, is_start, is_guess
            )
            candidates.append((link, discovered, reason))
        by_name, by_uri = self._state.find_known(
            [each.name for _, each, _ in candidates], [each.uri for _, each, _ in candidates]
        )
        stored: list[tuple[int, LinkKind]] = []
        target_ids: set[int] = set()
        for link, discovered, reason in candidates:
            target_id = by_uri.get(discovered.uri) or by_name.get(discovered.name)
            if target_id is None:
                target_id = self._add_url(discovered, reason)
                if target_id is not None:
                    by_name[discovered.name] = by_uri[discovered.uri] = target_id
            elif reason is None:
                self._state.enqueue_excluded(target_id, discovered)
                self.new_hosts.add(discovered.host)
            if target_id is not None:
                stored.append((target_id, link.kind))
                target_ids.add(target_id)
        if in_sitemap:
            self._state.mark_in_sitemap(target_ids)
        return stored

    def _add_url(self, discovered: DiscoveredUrl, reason: str | None) -> int | None:
        """Enqueue an unknown URL, or record it as excluded.

        Returns:
            Its id; None if it is only counted, because enough examples of excluded URLs are stored.
        """
        reason = reason or self._limit_reason(discovered)
        if reason is None:
            self.known_count += 1
            self._sitemap_count += discovered.is_sitemap
            self._in_sitemap_count += discovered.in_sitemap
            self.new_hosts.add(discovered.host)
            return self._state.enqueue(discovered)
        self._excluded_links[reason] += 1
        if self._excluded_links[reason] > _MAX_EXCLUDED_EXAMPLES or self.known_count >= MAX_KNOWN_URLS:
            return None
        self.known_count += 1
        return self._state.record_excluded(discovered, reason)

    def _limit_reason(self, discovered: DiscoveredUrl) -> str | None:
        """Return why a URL in scope is not fetched; None if it is."""
        if self.known_count >= MAX_KNOWN_URLS:
            return "too-many"
        if discovered.is_start or discovered.is_guess or discovered.name in self._scope.given_names:
            return None
        if discovered.is_sitemap and self._sitemap_count >= MAX_SITEMAPS:
            return "too-many-sitemaps"
        if discovered.in_sitemap:
            return "too-many-listed" if self._in_sitemap_count >= MAX_SITEMAP_URLS else None
        is_trap = (
            is_endless_calendar(discovered.name, self._year) or self._trap_detector.check(discovered.name) is not None
        )
        return "trap" if is_trap else None


def _politeness_host(name: str) -> str:
    """Return the host of a page name without `www` and port. One request at a time is sent to it.

    Hosts are identified by page names, so that `www` does not double the request rate.
    """
    host = host_of_name(name)
    before, _, port = host.rpartition(":")
    return before if port.isdecimal() and before else host
