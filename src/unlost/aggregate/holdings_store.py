"""MementoMaps and filters of archives: loaded from files or URLs into memory, and reloaded when they change."""

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

_ETAG = re.compile(r'(?:W/)?"[!#-~]{0,500}"')
_DATE = re.compile(r"[A-Za-z0-9,: +-]{1,60}")
_STALE_COPY_SECONDS = 3600.0  # no process takes that long to read a cached file
_MAX_METADATA_BYTES = 1 << 16  # of the JSON file next to a cached file

DEFAULT_MAX_BYTES = 1 << 31
"""Default size limit of a map (uncompressed) or filter: ten times those that the largest archives have published."""
_MAX_CONCURRENT_READS = 2  # each may saturate a disk or a CPU core
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HoldingsReader:
    """Reads maps and filters in threads, a limited number at a time.

    Attributes:
        max_bytes: Size limit of a map (uncompressed) or filter.
        semaphore: Limits the number of concurrent reads.
    """

    max_bytes: int
    semaphore: asyncio.Semaphore

    async def run_in_thread(self, work: Callable[[], T]) -> T:
        """Run a blocking function in a thread and return its result."""
        async with self.semaphore:
            return await asyncio.to_thread(work)

    def read(self, kind: HoldingsKind, path: Path) -> MapOrFilter:
        """Read a map or filter into memory. Raises InputError.

        It is not mapped: a process that truncates a mapped file would end this one with SIGBUS.
        """
        try:
            if path.stat().st_size > self.max_bytes:
                raise InputError(f"{path}: more than {self.max_bytes} bytes")
        except OSError as error:
            raise unreadable_error(path, error) from error
        if kind == "map":
            loaded_map = Map.load(path, self.max_bytes)
            if next(iter(UkvsReader(path, Problems())), None) is None:
                # It would deny every page, which is more likely a broken file than an empty archive.
                raise InputError(f"{path}: a map without rows")
            return loaded_map
        loaded_filter = Filter.load(path)
        if damage := loaded_filter.check():
            raise InputError(f"{path}: {damage[0]}")
        if not loaded_filter.keys:
            raise InputError(f"{path}: a filter of nothing")
        return loaded_filter


class HoldingsFile:
    """A map or filter in a local file.

    Attributes:
        path: The file.
        value: What was last loaded successfully; None if nothing was.
        problem: Why the last load failed; None if it succeeded.
    """

    def __init__(self, path: str, kind: HoldingsKind, reader: HoldingsReader) -> None:
        self.path = path
        self.kind = kind
        self.value: MapOrFilter | None = None
        self.problem: str | None = None
        self._reader = reader
        self._stamp: _FileStamp | None = None

    async def load(self) -> bool:
        """Load the file if it has changed, and return whether there is a new value."""
        try:
            stamp = await asyncio.to_thread(_file_stamp, Path(self.path))
            if stamp == self._stamp:
                return False
            value, problem = await self._reader.run_in_thread(self._read)
            if await asyncio.to_thread(_file_stamp, Path(self.path)) != stamp:
                # A partly written map looks complete and denies the missing part. The next refresh reads it again.
                self.problem = f"{self.path}: it changes while it is read: rename a whole one over it"
                return False
        except OSError as error:
            self._stamp, self.problem = None, f"{self.path}: cannot be read: {error.strerror or error}"
            return False
        self.problem, self._stamp = problem, stamp  # a broken file is not read again until it changes
        self.value = value or self.value
        return value is not None

    def _read(self) -> tuple[MapOrFilter | None, str | None]:
        try:
            return self._reader.read(self.kind, Path(self.path)), None
        except InputError as error:
            return None, str(error)

    async def refresh(self, archive: Archive, client: HttpClient) -> bool:
        """Load the file if it has changed. The arguments are unused; `HoldingsUrl` needs them."""
        del archive, client
        return await self.load()

    def discard(self) -> None:
        """Drop the value, which turned out to be damaged, and load the file again at the next refresh."""
        self.value, self._stamp = None, None


def _file_stamp(path: Path) -> _FileStamp:
    """Return values that differ when the file was modified or replaced."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev


@dataclass(frozen=True, slots=True)
class CacheValidators:
    """HTTP validators of a response (RFC 9110, 8.8); None for those the server did not send."""

    etag: str | None = None
    modified: str | None = None

    @classmethod
    def from_response(cls, response: HttpResponse) -> "CacheValidators":
        """Return the validators of a response, without values that cannot be sent back safely."""
        etag, modified = response.header("ETag") or "", response.header("Last-Modified") or ""
        return cls(etag if _ETAG.fullmatch(etag) else None, modified if _DATE.fullmatch(modified) else None)


@dataclass(frozen=True, slots=True)
class _CopyMetadata:
    """Stored as JSON next to a cached file: its URL, version and file name. The fields are the names in the JSON."""

    address: str
    version: CacheValidators
    file: str


class HoldingsUrl:
    """A map or filter at a URL, cached on disk, so that the next process can use it even if the server is down.

    Attributes:
        url: The URL.
        value: What was last loaded successfully; None if nothing was.
        problem: Why the current version at the URL is not in use; None if it is.
        unchanged: Number of responses 304 (Not Modified).
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
        """Load the cached file, on the first call only, and return whether there is one. Sends no request."""
        if self._is_loaded:
            return False
        self._is_loaded = True
        try:
            metadata = await self._reader.run_in_thread(self._read_metadata)
            if metadata is None:
                return False
            self.value = await self._reader.run_in_thread(
                lambda: self._reader.read(self.kind, self._folder / metadata.file)
            )
        except InputError as error:
            self.problem = f"the copy that was kept: {error}"
            return False
        self._current = metadata.version
        return True

    async def refresh(self, archive: Archive, client: HttpClient) -> bool:
        """Send a conditional request, load a new version, and return whether there is a new value."""
        is_loaded = await self.load()
        try:
            response = await client.send(
                archive,
                HttpRequest(self.url, RequestKind.INDEX, self._conditional_headers(), max_bytes=self._reader.max_bytes),
            )
            with response.body:
                if response.status == 304:
                    self._record_unchanged(CacheValidators.from_response(response))
                    return is_loaded
                if response.status != 200:
                    self.problem = f"{self.url}: status {response.status}"
                    return is_loaded
                version = CacheValidators.from_response(response)
                self.value = await self._reader.run_in_thread(lambda: self._store_copy(response.body, version))
        except ArchiveError as error:
            self.problem = f"{self.url}: {error}"
            return is_loaded
        except InputError as error:
            self._rejected = version
            self.problem = f"{self.url}: what is there now cannot be used: {error}"
            return is_loaded
        except OSError as error:
            self.problem = f"{self.url}: {error.filename or self._folder}: {error.strerror or error}"
            return is_loaded
        self._current, self._rejected, self.problem = version, CacheValidators(), None
        return True

    def discard(self) -> None:
        """Drop the value, which turned out to be damaged, and download it again at the next refresh."""
        self.value, self._current, self._rejected, self._is_loaded = None, CacheValidators(), CacheValidators(), True

    def _conditional_headers(self) -> dict[str, str]:
        """Return headers that avoid downloading the current version, or one that was rejected as broken."""
        tags = [version.etag for version in (self._current, self._rejected) if version.etag]
        date = self._rejected.modified or self._current.modified
        headers = {"If-None-Match": ", ".join(dict.fromkeys(tags))} if tags else {}
        return headers | ({"If-Modified-Since": date} if date else {})

    def _record_unchanged(self, version: CacheValidators) -> None:
        self.unchanged += 1
        rejected = self._rejected
        if rejected == CacheValidators() or (
            version.etag is not None and not _is_same_etag(version.etag, rejected.etag)
        ):
            self._rejected, self.problem = CacheValidators(), None

    def _read_metadata(self) -> _CopyMetadata | None:
        """Return the metadata of the cached file; None if there is none."""
        try:
            with (self._folder / f"{self._name}.json").open("rb") as file:
                table = json.loads(file.read(_MAX_METADATA_BYTES))
            version = CacheValidators(table["version"]["etag"], table["version"]["modified"])
            metadata = _CopyMetadata(table["address"], version, table["file"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        texts = (metadata.file, version.etag or "", version.modified or "")
        is_ours = metadata.address == self.url and all(isinstance(text, str) for text in texts)
        return metadata if is_ours and re.fullmatch(rf"{self._name}\.[0-9a-f]+", metadata.file) else None

    def _store_copy(self, body: BinaryIO, version: CacheValidators) -> MapOrFilter:
        """Load a downloaded file and cache it if it is valid. Raises InputError or OSError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        cached_file = self._folder / f"{self._name}.{os.urandom(8).hex()}"
        try:
            with atomic_file(cached_file) as file:
                shutil.copyfileobj(body, file, 1 << 20)
            value = self._reader.read(self.kind, cached_file)
            with atomic_file(self._folder / f"{self._name}.json") as file:
                file.write(json.dumps(asdict(_CopyMetadata(self.url, version, cached_file.name))).encode())
        except BaseException:
            cached_file.unlink(missing_ok=True)
            raise
        self._remove_stale_copies(cached_file.name)
        return value

    def _remove_stale_copies(self, current_name: str) -> None:
        """Remove cached files without metadata, except recent ones, which another process may be reading."""
        recent = (self._folder / current_name).stat().st_mtime - _STALE_COPY_SECONDS
        for path in self._folder.glob(f"*{self._name}.*"):
            with suppress(OSError):
                if path.name not in (current_name, f"{self._name}.json") and path.stat().st_mtime < recent:
                    path.unlink()


def _is_same_etag(one: str, other: str | None) -> bool:
    return other is not None and one.removeprefix("W/") == other.removeprefix("W/")


_HoldingsPart: TypeAlias = HoldingsFile | HoldingsUrl


@dataclass(frozen=True, slots=True)
class HoldingsStatus:
    """Status of the map and filters of one archive.

    Attributes:
        archive: ID of the archive.
        map: Whether a map is in use.
        filters: Number of filters in use.
        since: When they were loaded, in seconds since 1970; None if there are none.
        checked_at: When changes were last checked for, in seconds since 1970; None if never.
        unchanged: Number of responses 304 (Not Modified).
        problems: Sentences about what could not be read or is damaged.
    """

    archive: str
    map: bool
    filters: int
    since: float | None
    checked_at: float | None
    unchanged: int
    problems: tuple[str, ...]


class HoldingsStore:
    """Maps and filters of all enabled archives that have some in the registry.

    Look-ups never block. If a new version cannot be read, the previous one stays in use. An archive whose files could
    not be read at all counts as one without a map, so it is queried too often rather than too rarely.

    Args:
        archives: The archives of the registry.
        client: Downloads files; it should wait for rate limits.
        folder: Cache of downloaded files; created when needed.
        clock: Source of time.
        max_age: Maximum age at which a filter may deny a page that a wildcard of the map covers.
        max_bytes: Size limit of a map (uncompressed) or filter.
        warn: Called with a message for every new problem.
        on_info: Called with a message for every change.
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
        reader = HoldingsReader(max_bytes, asyncio.Semaphore(_MAX_CONCURRENT_READS))
        self._entries = {
            archive.id: _ArchiveEntry(archive, reader, folder)
            for archive in archives
            if archive.enabled and (archive.mementomap or archive.filters)
        }
        # Replaced, never mutated, so that a caller sees either the old or the new holdings.
        self._holdings: dict[str, ArchiveHoldings] = {}
        self._refreshing = asyncio.Lock()

    def holdings(self) -> Mapping[str, ArchiveHoldings]:
        """Return the holdings of archives by ID: the same object until something changes."""
        return self._holdings

    def mark_damaged(self, archive: str, problem: str) -> None:
        """Drop the holdings of an archive until they are loaded again."""
        if archive in self._holdings:
            self._replace(archive, None)
            entry = self._entries[archive]
            entry.discard(problem)
            self._warn_about_problems(entry)

    def statuses(self) -> tuple[HoldingsStatus, ...]:
        """Return the status of each archive with a map or filters in the registry, in its order."""
        return tuple(entry.status(self._holdings.get(name)) for name, entry in self._entries.items())

    async def load(self) -> None:
        """Load local files and cached downloads. Sends no request."""
        await self._update_each(lambda entry: entry.load(), "read")

    async def refresh(self) -> None:
        """Check all files and URLs for changes and load new versions.

        Failures are reported through `warn` and as problems of the status.
        """
        await self._update_each(lambda entry: entry.refresh(self._client), "changed")

    async def watch(self, clock: Clock, seconds: float) -> None:
        """Refresh now and then every `seconds` seconds, until cancelled."""
        while True:
            await self.refresh()
            await clock.sleep(seconds)

    async def _update_each(self, work: "Callable[[_ArchiveEntry], Awaitable[bool]]", done: str) -> None:
        async with self._refreshing:
            count = 0

            async def update_entry(entry: _ArchiveEntry) -> None:
                nonlocal count
                try:
                    if await work(entry):
                        self._activate(entry)
                except Exception as error:  # noqa: BLE001  a failure of one archive must not stop the others
                    entry.problem = f"{type(error).__name__}: {error}"[:300]
                entry.checked_at = self._clock.now()
                self._warn_about_problems(entry)
                count += 1
                if entry.is_new:
                    entry.is_new = False
                    self._on_info(
                        f"{entry.archive.id}: map or filters {done} ({count} of {len(self._entries)} archives)"
                    )

            await asyncio.gather(*(update_entry(entry) for entry in self._entries.values()))

    def _activate(self, entry: "_ArchiveEntry") -> None:
        """Put the loaded files of an archive into use, all at once."""
        try:
            holdings = entry.build_holdings(self._max_age, self._now)
        except InputError as error:
            entry.problem = str(error)  # map and filter have different key rules until both are updated
            return
        entry.problem = None
        self._replace(entry.archive.id, holdings)
        if holdings is not None:
            entry.loaded_at = self._clock.now()
            entry.is_new = True

    def _replace(self, archive: str, holdings: ArchiveHoldings | None) -> None:
        holdings_by_id = {name: value for name, value in self._holdings.items() if name != archive}
        self._holdings = holdings_by_id if holdings is None else {**holdings_by_id, archive: holdings}

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now(), UTC)

    def _warn_about_problems(self, entry: "_ArchiveEntry") -> None:
        problems = set(entry.problems())
        for problem in sorted(problems - entry.reported):
            consequence = (
                "what was read before is used" if entry.archive.id in self._holdings else "it is asked without"
            )
            self._warn(f"{entry.archive.id}: {problem}: {consequence}")
        entry.reported = problems


class _ArchiveEntry:
    """The map and filters of one archive.

    Attributes:
        problem: Problem of the files in combination; None if there is none.
        loaded_at: When the holdings in use were loaded, in seconds since 1970.
        checked_at: When changes were last checked for.
        reported: Problems already reported through `warn`.
        is_new: Whether a change is still to be reported through `on_info`.
    """

    def __init__(self, archive: Archive, reader: HoldingsReader, folder: Path) -> None:
        self.archive = archive
        self.problem: str | None = None
        self.loaded_at: float | None = None
        self.checked_at: float | None = None
        self.reported: set[str] = set()
        self.is_new = False

        def create_part(location: str, kind: HoldingsKind) -> _HoldingsPart:
            if location.startswith(("http://", "https://")):
                return HoldingsUrl(location, kind, reader, folder)
            return HoldingsFile(location, kind, reader)

        self.map = create_part(archive.mementomap, "map") if archive.mementomap else None
        self.filters = [create_part(location, "filter") for location in archive.filters]

    def parts(self) -> list[_HoldingsPart]:
        return [*([self.map] if self.map else []), *self.filters]

    async def load(self) -> bool:
        return any([await part.load() for part in self.parts()])

    async def refresh(self, client: HttpClient) -> bool:
        return any([await part.refresh(self.archive, client) for part in self.parts()])

    def build_holdings(self, max_age: timedelta, now: Callable[[], datetime]) -> ArchiveHoldings | None:
        """Return the combined holdings; None if there are none.

        Without the configured map there are none either, since the filters alone would deny too much.
        """
        map_value = self.map.value if self.map else None
        filters = [part.value for part in self.filters if isinstance(part.value, Filter)]
        if len(filters) < len(self.filters):
            # Each may cover a part of the archive: with one missing, the others would deny what that part holds.
            filters = []
        if self.map is not None and map_value is None:
            return None
        return (
            ArchiveHoldings(map_value if isinstance(map_value, Map) else None, filters, max_age, now)
            if map_value or filters
            else None
        )

    def discard(self, problem: str) -> None:
        for part in self.parts():
            part.discard()
        self.problem, self.loaded_at = problem, None

    def problems(self) -> list[str]:
        problems = [part.problem for part in self.parts() if part.problem]
        return [*problems, *([self.problem] if self.problem else [])]

    def status(self, holdings: ArchiveHoldings | None) -> HoldingsStatus:
        unchanged = sum(part.unchanged for part in self.parts() if isinstance(part, HoldingsUrl))
        has_map, filters = (holdings.map is not None, len(holdings.filters)) if holdings else (False, 0)
        loaded_at = self.loaded_at if holdings else None
        return HoldingsStatus(
            self.archive.id, has_map, filters, loaded_at, self.checked_at, unchanged, tuple(self.problems())
        )
