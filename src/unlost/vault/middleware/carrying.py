"""What each page carries, at hand for every request."""

import logging
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from email.utils import formatdate
from hashlib import sha256
from os import PathLike
from pathlib import Path

from unlost import dates
from unlost.errors import UnlostError
from unlost.vault import extra_pages
from unlost.vault.injecting import extra_page_keys, render_page_blocks, iter_raw_segments
from unlost.vault.page_text import VAULT_PATH, insert_blocks
from unlost.vault.placing import locate_unlisted_block
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
                insert_blocks(extra_pages.render_extra_page(key), state.page_blocks_text(key)),
                "text/html; charset=utf-8",
            )
            for key in extra_page_keys(state)
        }
        added |= {name: VaultFile(content, "application/octet-stream") for name, content in iter_raw_segments(state)}
        if added:
            index = VaultFile(extra_pages.render_index(added), "text/html; charset=utf-8")
            added |= {extra_pages.INDEX_PATH: index, VAULT_PATH: index}
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
