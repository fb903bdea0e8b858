"""Archives of the decaying web with known rules, and the ground truth."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from tests.external.wayback_cdx import FakeWayback, StoredCapture
from tests.watch.decaying.web import BEGIN, DAY, DecayingWeb
from unlost import dates
from unlost.registry import Archive, ArchiveKind

_TYPES = {"html": "text/html", "pdf": "application/pdf", "gif": "image/gif", "jpg": "image/jpeg", "png": "image/png"}


def type_of(path: str) -> str:
    """Return the media type of a file of the web."""
    return _TYPES[path.rpartition(".")[2]]


@dataclass(frozen=True)
class Behaviour:
    """How an archive crawls and shows the web.

    Attributes:
        every: Days between crawls, which start on day `offset`.
        lag: Days until a capture is visible.
        keeps: Days after the crawl that found a page missing until its captures are purged; None for never.
        hidden: Each page is hidden on one of this many days, at random; 0 for none.
        ends: Extensions of the captured files.
        lists: Whether it lists prefixes; otherwise it has only TimeMaps.
        migrates: Media types that it changes.
    """

    id: str
    every: int
    offset: int = 0
    lag: int = 0
    keeps: int | None = None
    hidden: int = 0
    ends: tuple[str, ...] = (".html", ".pdf", ".gif", ".jpg", ".png")
    lists: bool = True
    migrates: tuple[str, ...] = ()

    def captures(self, web: "Truth", path: str, day: int) -> list[int]:
        """Return the days of the captures of a page that are visible on a day."""
        if not path.endswith(self.ends) or (self.hidden and _draw(self.id, path, day) % self.hidden == 0):
            return []
        crawls = range(self.offset, day + 1, self.every)
        removed = web.removed[path]
        if removed is not None and self.keeps is not None:
            noticed = next((crawl for crawl in crawls if crawl >= removed), None)
            if noticed is not None and day >= noticed + self.keeps:
                return []
        return [crawl for crawl in crawls if crawl + self.lag <= day and (removed is None or crawl < removed)]

    def archive(self, server: FakeWayback) -> Archive:
        """Return its registry entry."""
        whole = replace(server.archive(), id=self.id, name=self.id, migrated=self.migrates)
        if self.lists:
            return whole
        return Archive(self.id, self.id, ArchiveKind.MEMENTO, timemap=whole.timemap, migrated=self.migrates)


def _draw(name: str, path: str, day: int) -> int:
    return int.from_bytes(sha256(f"{name} {path} {day}".encode()).digest()[:6])


class Truth:
    """The ground truth of a web and its archives, computed day by day."""

    def __init__(self, web: DecayingWeb, behaviours: Sequence[Behaviour], days: int) -> None:
        self.web = web
        self.behaviours = behaviours
        self.days = days
        self.removed = web.removed()
        self.paths = sorted(self.removed)

    def is_live(self, path: str, day: int) -> bool:
        """Return whether a file is on the web on a day."""
        removed = self.removed[path]
        return removed is None or day < removed

    def is_held(self, path: str, day: int, names: Sequence[str]) -> bool:
        """Return whether one of these archives shows it on a day."""
        return any(each.captures(self, path, day) for each in self.behaviours if each.id in names)

    def state(self, path: str, day: int) -> str:
        """Return the state of a file on a day."""
        names = [each.id for each in self.behaviours]
        words = {(True, True): "replicated", (True, False): "vulnerable", (False, True): "endangered"}
        return words.get((self.is_live(path, day), self.is_held(path, day, names)), "unrecoverable")

    def life(self, path: str, names: Sequence[str]) -> dict[str, float | bool | None]:
        """Return t0, ta, tr, tp, TTL_c, P_r, both periods and late caching of a file in days, by definition."""
        held = [day for day in range(self.days) if self.is_held(path, day, names)]
        removed = self.removed[path]
        tr = removed if removed is not None and removed < self.days else None
        ta = held[0] if held else None
        tp = held[-1] + 1 if held and held[-1] + 1 < self.days else None
        life: dict[str, float | bool | None] = {"t0": 0, "ta": ta, "tr": tr, "tp": tp}
        life["ttl_c"] = tp - ta if ta is not None and tp is not None else None
        life["p_r"] = None
        if ta is not None:
            end = tp if tp is not None else self.days - 1
            life["p_r"] = len([day for day in held if day < end]) / (end - ta) if end > ta else None
        life["is_late"] = tr is not None and ta is not None and tr < ta
        ends = [each for each in (ta, tr) if each is not None]
        life["vulnerable"] = min(ends) if ends else None
        life["endangered"] = None
        if tr is not None and ta is not None and tp is not None:
            life["endangered"] = max(0, tp - max(tr, ta))
        return life

    def stored(self, behaviour: Behaviour, base: str, day: int) -> list[StoredCapture]:
        """Return the captures that an archive shows on a day. `base` is the URL of the web with a trailing slash."""
        return [
            StoredCapture(file_url(base, path), day_timestamp(capture), mimetype=type_of(path))
            for path in self.paths
            for capture in behaviour.captures(self, path, day)
        ]


def file_url(base: str, path: str) -> str:
    """Return the URL of a file: folders in place of their `index.html`."""
    return base + path.removesuffix("index.html")


def day_timestamp(day: int) -> str:
    """Return a day as 14 digits: noon, when archives crawl; visits are in the evening."""
    return dates.from_epoch(str(BEGIN + day * DAY + DAY // 2))
