"""Pages that carry blocks: inserting and stripping blocks, generated pages, and the list of pages of a site."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote, unquote, urljoin, urlsplit

from unlost.errors import InputError
from unlost.html.links import LinkKind, scan_links
from unlost.problems import Problems
from unlost.text_lines import read_lines
from unlost.vault.block import BEGIN_MARKER, END_MARKER, SCRIPT_TYPE
from unlost.vault.plan import CarrierPage
from unlost.vault.state import VaultSegment

_TAIL_BYTES = 1024
"""Bytes at the end of a page in which `</body>` is searched for."""
NOTICE_CLASS = "unlost-vault-notice"
VAULT_PATH = "/unlost-vault/"
"""Folder of generated pages."""
INDEX_LINK = f'<link rel="archives" href="{VAULT_PATH}index.html">\n'.encode("ascii")
"""Inserted into every page with blocks if there are generated pages, so that crawlers discover them."""
_CARRIED_BLOCK = re.compile(
    rb'(?:<!--\s*|<template>\s*|<script type="?' + re.escape(SCRIPT_TYPE.encode()) + rb'"?>\s*)'
    + re.escape(BEGIN_MARKER) + rb"(?:(?!" + re.escape(BEGIN_MARKER) + rb").)*?" + re.escape(END_MARKER)
    + rb"\s*(?:-->|</template>|</script>)\n?",
    re.DOTALL,
)  # fmt: skip
_NOTICE = re.compile(rb'<p class="' + NOTICE_CLASS.encode() + rb'">[^<]*</p>\n?')
_BODY_END = re.compile(rb"</body\s*>", re.IGNORECASE)
# A byte order mark, or the `<` of the first tag.
_UTF16_STARTS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"<\0", "utf-16-le"), (b"\0<", "utf-16-be"))

INDEX_PATH = f"{VAULT_PATH}index.html"
HTML_NAMES = (".html", ".htm", ".xhtml")
ASSUMED_PAGE_BYTES = 40 << 10
"""Assumed size of a page if it is unknown: the dissertation's upper average."""
_BASE_URL = "http://site.invalid/"
_MAX_PAGE_BYTES = 64 << 20
_SAFE_CHARACTERS = "/:@!$&'()*+,;=~"  # not escaped in paths (RFC 3986, section 3.3)


def strip_blocks(body: bytes) -> bytes:
    """Return a page without blocks and notices, byte for byte as before the insertion."""
    charset = detect_utf16(body)
    if charset is not None:
        mark, text = body[:2], body[2:].decode(charset, "surrogatepass").encode("utf-8", "surrogatepass")
        stripped = _strip(text)
        return (
            body
            if stripped == text
            else mark + stripped.decode("utf-8", "surrogatepass").encode(charset, "surrogatepass")
        )
    return _strip(body)


def _strip(body: bytes) -> bytes:
    return _NOTICE.sub(b"", _CARRIED_BLOCK.sub(b"", body).replace(INDEX_LINK, b"")) if BEGIN_MARKER in body else body


def insert_blocks(body: bytes, blocks: bytes) -> bytes:
    """Return a page with ASCII text inserted before `</body>`, or appended if there is none."""
    charset = detect_utf16(body)
    if charset is not None:
        inserted = _insert(body[2:].decode(charset, "surrogatepass").encode("utf-8", "surrogatepass"), blocks)
        return body[:2] + inserted.decode("utf-8", "surrogatepass").encode(charset, "surrogatepass")
    return _insert(body, blocks)


def _insert(body: bytes, blocks: bytes) -> bytes:
    offset = insertion_point(body)
    return body[:offset] + blocks + body[offset:]


def insertion_point(body: bytes) -> int:
    """Return the offset of `</body>` if it is near the end of the page, otherwise the length of the page.

    >>> insertion_point(b"<p>a</p></body></html>")
    8
    """
    tail = max(0, len(body) - _TAIL_BYTES)
    return max((match.start() for match in _BODY_END.finditer(body, tail)), default=len(body))


def detect_utf16(body: bytes) -> str | None:
    """Return `utf-16-le` or `utf-16-be` if the page starts and decodes as such; None for encodings based on ASCII."""
    if len(body) % 2:
        return None
    for mark, charset in _UTF16_STARTS:
        if body.startswith(mark):
            try:
                body[2:].decode(charset)
            except UnicodeDecodeError:
                return None
            return charset
    return None


def render_notice(date: str) -> bytes:
    """Return a visible line with the date of the last change.

    In the dissertation, caches did not count changed comments as a change, and were refreshed by such a line.
    """
    return f'<p class="{NOTICE_CLASS}">This page was modified on {date}.</p>\n'.encode("ascii")


def make_extra_pages(count: int) -> list[CarrierPage]:
    """Return `count` pages that exist only to carry blocks.

    >>> [page.key for page in make_extra_pages(2)]
    ['/unlost-vault/page-1.html', '/unlost-vault/page-2.html']
    """
    keys = (f"{VAULT_PATH}page-{number}.html" for number in range(1, count + 1))
    return [CarrierPage(key, len(render_extra_page(key)), 2) for key in keys]


def render_extra_page(key: str) -> bytes:
    """Return the HTML of an extra page, without blocks."""
    name = key.rpartition("/")[2].removesuffix(".html")
    return _render_page(
        f"Backup of this site, {name}",
        "This page keeps a part of what makes this site run, so that web archives keep it, too.",
    )


def raw_segment_path(segment: VaultSegment) -> str:
    """Return the path of a segment served as a plain file; it contains id and hash."""
    return f"{VAULT_PATH}{segment.id}.{segment.version}.{segment.wrap}"


def render_index(keys: Iterable[str]) -> bytes:
    """Return an HTML page with links to generated pages."""
    links = "".join(f'<li><a href="{key}">{key.rpartition("/")[2]}</a></li>\n' for key in keys)
    return _render_page(
        "Backup of this site", f"What makes this site run, for web archives:</p>\n<ul>\n{links}</ul>\n<p>"
    )


def _render_page(title: str, text: str) -> bytes:
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title></head>\n'
        f"<body>\n<h1>{title}</h1>\n<p>{text}</p>\n</body>\n</html>\n"
    ).encode("ascii")


def iter_html_files(folder: Path) -> Iterator[Path]:
    """Yield the HTML files of a folder in the order of their names, without symbolic links."""
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in HTML_NAMES and path.is_file() and not path.is_symlink():
            yield path


def read_site_folder(folder: Path) -> list[CarrierPage]:
    """Return the pages of a static site; `index.html` is the root. Raises InputError if there are none."""
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
    scanned = scan_links(body, "text/html", urljoin(_BASE_URL, key))
    return {
        urlsplit(link.uri).path
        for link in scanned.links
        if link.kind is LinkKind.PAGE and link.uri.startswith(_BASE_URL)
    }


def _resolve_file(path: str, sizes: dict[str, int]) -> str | None:
    path = unquote(path)
    candidates = (path, f"{path.rstrip('/')}/index.html", f"{path}.html")
    return next((name for name in candidates if name in sizes), None)


def read_page_list(file: Path) -> list[CarrierPage]:
    """Read a list of pages: one URL or path per line, the root first, optionally a tab and the size in bytes.

    Raises:
        InputError: The list is empty, or a line is invalid.
    """
    problems = Problems()
    pages: list[CarrierPage] = []
    seen: Counter[str] = Counter()
    for line in read_lines(file, problems):
        text = line.text.decode("utf-8", "surrogateescape").strip()
        if not text or text.startswith("#"):
            continue
        url, _, size = text.partition("\t")
        if size and not re.fullmatch(r"\d{1,12}", size.strip()):
            raise InputError(
                f"{file}: line {line.number}: expected an address, or one with a tab and a number of bytes"
            )
        key = page_key(url.strip())
        seen[key] += 1
        if seen[key] == 1 and not is_vault_page(key):
            # The first page is the root. Lists tend to begin with important pages, which are taken to be near it.
            pages.append(
                CarrierPage(
                    key, int(size) if size else ASSUMED_PAGE_BYTES, 0 if not pages else 1 if len(pages) < 8 else None
                )
            )
    if not pages:
        raise InputError(f"{file}: no addresses in it: expected one a line, the root first")
    return pages


def page_key(url: str) -> str:
    """Return the key of a page in a vault: its unescaped path with query.

    >>> page_key("https://example.com/a%20b?b=1#c"), page_key("about"), page_key("https://example.com")
    ('/a b?b=1', '/about', '/')
    """
    parts = urlsplit(url if "://" in url or url.startswith("/") else f"/{url}")
    path = unquote(parts.path, errors="replace") or "/"
    return f"{path}?{parts.query}" if parts.query else path


def page_key_below(site: str, url: str) -> str | None:
    """Return the key of a page of the site at a URL; None if the page is not below that URL.

    >>> page_key_below("https://example.com/blog/", "http://www.example.com/blog/a.html")
    '/a.html'
    """
    key, folder = page_key(url), page_key(site).partition("?")[0].rstrip("/")
    return key[len(folder) :] if key.startswith(f"{folder}/") else None


def page_url(site: str, key: str) -> str:
    """Return the URL of a page of a site.

    >>> page_url("https://example.com/blog/", "/a b.html?c=1")
    'https://example.com/blog/a%20b.html?c=1'
    """
    path, mark, query = key.partition("?")
    return f"{site.rstrip('/')}{quote(path, errors='surrogateescape', safe=_SAFE_CHARACTERS)}{mark}{query}"


def is_vault_page(key: str) -> bool:
    """Return whether a page is generated by the vault."""
    return key.startswith(VAULT_PATH)
