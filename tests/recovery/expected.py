"""The expected outcome of recovering the reference site: a slow, obvious model of the rules.

It walks the links declared with each capture and uses nothing of `unlost`. It decides what the rules leave open:

- a resource of which archives have only errors, empty bodies or redirects to other sites is MISSING;
- so is one of which they have only soft 404s and parked pages, whose links are not followed;
- a capture whose bytes differ from its listed digest is truncated, and an older complete one is chosen instead;
- a redirect within the site is chosen if there is nothing better, and its target is enqueued;
- links between sitemaps count for the depth like all links, and sitemaps may be too deep;
- for a requisite outside the folder, which no listing covers, the capture of the first archive is chosen;
- a URL named only in a script is enqueued if it is listed, or if no listings are queried; it is never missing;
- requisites are close in time to their page only with a date (`at`); otherwise the latest is chosen.
"""

import re
from collections import deque
from dataclasses import dataclass
from datetime import datetime

from tests.recovery.site import GUESS, HOST, LIST, PAGE, REQUISITE, ROOT, Held, Site, bare


@dataclass(frozen=True, slots=True)
class Run:
    """The options of the command. migrated: archives that change pages."""

    start: str = ROOT
    policy: str = "knowledgeable"
    at: str | None = None
    first: str = "0"
    last: str = "9"
    page: bool = False
    ignore_case: bool = False
    requisites: bool = False
    subdomains: bool = False
    include: str | None = None
    exclude: str | None = None
    depth: int | None = None
    only: tuple[str, ...] = ("a", "b", "c")
    urls: tuple[str, ...] = ()
    most_recent: bool = False
    migrated: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """The prefix of the names of its pages."""
        return bare(self.start)


MISSING = None


def outcome(site: Site, run: Run) -> dict[str, Held | None]:
    """Return the capture to be recovered for each enqueued resource, or MISSING."""
    walk = _Walk(site, run)
    walk.go()
    return walk.found


def listed_only(site: Site, run: Run) -> set[str]:
    """Return the names that archives list in scope and that must not be fetched."""
    found = outcome(site, run)
    held = {name for name, captures in _groups(site, run).items() if captures}
    return {name for name in held if name not in found and _is_below(name, run)}


class _Walk:
    def __init__(self, site: Site, run: Run) -> None:
        self.run = run
        self.groups = _groups(site, run)
        self.found: dict[str, Held | None] = {}
        self.queue: deque[tuple[str, str, int, str | None]] = deque()

    def go(self) -> None:
        run = self.run
        for uri in (run.start, *run.urls):
            self.queue.append((bare(uri), PAGE, 0, None))
        if not run.page and self.groups.get(f"{HOST}/robots.txt"):
            self.queue.append((f"{HOST}/robots.txt", LIST, 0, None))
        if run.policy == "exhaustive":
            names = [name for name in self.groups if _admits(name, PAGE, 0, run) and self._best(name)]
            self.queue.extend((name, PAGE, 0, None) for name in names)
        while self.queue:
            self._enqueue(*self.queue.popleft())

    def _enqueue(self, name: str, use: str, hops: int, page_date: str | None) -> None:
        name = name.lower() if self.run.ignore_case else name
        if name in self.found:
            return
        near = page_date if self.run.at and use == REQUISITE else None
        best = self.found[name] = self._best(name, near, is_unlisted=use == REQUISITE and not self._is_listed(name))
        if best is None:
            return
        if best.target is not None:
            self._link(best.target, use, hops, page_date)
        date = best.date if page_date is None or use != REQUISITE else page_date
        for ref in best.refs:
            self._link(ref.name, ref.use, hops + 1, date)

    def _link(self, name: str, use: str, hops: int, date: str | None) -> None:
        if use == GUESS:
            use = PAGE if name.endswith(".html") else REQUISITE
            is_known = self.run.page or self.run.policy == "naive" or self._is_listed(name)
            if not is_known or self._best(name) is None:
                return
        if _admits(name, use, hops, self.run):
            self.queue.append((name, use, hops, date))

    def _is_listed(self, name: str) -> bool:
        return not self.run.page and _is_below(name, self.run)

    def _best(self, name: str, near: str | None = None, *, is_unlisted: bool = False) -> Held | None:
        run = self.run
        captures = [
            held
            for held in self.groups.get(name.lower() if run.ignore_case else name, ())
            if held.archive in run.only and run.first <= held.date <= run.last
        ]
        good = [held for held in captures if held.is_good]
        if not run.most_recent:
            canonical = [held for held in good if held.archive not in run.migrated or "html" not in held.mime]
            good = canonical or good
        good = good or [held for held in captures if held.target is not None and held.target != name]
        date = near or run.at
        if not good:
            return None
        if is_unlisted and not run.most_recent:
            first = min(held.archive for held in good)
            good = [held for held in good if held.archive == first]
        if date:
            return min(good, key=lambda held: abs(_moment(held.date) - _moment(date)))
        return max(good, key=lambda held: held.date)


def _groups(site: Site, run: Run) -> dict[str, tuple[Held, ...]]:
    groups: dict[str, tuple[Held, ...]] = {}
    for resource in site.resources.values():
        name = resource.name.lower() if run.ignore_case else resource.name
        groups[name] = groups.get(name, ()) + resource.held
    return groups


def _moment(date: str) -> datetime:
    return datetime.strptime(date.ljust(14, "0") if len(date) == 14 else f"{date}0000000000"[:14], "%Y%m%d%H%M%S")  # noqa: DTZ007


def _is_below(name: str, run: Run) -> bool:
    """Return whether a page is in the start folder, or with subdomains on another host of the domain."""
    if run.subdomains and name.partition("/")[0].endswith(f".{HOST}"):
        return True
    return name == run.folder or name.startswith((f"{run.folder}/", f"{run.folder}?"))


def _admits(name: str, use: str, hops: int, run: Run) -> bool:
    uri = f"http://{name}"
    if run.exclude and re.search(run.exclude, uri):
        return False
    if run.include and not re.search(run.include, uri):
        return False
    if use == PAGE:
        return not run.page and _is_below(name, run) and (run.depth is None or hops <= run.depth)
    host = name.partition("/")[0]
    is_own = host == HOST or (run.subdomains and host.endswith(f".{HOST}"))
    if use == LIST:
        return is_own and not run.page and (run.depth is None or hops <= run.depth)
    return is_own or run.requisites
