"""Collects blocks from WARC files, recoveries, folders of pages and archives, grouped by version.

The data of the blocks is stored in a temporary file.
"""

import asyncio
import hashlib
import itertools
import re
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from unlost.archives.base import ArchiveClient, FetchedCapture
from unlost.clock import SystemClock
from unlost.comparison.site import SiteKind, detect_site_kind
from unlost.comparison.warc_site import ArchiveFilePart, list_archive_parts
from unlost.errors import ArchiveError, ArchiveFileError, UnsupportedError
from unlost.http.circuit_breaker import CircuitBreaker
from unlost.http.policy import POLICIES
from unlost.problems import Problems
from unlost.vault.block import MAX_BLOCK_BYTES, BlockHeader, VaultBlock, find_blocks
from unlost.vault.pages import page_key_below, page_url
from unlost.warc.reader import read_warc_captures

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from unlost.capture import Capture


BlockGroup = tuple[str, str, str, int, int, int]
T = TypeVar("T")
_MAX_BODY = 4 * MAX_BLOCK_BYTES
_MAX_SOURCES = 4  # sources stored per block
_MAX_VARIANTS = 8  # blocks stored per index; all but one are forged
_CONCURRENT_REQUESTS = 6  # as many as the HTTP client opens connections to one host
_RAW_PATH = re.compile(r"/unlost-vault/([0-9a-f]{16})\.([0-9a-f]{64})\.(tar\.gz|tar\.gz\.age)")
_TEXT_TYPES = ("text/", "application/xhtml", "application/xml")


@dataclass(frozen=True, slots=True)
class CollectedBlock:
    """A collected block.

    Attributes:
        header: Its header.
        offset: Offset of its data in the collector's file.
        sources: URLs or files where it was found, at most four.
    """

    header: BlockHeader
    offset: int
    sources: tuple[str, ...]


@dataclass
class BlockCollector:
    """Collected blocks.

    Attributes:
        trusted_keys: If not empty, only blocks signed with one of these public keys are accepted.
        groups: Blocks by version and index. If some are forged, there may be several with one index.
        raw: Segments served as plain files: offset and size in the collector's file, by segment id, version and wrap.
        problems: Number of rejected blocks, by error code.
        read_problems: Problems of reading WARC files.
        pages: Number of pages searched.
        pages_with_blocks: Number of pages with accepted blocks.
        last_seen: Date of the latest capture with a block of the version: 14 digits, or empty if unknown.
        archives: Indices of the blocks that each archive or file has, by version.
    """

    trusted_keys: frozenset[str] = frozenset()
    groups: dict[BlockGroup, dict[int, list[CollectedBlock]]] = field(default_factory=dict)
    raw: dict[tuple[str, str, str], tuple[int, int]] = field(default_factory=dict)
    problems: Counter[str] = field(default_factory=Counter)
    read_problems: Problems = field(default_factory=Problems)
    pages: int = 0
    pages_with_blocks: int = 0
    last_seen: dict[BlockGroup, str] = field(default_factory=dict)
    archives: dict[BlockGroup, dict[str, set[int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Open the temporary file for block data; it is deleted with the collector."""
        self.file = tempfile.TemporaryFile()  # noqa: SIM115  closed by the finalizer
        weakref.finalize(self, self.file.close)
        self._end = 0

    def add_page(self, body: bytes, source: str, date: str = "", archive: str = "") -> int:
        """Add the blocks of a page; return their number.

        Args:
            body: The page.
            source: URL or path of the page.
            date: Date of the capture: 14 digits, or empty.
            archive: Archive or file that the capture is from.
        """
        self.pages += 1
        count = 0
        for block in find_blocks(body, self.problems):
            if self.trusted_keys and block.header.key not in self.trusted_keys:
                self.problems["not-signed"] += 1
                continue
            self._add(block, source, date, archive)
            count += 1
        self.pages_with_blocks += count > 0
        return count

    def _add(self, block: VaultBlock, source: str, date: str, archive: str) -> None:
        header = block.header
        self.last_seen[header.group] = max(self.last_seen.get(header.group, ""), date)
        self.archives.setdefault(header.group, {}).setdefault(archive, set()).add(header.index)
        variants = self.groups.setdefault(header.group, {}).setdefault(header.index, [])
        for position, variant in enumerate(variants):
            if variant.header.sha256 == header.sha256:
                if source not in variant.sources and len(variant.sources) < _MAX_SOURCES:
                    variants[position] = CollectedBlock(variant.header, variant.offset, (*variant.sources, source))
                return
        if len(variants) < _MAX_VARIANTS:
            variants.append(CollectedBlock(header, self._store(block.data), (source,)))

    def _store(self, data: bytes) -> int:
        offset, self._end = self._end, self._end + len(data)
        self.file.seek(offset)
        self.file.write(data)
        return offset

    def add_raw(self, url: str, body: bytes) -> bool:
        """Add a segment served as a plain file; return whether it is one, by its URL and its hash."""
        match = _RAW_PATH.search(urlsplit(url).path)
        if match is None or hashlib.sha256(body).hexdigest() != match[2]:
            return False
        key = (match[1], match[2], match[3])
        if key not in self.raw and body:
            self.raw[key] = (self._store(body), len(body))
        return True

    def shapes(self) -> Iterator[tuple[BlockGroup, BlockHeader]]:
        """Yield each version with the header of one of its blocks."""
        for group, blocks in self.groups.items():
            yield group, next(iter(blocks.values()))[0].header


def collect_blocks(path: Path, collector: BlockCollector) -> None:
    """Add all blocks of a path. All captures count, including those superseded by later ones.

    Args:
        path: The folder of a recovery, WARC, ARC or WACZ files, a page, or a folder of pages.
        collector: Receives the blocks.

    Raises:
        InputError: The path is none of these.
    """
    if path.is_file() and not _is_archive_file(path):
        _add_file(path, path.name, collector)
        return
    kind, files = detect_site_kind(path)
    if kind is SiteKind.RECOVERY:
        files = sorted((path / "warc").glob("*.warc.gz"))
    elif kind is SiteKind.FOLDER:
        for file in sorted(path.rglob("*")):
            if file.is_file() and not file.is_symlink():
                _add_file(file, "/" + file.relative_to(path).as_posix(), collector)
        return
    for file in files:
        for part in list_archive_parts(file, collector.read_problems):
            _add_part(part, collector)


def _is_archive_file(path: Path) -> bool:
    name = path.name.lower()
    return any(extension in name for extension in (".warc", ".arc", ".wacz"))


def _add_file(file: Path, name: str, collector: BlockCollector) -> None:
    if file.stat().st_size > _MAX_BODY and "/unlost-vault/" not in name:
        return
    body = file.read_bytes()
    if not collector.add_raw(name, body):
        collector.add_page(body, name, archive="folder")


def _add_part(part: ArchiveFilePart, collector: BlockCollector) -> None:
    byte_range = None if part.length is None else (part.start, part.length)
    captures = read_warc_captures(
        part.path,
        collector.read_problems,
        record_types=("response", "resource"),
        compute_digests=False,
        byte_range=byte_range,
    )
    for capture in captures:
        mime = capture.mime or "text/html"
        is_raw = "/unlost-vault/" in capture.uri
        if capture.offset is None or not (is_raw or mime.startswith(_TEXT_TYPES)):
            continue
        try:
            body, _, _ = part.open_record(capture.offset, capture.skip or 0).read_decoded(_MAX_BODY)
        except ArchiveFileError:
            collector.problems["unreadable-record"] += 1
            continue
        if not collector.add_raw(capture.uri, body):
            collector.add_page(body, capture.uri, capture.datetime, archive=capture.archive or part.path.name)


async def collect_from_archive(
    archive: str,
    client: ArchiveClient,
    site: str,
    keys: Iterable[str],
    captures_per_page: int,
    collector: BlockCollector,
) -> str | None:
    """Add the blocks of an archive's latest captures of pages.

    Args:
        archive: Id of the archive.
        client: Its client.
        site: URL that the page keys are relative to.
        keys: Keys of the pages.
        captures_per_page: Number of captures to fetch of each page, the latest ones.
        collector: Receives the blocks.

    Returns:
        An error message if not all captures could be listed or fetched; otherwise None.
    """
    page_keys = set(keys)
    captures: dict[str, list[Capture]] = {}
    try:
        async for capture in client.list_prefix(site):
            key = _match_page_key(site, capture.uri, page_keys)
            if key is not None and capture.status in {200, None}:
                captures.setdefault(key, []).append(capture)
    except UnsupportedError:
        pages = (page_url(site, key) for key in sorted(page_keys))
        return await _fetch_all(archive, client.get, pages, collector)
    except ArchiveError as error:
        return str(error)
    latest = (sorted(each, key=lambda capture: capture.datetime)[-captures_per_page:] for each in captures.values())
    return await _fetch_all(archive, client.fetch, itertools.chain.from_iterable(latest), collector)


def _match_page_key(site: str, uri: str, page_keys: set[str]) -> str | None:
    """Return the key of the captured page, or None if it is not in the vault. A folder's URL matches `index.html`."""
    key = page_key_below(site, uri)
    if key is not None and key not in page_keys and key.endswith("/"):
        key += "index.html"
    return key if key in page_keys else None


async def _fetch_all(
    archive: str,
    fetch: "Callable[[T], Awaitable[FetchedCapture | None]]",
    requests: "Iterator[T]",
    collector: BlockCollector,
) -> str | None:
    """Fetch captures concurrently, within the archive's rate limits; return an error message if some failed."""
    failures: list[str] = []
    breaker = CircuitBreaker(SystemClock(), POLICIES["vault"], archive)

    async def work() -> None:
        for each in requests:
            if not breaker.allows_request():
                return
            try:
                capture = await fetch(each)
            except ArchiveError as error:
                failures.append(str(error))
                breaker.record_failure(type(error).__name__, str(error))
                continue
            breaker.record_success()
            _add_capture(archive, capture, collector)

    await asyncio.gather(*(work() for _ in range(_CONCURRENT_REQUESTS)))
    return f"{len(failures):,} copies not had: {failures[0]}" if failures else None


def _add_capture(archive: str, capture: FetchedCapture | None, collector: BlockCollector) -> None:
    if capture is not None:
        with capture.body:
            collector.add_page(capture.body.read(_MAX_BODY), capture.capture.uri, capture.capture.datetime, archive)


def block_indices(collector: BlockCollector) -> Mapping[tuple[object, ...], set[int]]:
    """Return the indices of the collected blocks, by version."""
    return {group: set(blocks) for group, blocks in collector.groups.items()}
