"""What archives hold of a vault's blocks, as far as they were asked."""

import asyncio
import itertools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from unlost.archives.repository import ArchiveClient, FetchedCapture
from unlost.errors import ArchiveError, UnsupportedError
from unlost.vault.block import MAX_BLOCK_BYTES
from unlost.vault.gathering import BlockCollector
from unlost.vault.site_pages import page_url, page_key_below

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from unlost.formats.capture import Capture

T = TypeVar("T")
_MAX_BODY = 4 * MAX_BLOCK_BYTES
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
