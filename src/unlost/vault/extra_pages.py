"""Pages that are made only to carry blocks, where a site has too few; and a page that lists all that is added."""

from collections.abc import Iterable

from unlost.vault.generation import Segment
from unlost.vault.page_text import FOLDER
from unlost.vault.planning import Page

INDEX = f"{FOLDER}index.html"


def extra_pages(count: int) -> list[Page]:
    """Return so many pages, as `extra_page` makes them.

    >>> [page.key for page in extra_pages(2)]
    ['/unlost-vault/page-1.html', '/unlost-vault/page-2.html']
    """
    keys = (f"{FOLDER}page-{number}.html" for number in range(1, count + 1))
    return [Page(key, len(extra_page(key)), 2) for key in keys]


def extra_page(key: str) -> bytes:
    """Return such a page without its block."""
    name = key.rpartition("/")[2].removesuffix(".html")
    return _page(
        f"Backup of this site, {name}",
        "This page keeps a part of what makes this site run, so that web archives keep it, too.",
    )


def raw_name(segment: Segment) -> str:
    """Return what a segment is called where it is served as it is: its name tells what it is and its hash."""
    return f"{FOLDER}{segment.id}.{segment.version}.{segment.wrap}"


def index_page(keys: Iterable[str]) -> bytes:
    """Return the page that leads to all of these."""
    links = "".join(f'<li><a href="{key}">{key.rpartition("/")[2]}</a></li>\n' for key in keys)
    return _page("Backup of this site", f"What makes this site run, for web archives:</p>\n<ul>\n{links}</ul>\n<p>")


def _page(title: str, text: str) -> bytes:
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title></head>\n'
        f"<body>\n<h1>{title}</h1>\n<p>{text}</p>\n</body>\n</html>\n"
    ).encode("ascii")
