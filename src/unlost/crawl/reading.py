"""What a crawl learned, read by somebody else, who changes nothing: one resource, or one link, after the other."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from unlost.crawl.resource import LiveResource, CrawlOutcome
from unlost.crawl.state import CRAWL_APPLICATION_ID, QUEUED_STATUS, CRAWL_STATE_VERSION, CRAWL_DESCRIPTION
from unlost.errors import InputError
from unlost.pages.link import LinkKind
from unlost.state_file import (
    STATE_FILE_NAME,
    require_text,
    reject_views_and_triggers,
    translate_sqlite_errors,
    decode_text,
)

_BUSY_SECONDS = 10.0  # others write for moments only
_SELECT_RESOURCES = """
SELECT uri, key, standing, status, mime, length, digest, seen, last_modified, redirect, hops,
    (SELECT count(DISTINCT source) FROM link WHERE target = address.id), in_sitemap, noarchive, cache_control, etag,
    reason, truncated, file, offset
FROM address ORDER BY id
"""
_SELECT_LINKS = """
SELECT source.uri, target.uri, link.use FROM link JOIN address AS source ON source.id = link.source
JOIN address AS target ON target.id = link.target
"""


@dataclass(frozen=True, slots=True)
class CrawledLink:
    """A link between two addresses of a site, as resources have them. use: what it is for."""

    source: str
    target: str
    use: LinkKind


def read_resources(folder: Path) -> Iterator[LiveResource]:
    """Yield what the crawl in a folder knows of each address, in the order in which they were found.

    What is still to be visited is left out, as its outcome says, with the reason `not-visited`. Memory is that of one
    row. Raises InputError for a folder that has no crawl, or a state that is none; OSError where it cannot be read.
    """
    with _open_read_only(folder) as connection:
        for row in connection.execute(_SELECT_RESOURCES):
            yield _parse_resource(folder, row)


def read_links(folder: Path, target: str | None = None) -> Iterator[CrawledLink]:
    """Yield who links to what, as far as both belong to the site, in the order in which they were found.

    target: only the links to this address, as its resource has it. Raises as `read_resources`.
    """
    with _open_read_only(folder) as connection:
        if target is None:
            rows = connection.execute(f"{_SELECT_LINKS} ORDER BY link.source, link.target, link.use")
        else:
            rows = connection.execute(f"{_SELECT_LINKS} WHERE target.uri = ? ORDER BY link.source, link.use", (target,))
        for source, found, use in rows:
            yield CrawledLink(source, found, LinkKind(use))


def _parse_resource(folder: Path, row: tuple[object, ...]) -> LiveResource:
    (uri, key, standing, status, mime, length, digest, seen, last_modified, redirect, hops, linked_from, in_sitemap,
     noarchive, cache_control, etag, reason, truncated, file, offset) = map(decode_text, row)  # fmt: skip
    is_queued = standing == QUEUED_STATUS
    try:
        return LiveResource(
            require_text(uri), require_text(key), CrawlOutcome.EXCLUDED if is_queued else CrawlOutcome(standing), status, mime,
            length, digest, seen, last_modified, redirect, hops, linked_from, bool(in_sitemap), bool(noarchive),
            cache_control, etag, "not-visited" if is_queued else reason, truncated, file, offset,
        )  # fmt: skip
    except ValueError:
        raise InputError(
            f"{folder / STATE_FILE_NAME}: not the state of {CRAWL_DESCRIPTION}: delete it, and crawl again"
        ) from None


@contextmanager
def _open_read_only(folder: Path) -> Iterator[sqlite3.Connection]:
    file = folder / STATE_FILE_NAME
    if file.is_symlink() or not file.is_file():
        raise InputError(f"{folder}: expected the folder of a crawl, with its {STATE_FILE_NAME}")
    # Where nobody is at work on it there is nothing beside the file, and it can be read as it stands.
    is_quiet = not file.with_name(f"{STATE_FILE_NAME}-wal").exists()
    address = f"file:{quote(str(file))}?{'immutable=1' if is_quiet else 'mode=ro'}"
    with translate_sqlite_errors(file, CRAWL_DESCRIPTION):
        opened = sqlite3.connect(address, uri=True, isolation_level=None, timeout=_BUSY_SECONDS)
        with closing(opened) as connection:
            reject_views_and_triggers(connection, file, CRAWL_DESCRIPTION)
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            if (version, application) != (CRAWL_STATE_VERSION, CRAWL_APPLICATION_ID):
                raise InputError(
                    f"{file}: expected the state of {CRAWL_DESCRIPTION} in version {CRAWL_STATE_VERSION}, found another one"
                )
            yield connection
