"""What archives hold of a vault's blocks, as far as they were asked."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from unlost.archives.repository import Repository, StoredCopy
from unlost.errors import ArchiveError, UnsupportedError
from unlost.vault.block import MAX_BLOCK_BYTES
from unlost.vault.gathering import Gathering
from unlost.vault.site_pages import key_of

if TYPE_CHECKING:
    from unlost.formats.capture import Capture

_MAX_BODY = 4 * MAX_BLOCK_BYTES


async def gather_from(
    archive: str, repository: Repository, site: str, keys: Iterable[str], copies: int, into: Gathering
) -> str | None:
    """Take the blocks of an archive's last copies of pages; return why it did not tell all, if it did not.

    site: the address that keys are below. copies: how many of each page, the last ones.
    """
    wanted = set(keys)
    try:
        found: dict[str, list[Capture]] = {}
        async for capture in repository.under(site):
            key = key_of(capture.uri)
            if key in wanted and capture.status in {200, None}:
                found.setdefault(key, []).append(capture)
        for captures in found.values():
            for capture in sorted(captures, key=lambda each: each.datetime)[-copies:]:
                _take(archive, await repository.fetch(capture), into)
    except UnsupportedError:
        return await _one_by_one(archive, repository, site, wanted, into)
    except ArchiveError as error:
        return str(error)
    return None


async def _one_by_one(archive: str, repository: Repository, site: str, wanted: set[str], into: Gathering) -> str | None:
    try:
        for key in sorted(wanted):
            _take(archive, await repository.get(site.rstrip("/") + key), into)
    except ArchiveError as error:
        return str(error)
    return None


def _take(archive: str, copy: StoredCopy | None, into: Gathering) -> None:
    if copy is not None:
        with copy.body:
            into.add_page(copy.body.read(_MAX_BODY), copy.capture.uri, copy.capture.datetime, archive)


def indices_of(gathering: Gathering) -> Mapping[tuple[object, ...], set[int]]:
    """Return which blocks were found, by version."""
    return {group: set(blocks) for group, blocks in gathering.groups.items()}
