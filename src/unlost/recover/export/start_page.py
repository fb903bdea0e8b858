"""The start page that is added to an export whose top folder would not show the page that was ordered."""

import heapq
from collections.abc import Iterable
from urllib.parse import urlsplit

from unlost.recover.export.local_address import relative_url
from unlost.shown.catalogue import Translations
from unlost.shown.page import make_template_environment

START_PAGE_NAMES = ("index.html", "start.html")
"""File names of a start page, in order of preference."""
MAX_START_PAGE_FILES = 500
"""Files that a start page lists."""

_PACKAGE = "unlost.recover.export"


class StartPageFiles:
    """Collects the paths that a start page lists: pages before other files, the shallowest first."""

    def __init__(self, files: Iterable[tuple[str, str | None]]) -> None:
        """Read all files, as pairs of path and media type."""
        pages: list[str] = []
        others: list[str] = []
        for path, mime in files:
            (pages if mime in ("text/html", "application/xhtml+xml") else others).append(path)
        self.has_pages = bool(pages)
        chosen = pages or others
        self.paths = heapq.nsmallest(MAX_START_PAGE_FILES, chosen, key=lambda path: (path.count("/"), path))
        self.more = len(chosen) - len(self.paths)


def render_start_page(url: str, to: str | None, files: StartPageFiles, language: str) -> bytes:
    """Return the HTML of a start page in the top folder.

    Args:
        url: The URL that was ordered.
        to: The path of its file, to which the page redirects. If None, the page lists the files.
        files: The files to list.
        language: One of `LANGUAGES`.
    """
    t = Translations.load(language, _PACKAGE)
    page = make_template_environment(_PACKAGE).get_template("start.html")
    return page.render(
        t=t,
        language=t.language,
        url=url,
        site=urlsplit(url).netloc.rpartition("@")[2],
        to=None if to is None else (to, relative_url(to)),
        are_pages=files.has_pages,
        listed=[(path, relative_url(path)) for path in files.paths],
        more=files.more,
    ).encode()
