"""What archives hold of a vault's blocks, as far as they were asked."""

import asyncio
import itertools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from unlost.archives.repository import Repository, StoredCopy
from unlost.errors import ArchiveError, UnsupportedError
from unlost.vault.block import MAX_BLOCK_BYTES
from unlost.vault.gathering import Gathering
from unlost.vault.site_pages import address_of, key_below

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from unlost.formats.capture import Capture

T = TypeVar("T")
_MAX_BODY = 4 * MAX_BLOCK_BYTES
_AT_ONCE = 6  # questions: as many as there are connections to one host
_PATIENT = 5  # failures after which an archive is left alone


async def gather_from(
    archive: str, repository: Repository, site: str, keys: Iterable[str], copies: int, into: Gathering
) -> str | None:
    """Take the blocks of an archive's last copies of pages; return why it did not tell all, if it did not.

    site: the address that keys are below. copies: how many of each page, the last ones.
    """
    wanted = set(keys)
    found: dict[str, list[Capture]] = {}
    try:
        async for capture in repository.under(site):
            key = _known(site, capture.uri, wanted)
            if key is not None and capture.status in {200, None}:
                found.setdefault(key, []).append(capture)
    except UnsupportedError:
        pages = (address_of(site, key) for key in sorted(wanted))
        return await _take_all(archive, repository.get, pages, into)
    except ArchiveError as error:
        return str(error)
    last = (sorted(each, key=lambda capture: capture.datetime)[-copies:] for each in found.values())
    return await _take_all(archive, repository.fetch, itertools.chain.from_iterable(last), into)


def _known(site: str, uri: str, wanted: set[str]) -> str | None:
    """Return which page of the vault a capture is of; None if it is of none. A folder is its index."""
    key = key_below(site, uri)
    if key is not None and key not in wanted and key.endswith("/"):
        key += "index.html"
    return key if key in wanted else None


async def _take_all(
    archive: str, fetch: "Callable[[T], Awaitable[StoredCopy | None]]", wanted: "Iterator[T]", into: Gathering
) -> str | None:
    """Fetch copies, some at once, as fast as the archive's limits allow; return why not all, if not."""
    failures: list[str] = []

    async def work() -> None:
        for each in wanted:
            if len(failures) >= _PATIENT:
                return
            try:
                _take(archive, await fetch(each), into)
            except ArchiveError as error:
                failures.append(str(error))

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))
    return f"{len(failures):,} copies not had: {failures[0]}" if failures else None


def _take(archive: str, copy: StoredCopy | None, into: Gathering) -> None:
    if copy is not None:
        with copy.body:
            into.add_page(copy.body.read(_MAX_BODY), copy.capture.uri, copy.capture.datetime, archive)


def indices_of(gathering: Gathering) -> Mapping[tuple[object, ...], set[int]]:
    """Return which blocks were found, by version."""
    return {group: set(blocks) for group, blocks in gathering.groups.items()}
