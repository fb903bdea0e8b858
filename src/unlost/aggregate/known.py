"""What is known of archives: their maps and filters, in memory, and anew when they change."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeAlias

from unlost.aggregate.known_address import HoldingsUrl
from unlost.aggregate.known_file import HoldingsFile, HoldingsKind, HoldingsReader
from unlost.archives.archive import Archive
from unlost.archives.asking.question import HttpClient
from unlost.clock import Clock
from unlost.errors import InputError
from unlost.holdings.filter import Filter
from unlost.holdings.map import Map
from unlost.holdings.routing import DEFAULT_MAX_FILTER_AGE, ArchiveHoldings

DEFAULT_MAX_BYTES = 1 << 31
"""Of one map, uncompressed, or one filter: those of the largest archives that published some have a tenth of it."""

_MAX_CONCURRENT_READS = 2  # that are read: each may need all of a disk, or a processor
_log = logging.getLogger(__name__)

_HoldingsPart: TypeAlias = HoldingsFile | HoldingsUrl


@dataclass(frozen=True, slots=True)
class HoldingsStatus:
    """What is known of one archive, for people.

    archive: its id. map: whether a map is in use. filters: how many filters are.
    since: since when these are, in seconds since 1970; None if nothing is known.
    checked: when it was last looked whether there are others, the same; None if it was not yet.
    unchanged: how often servers said that nothing has changed.
    problems: sentences on what could not be read, or is damaged.
    """

    archive: str
    map: bool
    filters: int
    since: float | None
    checked_at: float | None
    unchanged: int
    problems: tuple[str, ...]


class HoldingsStore:
    """Maps and filters of all archives that are on and have some in the registry.

    Never waits for a file or a server where it is asked what it knows. What cannot be read leaves in place what was
    read before; an archive of which nothing could be read is one without a map, and so asked rather too often.

    archives: those of the registry. courier: brings what is at an address; it should be a patient one.
    folder: for copies of what is at addresses; made when it is needed. clock: tells how old filters are.
    max_age: how old a filter may be and still deny a page that a wildcard of the map covers.
    max_bytes: of one map, uncompressed, or one filter.
    tell: gets a line for people on every new problem. note: the same on what goes well.
    """

    def __init__(
        self,
        archives: Iterable[Archive],
        client: HttpClient,
        folder: Path,
        clock: Clock,
        *,
        max_age: timedelta = DEFAULT_MAX_FILTER_AGE,
        max_bytes: int = DEFAULT_MAX_BYTES,
        warn: Callable[[str], None] = _log.warning,
        on_info: Callable[[str], None] = _log.info,
    ) -> None:
        self._client = client
        self._clock = clock
        self._max_age = max_age
        self._warn = warn
        self._on_info = on_info
        reading = HoldingsReader(max_bytes, asyncio.Semaphore(_MAX_CONCURRENT_READS))
        self._entries = {
            archive.id: _ArchiveEntry(archive, reading, folder)
            for archive in archives
            if archive.enabled and (archive.mementomap or archive.filters)
        }
        # Never changed, only replaced: whoever has it may look into it as long as he likes.
        self._holdings: dict[str, ArchiveHoldings] = {}
        self._refreshing = asyncio.Lock()

    def holdings(self) -> Mapping[str, ArchiveHoldings]:
        """Return what is known of archives, by id: the very same object until something changes."""
        return self._holdings

    def mark_damaged(self, archive: str, problem: str) -> None:
        """Forget what turned out to be damaged, until it is read anew."""
        if archive in self._holdings:
            self._replace(archive, None)
            entry = self._entries[archive]
            entry.discard(problem)
            self._warn_about_problems(entry)

    def statuses(self) -> tuple[HoldingsStatus, ...]:
        """Return what is known of each archive that has a map or filters in the registry, in its order."""
        return tuple(entry.status(self._holdings.get(name)) for name, entry in self._entries.items())

    async def load(self) -> None:
        """Read what is on this machine: files, and copies of what is at addresses. Nobody is asked."""
        await self._update_each(lambda entry: entry.load(), "read")

    async def refresh(self) -> None:
        """Look at every file and ask at every address whether something has changed; read what has.

        Does not raise for what cannot be read: that is told, and among the problems.
        """
        await self._update_each(lambda entry: entry.refresh(self._client), "changed")

    async def watch(self, clock: Clock, seconds: float) -> None:
        """Refresh now, and then again and again, with so many seconds between; until it is cancelled."""
        while True:
            await self.refresh()
            await clock.sleep(seconds)

    async def _update_each(self, work: "Callable[[_ArchiveEntry], Awaitable[bool]]", done: str) -> None:
        async with self._refreshing:
            count = 0

            async def one(entry: _ArchiveEntry) -> None:
                nonlocal count
                try:
                    if await work(entry):
                        self._activate(entry)
                except Exception as error:  # noqa: BLE001  whatever one of them does, the others are looked after
                    entry.trouble = f"{type(error).__name__}: {error}"[:300]
                entry.checked = self._clock.now()
                self._warn_about_problems(entry)
                count += 1
                if entry.is_new:
                    entry.is_new = False
                    self._on_info(
                        f"{entry.archive.id}: map or filters {done} ({count} of {len(self._entries)} archives)"
                    )

            await asyncio.gather(*(one(entry) for entry in self._entries.values()))

    def _activate(self, entry: "_ArchiveEntry") -> None:
        """Put what was read into use, all parts at once."""
        try:
            holdings = entry.build_holdings(self._max_age, self._now)
        except InputError as error:
            entry.trouble = str(error)  # parts of different rules: the other one will change, too
            return
        entry.trouble = None
        self._replace(entry.archive.id, holdings)
        if holdings is not None:
            entry.since = self._clock.now()
            entry.is_new = True

    def _replace(self, archive: str, holdings: ArchiveHoldings | None) -> None:
        others = {name: each for name, each in self._holdings.items() if name != archive}
        self._holdings = others if holdings is None else {**others, archive: holdings}

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now(), UTC)

    def _warn_about_problems(self, entry: "_ArchiveEntry") -> None:
        problems = set(entry.problems())
        for problem in sorted(problems - entry.reported):
            what = "what was read before is used" if entry.archive.id in self._holdings else "it is asked without"
            self._warn(f"{entry.archive.id}: {problem}: {what}")
        entry.reported = problems


class _ArchiveEntry:
    """The parts of what is known of one archive.

    trouble: what is wrong with them together. told: the problems that people know of. is_new: whether something came
    into use that nobody was told of.
    """

    def __init__(self, archive: Archive, reading: HoldingsReader, folder: Path) -> None:
        self.archive = archive
        self.trouble: str | None = None
        self.since: float | None = None
        self.checked: float | None = None
        self.reported: set[str] = set()
        self.is_new = False

        def part(place: str, kind: HoldingsKind) -> _HoldingsPart:
            if place.startswith(("http://", "https://")):
                return HoldingsUrl(place, kind, reading, folder)
            return HoldingsFile(place, kind, reading)

        self.map = part(archive.mementomap, "map") if archive.mementomap else None
        self.filters = [part(place, "filter") for place in archive.filters]

    def parts(self) -> list[_HoldingsPart]:
        return [*([self.map] if self.map else []), *self.filters]

    async def load(self) -> bool:
        return any([await part.load() for part in self.parts()])

    async def refresh(self, client: HttpClient) -> bool:
        return any([await part.refresh(self.archive, client) for part in self.parts()])

    def build_holdings(self, max_age: timedelta, now: Callable[[], datetime]) -> ArchiveHoldings | None:
        """Return what the parts say together; None if one is missing without which the others would deny too much."""
        rows = self.map.value if self.map else None
        pages = [part.value for part in self.filters if isinstance(part.value, Filter)]
        if len(pages) < len(self.filters):
            pages = []  # each may be of a part of the archive: without one of them, the others deny what that has
        if self.map is not None and rows is None:
            return None
        return ArchiveHoldings(rows if isinstance(rows, Map) else None, pages, max_age, now) if rows or pages else None

    def discard(self, problem: str) -> None:
        for part in self.parts():
            part.discard()
        self.trouble, self.since = problem, None

    def problems(self) -> list[str]:
        found = [part.problem for part in self.parts() if part.problem]
        return [*found, *([self.trouble] if self.trouble else [])]

    def status(self, holdings: ArchiveHoldings | None) -> HoldingsStatus:
        unchanged = sum(part.unchanged for part in self.parts() if isinstance(part, HoldingsUrl))
        has_map, filters = (holdings.map is not None, len(holdings.filters)) if holdings else (False, 0)
        since = self.since if holdings else None
        return HoldingsStatus(self.archive.id, has_map, filters, since, self.checked, unchanged, tuple(self.problems()))
