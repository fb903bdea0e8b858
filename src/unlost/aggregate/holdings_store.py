"""MementoMaps and filters of archives, in memory: loaded from files or URLs, and reloaded when they change."""

import asyncio
import json
import logging
import os
import re
import shutil
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias, TypeVar

from unlost.atomic import atomic_file
from unlost.clock import Clock
from unlost.errors import ArchiveError, InputError
from unlost.http.models import HttpClient, HttpRequest, HttpResponse
from unlost.index.ukvs import UkvsReader
from unlost.mementomap.filter import Filter
from unlost.mementomap.lookup import DEFAULT_MAX_FILTER_AGE, ArchiveHoldings
from unlost.mementomap.map import Map
from unlost.problems import Problems, unreadable_error
from unlost.registry.models import Archive, RequestKind

T = TypeVar("T")
HoldingsKind = Literal["map", "filter"]
MapOrFilter: TypeAlias = Map | Filter
_FileStamp: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class HoldingsReader:
    """How maps and filters are read: beside the event loop, a few at a time.

    max_bytes: the largest map, uncompressed, or filter that is read.
    turns: who may read.
    """

    max_bytes: int
    semaphore: asyncio.Semaphore

    async def run_in_thread(self, work: Callable[[], T]) -> T:
        """Return what a function returns that takes its time, in a thread."""
        async with self.semaphore:
            return await asyncio.to_thread(work)

    def read(self, kind: HoldingsKind, path: Path) -> MapOrFilter:
        """Return a map or filter, whole and in memory, so that nobody can change it. Raises InputError."""
        try:
            if path.stat().st_size > self.max_bytes:
                raise InputError(f"{path}: more than {self.max_bytes} bytes")
        except OSError as error:
            raise unreadable_error(path, error) from error
        if kind == "map":
            found = Map.load(path, self.max_bytes)
            if next(iter(UkvsReader(path, Problems())), None) is None:
                # It would deny every page; whoever holds nothing has no need of a map.
                raise InputError(f"{path}: a map without rows")
            return found
        pages = Filter.load(path)
        if damage := pages.check():
            raise InputError(f"{path}: {damage[0]}")
        if not pages.keys:
            raise InputError(f"{path}: a filter of nothing")
        return pages


class HoldingsFile:
    """A map or filter in a file.

    place: the file. what: what was last read from it, and is sound; None if nothing was.
    problem: why it could not be read when it was last tried; None if it could.
    """

    def __init__(self, path: str, kind: HoldingsKind, reader: HoldingsReader) -> None:
        self.path = path
        self.kind = kind
        self.value: MapOrFilter | None = None
        self.problem: str | None = None
        self._reader = reader
        self._stamp: _FileStamp | None = None

    async def load(self) -> bool:
        """Read the file if it has changed, and return whether there is something new."""
        try:
            mark = await asyncio.to_thread(_file_stamp, Path(self.path))
            if mark == self._stamp:
                return False
            what, problem = await self._reader.run_in_thread(self._read)
            if await asyncio.to_thread(_file_stamp, Path(self.path)) != mark:
                # Half a map denies the other half, and looks like a whole one. The next look will tell.
                self.problem = f"{self.path}: it changes while it is read: rename a whole one over it"
                return False
        except OSError as error:
            self._stamp, self.problem = None, f"{self.path}: cannot be read: {error.strerror or error}"
            return False
        self.problem, self._stamp = problem, mark  # what is broken is not read again until it changes
        self.value = what or self.value
        return what is not None

    def _read(self) -> tuple[MapOrFilter | None, str | None]:
        try:
            return self._reader.read(self.kind, Path(self.path)), None
        except InputError as error:
            return None, str(error)

    async def refresh(self, archive: Archive, client: HttpClient) -> bool:
        """Do the same: nobody has to be asked."""
        del archive, client
        return await self.load()

    def discard(self) -> None:
        """Read it anew next time, since what was read turned out to be damaged."""
        self.value, self._stamp = None, None


def _file_stamp(path: Path) -> _FileStamp:
    """Return what changes with a file."""
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev


_ETAG = re.compile(r'(?:W/)?"[!#-~]{0,500}"')
_DATE = re.compile(r"[A-Za-z0-9,: +-]{1,60}")
_STALE_COPY_SECONDS = 3600.0  # nobody takes so long to read a copy
_MAX_METADATA_BYTES = 1 << 16  # bytes of what is noted beside a copy


@dataclass(frozen=True, slots=True)
class CacheValidators:
    """By what a server knows again what it sent. None for what it did not say."""

    etag: str | None = None
    modified: str | None = None

    @classmethod
    def from_response(cls, response: HttpResponse) -> "CacheValidators":
        """Return that of an answer, as far as it can be sent back."""
        etag, modified = response.header("ETag") or "", response.header("Last-Modified") or ""
        return cls(etag if _ETAG.fullmatch(etag) else None, modified if _DATE.fullmatch(modified) else None)


@dataclass(frozen=True, slots=True)
class _CopyMetadata:
    """What is noted of a copy: whence it is, which version, and the name of its file."""

    address: str
    version: CacheValidators
    file: str


class HoldingsUrl:
    """A map or filter at an address.

    place: the address. what: what was last read, and is sound; None if nothing was.
    problem: why what is there now is not what is used; None if it is.
    unchanged: how often the server said that nothing has changed.
    folder: where copies are kept, so that the next process has one at once, also if the server is down.
    """

    def __init__(self, url: str, kind: HoldingsKind, reader: HoldingsReader, folder: Path) -> None:
        self.url = url
        self.kind = kind
        self.value: MapOrFilter | None = None
        self.problem: str | None = None
        self.unchanged = 0
        self._reader = reader
        self._name = sha256(url.encode()).hexdigest()[:40]
        self._folder = folder
        self._current = CacheValidators()
        self._rejected = CacheValidators()
        self._is_loaded = False

    async def load(self) -> bool:
        """Read the copy that is kept, the first time, and return whether there is one. Nobody is asked."""
        if self._is_loaded:
            return False
        self._is_loaded = True
        try:
            note = await self._reader.run_in_thread(self._read_metadata)
            if note is None:
                return False
            self.value = await self._reader.run_in_thread(
                lambda: self._reader.read(self.kind, self._folder / note.file)
            )
        except InputError as error:
            self.problem = f"the copy that was kept: {error}"
            return False
        self._current = note.version
        return True

    async def refresh(self, archive: Archive, client: HttpClient) -> bool:
        """Ask whether there is another version, read it, and return whether it is sound and so in use from now on."""
        is_new = await self.load()
        try:
            reply = await client.send(
                archive,
                HttpRequest(self.url, RequestKind.INDEX, self._conditional_headers(), max_bytes=self._reader.max_bytes),
            )
            with reply.body:
                if reply.status == 304:
                    self._record_unchanged(CacheValidators.from_response(reply))
                    return is_new
                if reply.status != 200:
                    self.problem = f"{self.url}: status {reply.status}"
                    return is_new
                version = CacheValidators.from_response(reply)
                self.value = await self._reader.run_in_thread(lambda: self._store_copy(reply.body, version))
        except ArchiveError as error:
            self.problem = f"{self.url}: {error}"
            return is_new
        except InputError as error:
            self._rejected = version
            self.problem = f"{self.url}: what is there now cannot be used: {error}"
            return is_new
        except OSError as error:
            self.problem = f"{self.url}: {error.filename or self._folder}: {error.strerror or error}"
            return is_new
        self._current, self._rejected, self.problem = version, CacheValidators(), None
        return True

    def discard(self) -> None:
        """Ask for it anew next time, since what was read turned out to be damaged."""
        self.value, self._current, self._rejected, self._is_loaded = None, CacheValidators(), CacheValidators(), True

    def _conditional_headers(self) -> dict[str, str]:
        """Return the headers that spare us what we have, and what we have found to be broken."""
        tags = [version.etag for version in (self._current, self._rejected) if version.etag]
        date = self._rejected.modified or self._current.modified
        found = {"If-None-Match": ", ".join(dict.fromkeys(tags))} if tags else {}
        return found | ({"If-Modified-Since": date} if date else {})

    def _record_unchanged(self, version: CacheValidators) -> None:
        self.unchanged += 1
        refused = self._rejected
        if refused == CacheValidators() or (version.etag is not None and not _is_same_etag(version.etag, refused.etag)):
            self._rejected, self.problem = CacheValidators(), None

    def _read_metadata(self) -> _CopyMetadata | None:
        """Return what is noted of the copy; None if there is none."""
        try:
            with (self._folder / f"{self._name}.json").open("rb") as file:
                table = json.loads(file.read(_MAX_METADATA_BYTES))
            version = CacheValidators(table["version"]["etag"], table["version"]["modified"])
            note = _CopyMetadata(table["address"], version, table["file"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        texts = (note.file, version.etag or "", version.modified or "")
        is_ours = note.address == self.url and all(isinstance(text, str) for text in texts)
        return note if is_ours and re.fullmatch(rf"{self._name}\.[0-9a-f]+", note.file) else None

    def _store_copy(self, body: BinaryIO, version: CacheValidators) -> MapOrFilter:
        """Keep a copy, if it is sound, and return what was read from it. Raises InputError, OSError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        copy = self._folder / f"{self._name}.{os.urandom(8).hex()}"
        try:
            with atomic_file(copy) as file:
                shutil.copyfileobj(body, file, 1 << 20)
            what = self._reader.read(self.kind, copy)
            with atomic_file(self._folder / f"{self._name}.json") as file:
                file.write(json.dumps(asdict(_CopyMetadata(self.url, version, copy.name))).encode())
        except BaseException:
            copy.unlink(missing_ok=True)
            raise
        self._remove_stale_copies(copy.name)
        return what

    def _remove_stale_copies(self, kept: str) -> None:
        """Remove copies that nothing is noted of, but for new ones, which another process may be reading."""
        recent = (self._folder / kept).stat().st_mtime - _STALE_COPY_SECONDS
        for each in self._folder.glob(f"*{self._name}.*"):
            with suppress(OSError):
                if each.name not in (kept, f"{self._name}.json") and each.stat().st_mtime < recent:
                    each.unlink()


def _is_same_etag(one: str, other: str | None) -> bool:
    return other is not None and one.removeprefix("W/") == other.removeprefix("W/")


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
