"""The blocks of each page, cached for the middleware, and the rules for changing a response.

If the vault cannot be read, pages are served without blocks, and this module's logger says why.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import formatdate, parsedate_to_datetime
from hashlib import sha256
from os import PathLike
from pathlib import Path

from unlost import dates
from unlost.errors import UnlostError
from unlost.vault import pages
from unlost.vault.injector import extra_page_keys, iter_raw_segments, render_page_blocks
from unlost.vault.pages import VAULT_PATH, insert_blocks
from unlost.vault.plan import locate_unlisted_block
from unlost.vault.state import STATE_NAME, Vault, open_vault

_MAX_CACHED_BYTES = 64 << 20  # of texts in memory; the rest is read from the disk when it is asked for
_RELOAD_CHECK_SECONDS = 2.0  # between two looks at whether the vault was packed anew
_VAULT_ERRORS = (OSError, UnlostError, KeyError, StopIteration)
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PageBlocks:
    """What a page carries. text: ASCII. tag: stands for it in entity tags. since: its date, seconds since 1970.

    listed: whether the page was planned for it; else it carries what its name says. limit: bytes of the whole page.
    """

    text: bytes
    etag_suffix: bytes
    changed_at: int
    changed_at_http: bytes
    is_planned: bool
    limit: int


@dataclass(frozen=True, slots=True)
class VaultFile:
    """An answer of the vault's own: a page made only to carry blocks, or what was packed, as it is."""

    body: bytes
    mime: str


class PageBlockCache:
    """What pages carry, from a vault's folder. It is read again when the vault is packed anew. For any thread.

    Whatever becomes of the vault, the site goes on: pages whose blocks cannot be read carry none.
    """

    def __init__(self, vault: str | PathLike[str]) -> None:
        """Raise InputError if there is no vault."""
        self._folder = Path(vault)
        self._lock = threading.Lock()
        self._checked_at = 0.0
        self._state: Vault
        self._version: tuple[int, int] = (0, 0)
        self._cache: OrderedDict[str, PageBlocks | None] = OrderedDict()
        self._bytes = 0
        self._files: dict[str, VaultFile] = {}
        self._read()

    def get_blocks(self, key: str) -> PageBlocks | None:
        """Return what the page with a path and query carries; None if there is nothing to carry."""
        if time.monotonic() - self._checked_at > _RELOAD_CHECK_SECONDS:
            self._reload_if_changed()
        try:
            return self._cache[key]
        except KeyError:
            with self._lock:
                return self._render_or_reload(key)

    def get_file(self, path: str) -> VaultFile | None:
        """Return the vault's own answer for a path; None if it has none."""
        return self._files.get(path) if path.startswith(VAULT_PATH) else None

    def _reload_if_changed(self) -> None:
        with self._lock:
            self._checked_at = time.monotonic()
            try:
                if self._file_version() != self._version:
                    self._read()
            except _VAULT_ERRORS as error:
                _LOG.warning("%s: the vault cannot be read, what was read before is used: %s", self._folder, error)

    def _render_or_reload(self, key: str) -> PageBlocks | None:
        try:
            return self._render(key)
        except _VAULT_ERRORS:
            # It was packed anew since it was read, and old blocks are gone.
            try:
                self._read()
                return self._render(key)
            except _VAULT_ERRORS as error:
                _LOG.warning("%s: a page is sent without its block: %s", self._folder, error)
                return None

    def _file_version(self) -> tuple[int, int]:
        found = (self._folder / STATE_NAME).stat()
        return found.st_mtime_ns, found.st_ino

    def _read(self) -> None:
        seen = self._file_version()
        self._state = open_vault(self._folder)
        self._version, self._checked_at = seen, time.monotonic()
        self._cache, self._bytes = OrderedDict(), 0
        state = self._state
        self._with_link = bool(state.settings.extra_pages or state.settings.raw)
        self._counts = {each.id: each.shape.count for each in state.newest.files} if state.generations else {}
        added = {
            key: VaultFile(
                insert_blocks(pages.render_extra_page(key), state.page_blocks_text(key)),
                "text/html; charset=utf-8",
            )
            for key in extra_page_keys(state)
        }
        added |= {name: VaultFile(content, "application/octet-stream") for name, content in iter_raw_segments(state)}
        if added:
            index = VaultFile(pages.render_index(added), "text/html; charset=utf-8")
            added |= {pages.INDEX_PATH: index, VAULT_PATH: index}
        self._files = added

    def _render(self, key: str) -> PageBlocks | None:
        state = self._state
        listed = key in state.live
        if listed:
            text = render_page_blocks(state, key, with_link=self._with_link)
            since = state.since[key]
        else:
            place = locate_unlisted_block(key, self._counts)
            text = b"" if place is None else state.location_text(place)
            since = max(state.since.values(), default="19700101000000")
        load = None if not text else _page_blocks(text, since, state.settings.limit, is_planned=listed)
        self._cache[key] = load
        self._bytes += len(text) + len(key)
        while self._bytes > _MAX_CACHED_BYTES and len(self._cache) > 1:
            gone, old = self._cache.popitem(last=False)
            self._bytes -= len(gone) + (len(old.text) if old is not None else 0)
        return load


def _page_blocks(text: bytes, changed_at: str, limit: int, *, is_planned: bool) -> PageBlocks:
    tag = b"-v" + sha256(text).hexdigest()[:12].encode()
    seconds = int(dates.to_datetime(changed_at).timestamp())
    return PageBlocks(text, tag, seconds, formatdate(seconds, usegmt=True).encode(), is_planned, limit)


HeaderSequence = Sequence[tuple[bytes, bytes]]
_HTML = (b"text/html", b"application/xhtml+xml")
# Of the bytes as they were; whoever checks them must not find others.
_DIGEST_HEADERS = frozenset(
    {b"content-md5", b"digest", b"content-digest", b"repr-digest", b"accept-ranges", b"signature", b"signature-input"}
)
# What is called HTML and begins so is none, or in letters of two bytes.
_BINARY_SIGNATURES = (
    b"\x1f\x8b", b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<", b"\x89PNG", b"%PDF", b"PK\x03\x04", b"GIF8",
    b"\xff\xd8\xff", b"BZh",
)  # fmt: skip
_REWRITTEN_HEADERS = frozenset({b"content-length", b"etag", b"last-modified", *_DIGEST_HEADERS})
_INSPECTED_HEADERS = frozenset(
    {b"content-type", b"content-length", b"content-encoding", b"etag", b"last-modified", b"cache-control",
     b"content-disposition", b"content-range"}
)  # fmt: skip


def headers_with_blocks(blocks: PageBlocks, status: int, headers: HeaderSequence) -> list[tuple[bytes, bytes]] | None:
    """Return the headers of an answer that carries a block; None if it must be left as it is.

    It is left unless it is a whole page of HTML as it is: status 200, no coding, no range, no download, and nobody said
    `no-transform`.
    """
    if status != 200:
        return None
    found: dict[bytes, bytes] = {}
    made: list[tuple[bytes, bytes]] = []
    for name, value in headers:
        lower = name.lower()
        if lower in _INSPECTED_HEADERS:
            found[lower] = value
        if lower not in _REWRITTEN_HEADERS:
            made.append((name, value))
    if not _is_plain_html(found):
        return None
    if b"content-length" in found:
        length = found[b"content-length"]
        if not length.isdigit() or int(length) + len(blocks.text) > max(blocks.limit, len(blocks.text)):
            return None
        made.append((b"content-length", b"%d" % (int(length) + len(blocks.text))))
    if b"etag" in found:
        made.append((b"etag", append_to_etag(found[b"etag"], blocks.etag_suffix)))
    if b"last-modified" in found:
        made.append((b"last-modified", _later_date(found[b"last-modified"], blocks)))
    return made


def _is_plain_html(found: dict[bytes, bytes]) -> bool:
    kind = found.get(b"content-type", b"").lower()
    return (
        kind.startswith(_HTML)
        and b"utf-16" not in kind
        and found.get(b"content-encoding", b"identity").strip().lower() in {b"", b"identity"}
        and b"no-transform" not in found.get(b"cache-control", b"").lower()
        and not found.get(b"content-disposition", b"").lstrip().lower().startswith(b"attachment")
        and b"content-range" not in found
    )


def may_be_html(beginning: bytes) -> bool:
    """Return whether a body that is called HTML may be: not what is packed, a picture, or in letters of two bytes."""
    return not beginning.startswith(_BINARY_SIGNATURES)


def not_modified_headers(blocks: PageBlocks, headers: HeaderSequence) -> list[tuple[bytes, bytes]]:
    """Return the headers of a 304 for a page that carries a block: with the entity tag that its whole answer has."""
    return [
        (name, append_to_etag(value, blocks.etag_suffix) if name.lower() == b"etag" else value)
        for name, value in headers
    ]


def append_to_etag(etag: bytes, suffix: bytes) -> bytes:
    """Return an entity tag for the page with its block.

    >>> append_to_etag(b'W/"abc"', b"-v1")
    b'W/"abc-v1"'
    """
    return etag[:-1] + suffix + b'"' if etag.endswith(b'"') and not etag.endswith(suffix + b'"') else etag


def _later_date(modified: bytes, blocks: PageBlocks) -> bytes:
    seconds = _parse_http_date(modified)
    return blocks.changed_at_http if seconds is not None and seconds < blocks.changed_at else modified


def _parse_http_date(date: bytes) -> float | None:
    try:
        return parsedate_to_datetime(date.decode("latin-1")).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def original_if_none_match(value: bytes, blocks: PageBlocks) -> bytes | None:
    """Return what If-None-Match says to the site itself, which does not know of blocks; None if nothing is left of it.

    Tags with the block that the page carries lose its mark; those with another one are of an older page. A page that
    was planned to carry a block has no tags without: whoever has one saw the page before.
    """
    if value.strip() == b"*":
        return value
    kept = []
    for each in value.split(b","):
        tag = each.strip()
        if tag.endswith(blocks.etag_suffix + b'"'):
            kept.append(tag[: -len(blocks.etag_suffix) - 1] + b'"')
        elif not blocks.is_planned and b"-v" not in tag[-15:]:
            kept.append(tag)
    return b", ".join(kept) if kept else None


def passes_if_modified_since(value: bytes, blocks: PageBlocks) -> bool:
    """Return whether If-Modified-Since may be passed on: a page that got its block later has changed since."""
    seconds = _parse_http_date(value)
    return seconds is not None and (not blocks.is_planned or seconds >= blocks.changed_at)
