"""Collects blocks from pages.

WARC files, recoveries and archives, grouped by version and stored in a temporary file.
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
from unlost.comparison.site import SiteKind, detect_site_kind
from unlost.comparison.warc_site import ArchiveFilePart, list_archive_parts
from unlost.errors import ArchiveError, ArchiveFileError, UnsupportedError
from unlost.problems import Problems
from unlost.vault.block import MAX_BLOCK_BYTES, BlockHeader, VaultBlock, find_blocks
from unlost.vault.pages import page_key_below, page_url
from unlost.warc.reader import read_warc_captures

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from unlost.capture import Capture


BlockGroup = tuple[str, str, str, int, int, int]
_MAX_BODY = 4 * MAX_BLOCK_BYTES
_RAW_PATH = re.compile(r"/unlost-vault/([0-9a-f]{16})\.([0-9a-f]{64})\.(tar\.gz|tar\.gz\.age)")
_TEXT_TYPES = ("text/", "application/xhtml", "application/xml")


@dataclass(frozen=True, slots=True)
class CollectedBlock:
    """A block that was found. offset: in the gathering's file. sources: where it was found, at most a few."""

    header: BlockHeader
    offset: int
    sources: tuple[str, ...]


@dataclass
class BlockCollector:
    """What was found. groups: blocks by version, then number; of one number there may be several, if some are forged.

    raw: whole segments that were served as they are: where they begin in the file, by id, version and wrap.
    problems: blocks that were none, by kind. pages: that were looked at, and how many of them had blocks.
    newest: the last date at which a version was seen, 14 digits or empty. archives: by version, the blocks that each
    archive or file has. keys: if there are any, only what these signed is taken.
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
        """Open the file that blocks are kept in; it goes with the last reference."""
        self.file = tempfile.TemporaryFile()  # noqa: SIM115  it lives as long as this does
        weakref.finalize(self, self.file.close)
        self._end = 0

    def add_page(self, body: bytes, source: str, date: str = "", archive: str = "") -> int:
        """Take the blocks of a page; return how many there were. archive: who had it."""
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
        label = block.header
        self.last_seen[label.group] = max(self.last_seen.get(label.group, ""), date)
        self.archives.setdefault(label.group, {}).setdefault(archive, set()).add(label.index)
        there = self.groups.setdefault(label.group, {}).setdefault(label.index, [])
        for number, kept in enumerate(there):
            if kept.header.sha256 == label.sha256:
                if source not in kept.sources and len(kept.sources) < 4:
                    there[number] = CollectedBlock(kept.header, kept.offset, (*kept.sources, source))
                return
        if len(there) < 8:  # more than eight forgeries of one block help nobody
            there.append(CollectedBlock(label, self._store(block.data), (source,)))

    def _store(self, data: bytes) -> int:
        offset, self._end = self._end, self._end + len(data)
        self.file.seek(offset)
        self.file.write(data)
        return offset

    def add_raw(self, url: str, body: bytes) -> bool:
        """Take a segment that was served as it is, if the address says that it is one, and its hash, too."""
        found = _RAW_PATH.search(urlsplit(url).path)
        if found is None or hashlib.sha256(body).hexdigest() != found[2]:
            return False
        name = (found[1], found[2], found[3])
        if name not in self.raw and body:
            self.raw[name] = (self._store(body), len(body))
        return True

    def shapes(self) -> Iterator[tuple[BlockGroup, BlockHeader]]:
        """Yield each version that something was found of, with the label of one of its blocks."""
        for group, blocks in self.groups.items():
            yield group, next(iter(blocks.values()))[0].header


def collect_blocks(path: Path, collector: BlockCollector) -> None:
    """Take all blocks from a place: the folder of a recovery; WARC, ARC or WACZ files; a page; a folder of pages.

    Every capture counts, also those that were replaced by later ones. Raises InputError for what is none of these.
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
    return any(ending in name for ending in (".warc", ".arc", ".wacz"))


def _add_file(file: Path, name: str, collector: BlockCollector) -> None:
    if file.stat().st_size > _MAX_BODY and "/unlost-vault/" not in name:
        return
    body = file.read_bytes()
    if not collector.add_raw(name, body):
        collector.add_page(body, name, archive="folder")


def _add_part(part: ArchiveFilePart, collector: BlockCollector) -> None:
    within = None if part.length is None else (part.start, part.length)
    found = read_warc_captures(
        part.path,
        collector.read_problems,
        record_types=("response", "resource"),
        compute_digests=False,
        byte_range=within,
    )
    for capture in found:
        mime = capture.mime or "text/html"
        is_raw = "/unlost-vault/" in capture.uri
        if capture.offset is None or not (is_raw or mime.startswith(_TEXT_TYPES)):
            continue
        try:
            body, _, _ = part.open_record(capture.offset, capture.skip or 0).read_undone(_MAX_BODY)
        except ArchiveFileError:
            collector.problems["unreadable-record"] += 1
            continue
        if not collector.add_raw(capture.uri, body):
            collector.add_page(body, capture.uri, capture.datetime, archive=capture.archive or part.path.name)


T = TypeVar("T")
_CONCURRENT_REQUESTS = 6  # questions: as many as there are connections to one host
_MAX_FAILURES = 5  # failures after which an archive is left alone


async def collect_from_archive(
    archive: str,
    client: ArchiveClient,
    site: str,
    keys: Iterable[str],
    captures_per_page: int,
    collector: BlockCollector,
) -> str | None:
    """Take the blocks of an archive's last copies of pages; return why it did not tell all, if it did not.

    site: the address that keys are below. copies: how many of each page, the last ones.
    """
    wanted = set(keys)
    found: dict[str, list[Capture]] = {}
    try:
        async for capture in client.list_prefix(site):
            key = _match_page_key(site, capture.uri, wanted)
            if key is not None and capture.status in {200, None}:
                found.setdefault(key, []).append(capture)
    except UnsupportedError:
        pages = (page_url(site, key) for key in sorted(wanted))
        return await _fetch_all(archive, client.get, pages, collector)
    except ArchiveError as error:
        return str(error)
    last = (sorted(each, key=lambda capture: capture.datetime)[-captures_per_page:] for each in found.values())
    return await _fetch_all(archive, client.fetch, itertools.chain.from_iterable(last), collector)


def _match_page_key(site: str, uri: str, wanted: set[str]) -> str | None:
    """Return which page of the vault a capture is of; None if it is of none. A folder is its index."""
    key = page_key_below(site, uri)
    if key is not None and key not in wanted and key.endswith("/"):
        key += "index.html"
    return key if key in wanted else None


async def _fetch_all(
    archive: str,
    fetch: "Callable[[T], Awaitable[FetchedCapture | None]]",
    requests: "Iterator[T]",
    collector: BlockCollector,
) -> str | None:
    """Fetch copies, some at once, as fast as the archive's limits allow; return why not all, if not."""
    failures: list[str] = []

    async def work() -> None:
        for each in requests:
            if len(failures) >= _MAX_FAILURES:
                return
            try:
                _add_capture(archive, await fetch(each), collector)
            except ArchiveError as error:
                failures.append(str(error))

    await asyncio.gather(*(work() for _ in range(_CONCURRENT_REQUESTS)))
    return f"{len(failures):,} copies not had: {failures[0]}" if failures else None


def _add_capture(archive: str, capture: FetchedCapture | None, collector: BlockCollector) -> None:
    if capture is not None:
        with capture.body:
            collector.add_page(capture.body.read(_MAX_BODY), capture.capture.uri, capture.capture.datetime, archive)


def block_indices(collector: BlockCollector) -> Mapping[tuple[object, ...], set[int]]:
    """Return which blocks were found, by version."""
    return {group: set(blocks) for group, blocks in collector.groups.items()}
