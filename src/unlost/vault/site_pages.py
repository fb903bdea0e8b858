"""The pages of a site that can carry blocks: of a folder, a list, or a living site."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote, urljoin, urlsplit

from unlost.errors import InputError
from unlost.formats.problems import Problems
from unlost.formats.textfile import read_lines
from unlost.pages.link import LinkKind
from unlost.pages.links import scan_links
from unlost.vault.page_text import VAULT_PATH, strip_blocks
from unlost.vault.planning import CarrierPage

HTML_NAMES = (".html", ".htm", ".xhtml")
ASSUMED_PAGE_BYTES = 40 << 10
"""Of a page of which nobody says how long it is: the dissertation's upper average."""

_BASE_URL = "http://site.invalid/"
_MAX_PAGE_BYTES = 64 << 20
_SAFE_CHARACTERS = "/:@!$&'()*+,;=~"  # what stands in paths as it is, by RFC 3986


def iter_html_files(folder: Path) -> Iterator[Path]:
    """Yield the HTML files of a folder that are no links, in the order of their names."""
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in HTML_NAMES and path.is_file() and not path.is_symlink():
            yield path


def read_site_folder(folder: Path) -> list[CarrierPage]:
    """Return the pages of a static site; the root is its `index.html`. Raises InputError if there are none."""
    sizes: dict[str, int] = {}
    links: dict[str, set[str]] = {}
    for path in iter_html_files(folder):
        key = "/" + path.relative_to(folder).as_posix()
        if path.stat().st_size > _MAX_PAGE_BYTES or is_vault_page(key):
            continue
        body = strip_blocks(path.read_bytes())
        sizes[key] = len(body)
        links[key] = _linked_paths(body, key)
    if not sizes:
        raise InputError(f"{folder}: no HTML files in it: name the folder of the built site")
    root = next(
        (name for name in ("/index.html", "/index.htm") if name in sizes), min(sizes, key=lambda k: (len(k), k))
    )
    near = {_resolve_file(link, sizes) for link in links[root]}
    return [CarrierPage(key, size, 0 if key == root else 1 if key in near else None) for key, size in sizes.items()]


def _linked_paths(body: bytes, key: str) -> set[str]:
    found = scan_links(body, "text/html", urljoin(_BASE_URL, key))
    return {
        urlsplit(link.uri).path for link in found.links if link.kind is LinkKind.PAGE and link.uri.startswith(_BASE_URL)
    }


def _resolve_file(path: str, sizes: dict[str, int]) -> str | None:
    path = unquote(path)
    candidates = (path, f"{path.rstrip('/')}/index.html", f"{path}.html")
    return next((name for name in candidates if name in sizes), None)


def read_page_list(file: Path) -> list[CarrierPage]:
    r"""Return the pages of a list: an address or path a line, the root first, perhaps a tab and its size in bytes.

    Raises InputError if there are none, or a line is none.
    """
    problems = Problems()
    pages: list[CarrierPage] = []
    seen: Counter[str] = Counter()
    for line in read_lines(file, problems):
        text = line.text.decode("utf-8", "surrogateescape").strip()
        if not text or text.startswith("#"):
            continue
        address, _, size = text.partition("\t")
        if size and not re.fullmatch(r"\d{1,12}", size.strip()):
            raise InputError(
                f"{file}: line {line.number}: expected an address, or one with a tab and a number of bytes"
            )
        key = page_key(address.strip())
        seen[key] += 1
        if seen[key] == 1 and not is_vault_page(key):
            # The first is the root, and those who write lists begin with what matters.
            pages.append(
                CarrierPage(
                    key, int(size) if size else ASSUMED_PAGE_BYTES, 0 if not pages else 1 if len(pages) < 8 else None
                )
            )
    if not pages:
        raise InputError(f"{file}: no addresses in it: expected one a line, the root first")
    return pages


def page_key(url: str) -> str:
    """Return what a page is called in a vault: its path as servers read it, without escapes, and its query.

    >>> key_of("https://example.com/a%20b?b=1#c"), key_of("about"), key_of("https://example.com")
    ('/a b?b=1', '/about', '/')
    """
    parts = urlsplit(url if "://" in url or url.startswith("/") else f"/{url}")
    path = unquote(parts.path, errors="replace") or "/"
    return f"{path}?{parts.query}" if parts.query else path


def page_key_below(site: str, url: str) -> str | None:
    """Return what a page is called in the vault of a site that begins at an address; None if it is none of it.

    >>> key_below("https://example.com/blog/", "http://www.example.com/blog/a.html")
    '/a.html'
    """
    key, folder = page_key(url), page_key(site).partition("?")[0].rstrip("/")
    return key[len(folder) :] if key.startswith(f"{folder}/") else None


def page_url(site: str, key: str) -> str:
    """Return the address of a page of a site.

    >>> address_of("https://example.com/blog/", "/a b.html?c=1")
    'https://example.com/blog/a%20b.html?c=1'
    """
    path, mark, query = key.partition("?")
    return f"{site.rstrip('/')}{quote(path, errors='surrogateescape', safe=_SAFE_CHARACTERS)}{mark}{query}"


def is_vault_page(key: str) -> bool:
    """Return whether a page was made only to carry blocks, or lists such: the vault itself makes them."""
    return key.startswith(VAULT_PATH)
