"""Pages that are made only to carry blocks, where a site has too few; and a page that lists all that is added."""

from collections.abc import Iterable

from unlost.vault.generation import VaultSegment
from unlost.vault.page_text import VAULT_PATH
from unlost.vault.planning import CarrierPage

INDEX_PATH = f"{VAULT_PATH}index.html"


def make_extra_pages(count: int) -> list[CarrierPage]:
    """Return so many pages, as `extra_page` makes them.

    >>> [page.key for page in extra_pages(2)]
    ['/unlost-vault/page-1.html', '/unlost-vault/page-2.html']
    """
    keys = (f"{VAULT_PATH}page-{number}.html" for number in range(1, count + 1))
    return [CarrierPage(key, len(render_extra_page(key)), 2) for key in keys]


def render_extra_page(key: str) -> bytes:
    """Return such a page without its block."""
    name = key.rpartition("/")[2].removesuffix(".html")
    return _render_page(
        f"Backup of this site, {name}",
        "This page keeps a part of what makes this site run, so that web archives keep it, too.",
    )


def raw_segment_path(segment: VaultSegment) -> str:
    """Return what a segment is called where it is served as it is: its name tells what it is and its hash."""
    return f"{VAULT_PATH}{segment.id}.{segment.version}.{segment.wrap}"


def render_index(keys: Iterable[str]) -> bytes:
    """Return the page that leads to all of these."""
    links = "".join(f'<li><a href="{key}">{key.rpartition("/")[2]}</a></li>\n' for key in keys)
    return _render_page(
        "Backup of this site", f"What makes this site run, for web archives:</p>\n<ul>\n{links}</ul>\n<p>"
    )


def _render_page(title: str, text: str) -> bytes:
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title></head>\n'
        f"<body>\n<h1>{title}</h1>\n<p>{text}</p>\n</body>\n</html>\n"
    ).encode("ascii")
