"""Reads the links in the state of a crawl."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from unlost.html import LinkKind

_SELECT = """
SELECT source.uri, target.uri, link.use FROM link JOIN address AS source ON source.id = link.source
JOIN address AS target ON target.id = link.target
ORDER BY link.source, link.target, link.use
"""


class CrawledLink(NamedTuple):
    """A link between two URLs of a crawl."""

    source: str
    target: str
    link_kind: LinkKind


def read_links(folder: Path, target: str | None = None) -> Iterator[CrawledLink]:
    """Yield the links between the URLs of a crawl, in order of discovery; only those to `target` if it is given."""
    with closing(sqlite3.connect(folder / "state.sqlite")) as connection:
        for source, linked, use in connection.execute(_SELECT):
            if target in (None, linked):
                yield CrawledLink(source, linked, LinkKind(use))
