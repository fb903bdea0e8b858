"""What a crawl learned, read by somebody else, who changes nothing: one resource, or one link, after the other."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from unlost.crawl.resource import LiveResource, Outcome
from unlost.crawl.state import APPLICATION, QUEUED, VERSION, WHAT
from unlost.errors import InputError
from unlost.pages.link import Use
from unlost.state_file import NAME, certain_text, check_tables, explained, text_of

_BUSY_SECONDS = 10.0  # others write for moments only
_RESOURCES = """
SELECT uri, key, standing, status, mime, length, digest, seen, last_modified, redirect, hops,
    (SELECT count(DISTINCT source) FROM link WHERE target = address.id), in_sitemap, noarchive, cache_control, etag,
    reason, truncated, file, offset
FROM address ORDER BY id
"""
_LINKS = """
SELECT source.uri, target.uri, link.use FROM link JOIN address AS source ON source.id = link.source
JOIN address AS target ON target.id = link.target
"""


@dataclass(frozen=True, slots=True)
class LiveLink:
    """A link between two addresses of a site, as resources have them. use: what it is for."""

    source: str
    target: str
    use: Use


def read_resources(folder: Path) -> Iterator[LiveResource]:
    """Yield what the crawl in a folder knows of each address, in the order in which they were found.

    What is still to be visited is left out, as its outcome says, with the reason `not-visited`. Memory is that of one
    row. Raises InputError for a folder that has no crawl, or a state that is none; OSError where it cannot be read.
    """
    with _opened(folder) as connection:
        for row in connection.execute(_RESOURCES):
            yield _resource(folder, row)


def read_links(folder: Path, target: str | None = None) -> Iterator[LiveLink]:
    """Yield who links to what, as far as both belong to the site, in the order in which they were found.

    target: only the links to this address, as its resource has it. Raises as `read_resources`.
    """
    with _opened(folder) as connection:
        if target is None:
            rows = connection.execute(f"{_LINKS} ORDER BY link.source, link.target, link.use")
        else:
            rows = connection.execute(f"{_LINKS} WHERE target.uri = ? ORDER BY link.source, link.use", (target,))
        for source, found, use in rows:
            yield LiveLink(source, found, Use(use))


def _resource(folder: Path, row: tuple[object, ...]) -> LiveResource:
    (uri, key, standing, status, mime, length, digest, seen, last_modified, redirect, hops, linked_from, in_sitemap,
     noarchive, cache_control, etag, reason, truncated, file, offset) = map(text_of, row)  # fmt: skip
    is_queued = standing == QUEUED
    try:
        return LiveResource(
            certain_text(uri), certain_text(key), Outcome.LEFT_OUT if is_queued else Outcome(standing), status, mime,
            length, digest, seen, last_modified, redirect, hops, linked_from, bool(in_sitemap), bool(noarchive),
            cache_control, etag, "not-visited" if is_queued else reason, truncated, file, offset,
        )  # fmt: skip
    except ValueError:
        raise InputError(f"{folder / NAME}: not the state of {WHAT}: delete it, and crawl again") from None


@contextmanager
def _opened(folder: Path) -> Iterator[sqlite3.Connection]:
    file = folder / NAME
    if file.is_symlink() or not file.is_file():
        raise InputError(f"{folder}: expected the folder of a crawl, with its {NAME}")
    # Where nobody is at work on it there is nothing beside the file, and it can be read as it stands.
    is_quiet = not file.with_name(f"{NAME}-wal").exists()
    address = f"file:{quote(str(file))}?{'immutable=1' if is_quiet else 'mode=ro'}"
    with explained(file, WHAT):
        opened = sqlite3.connect(address, uri=True, isolation_level=None, timeout=_BUSY_SECONDS)
        with closing(opened) as connection:
            check_tables(connection, file, WHAT)
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            if (version, application) != (VERSION, APPLICATION):
                raise InputError(f"{file}: expected the state of {WHAT} in version {VERSION}, found another one")
            yield connection
