"""The start page that is added to an export whose top folder would not show the page that was ordered."""

import heapq
from collections.abc import Iterable
from urllib.parse import urlsplit

from unlost.recover.export.local_address import address_of
from unlost.shown.catalogue import Strings
from unlost.shown.page import templates

NAMES = ("index.html", "start.html")
"""File names of a start page, in order of preference."""
MAX_LISTED = 500
"""Files that a start page lists."""

_PACKAGE = "unlost.recover.export"


class FileList:
    """Collects the paths that a start page lists: pages before other files, the shallowest first."""

    def __init__(self, files: Iterable[tuple[str, str | None]]) -> None:
        """Read all files, as pairs of path and media type."""
        pages: list[str] = []
        others: list[str] = []
        for path, mime in files:
            (pages if mime in ("text/html", "application/xhtml+xml") else others).append(path)
        self.are_pages = bool(pages)
        chosen = pages or others
        self.paths = heapq.nsmallest(MAX_LISTED, chosen, key=lambda path: (path.count("/"), path))
        self.more = len(chosen) - len(self.paths)


def start_page(url: str, to: str | None, files: FileList, language: str) -> bytes:
    """Return the HTML of a start page in the top folder.

    Args:
        url: The URL that was ordered.
        to: The path of its file, to which the page redirects. If None, the page lists the files.
        files: The files to list.
        language: One of `LANGUAGES`.
    """
    t = Strings.of(language, _PACKAGE)
    page = templates(_PACKAGE).get_template("start.html")
    return page.render(
        t=t,
        language=t.language,
        url=url,
        site=urlsplit(url).netloc.rpartition("@")[2],
        to=None if to is None else (to, address_of(to)),
        are_pages=files.are_pages,
        listed=[(path, address_of(path)) for path in files.paths],
        more=files.more,
    ).encode()
