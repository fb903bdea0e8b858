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
from unlost.vault.injecting import added_pages, carried_by, raw_contents
from unlost.vault.page_text import FOLDER, with_blocks
from unlost.vault.placing import place_of_unlisted
from unlost.vault.state import NAME, Vault, open_vault

_KEPT_BYTES = 64 << 20  # of texts in memory; the rest is read from the disk when it is asked for
_LOOK_SECONDS = 2.0  # between two looks at whether the vault was packed anew

_UNREADABLE = (OSError, UnlostError, KeyError, StopIteration)
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Load:
    """What a page carries. text: ASCII. tag: stands for it in entity tags. since: its date, seconds since 1970.

    listed: whether the page was planned for it; else it carries what its name says. limit: bytes of the whole page.
    """

    text: bytes
    tag: bytes
    since: int
    since_text: bytes
    listed: bool
    limit: int


@dataclass(frozen=True, slots=True)
class Added:
    """An answer of the vault's own: a page made only to carry blocks, or what was packed, as it is."""

    body: bytes
    mime: str


class Carrying:
    """What pages carry, from a vault's folder. It is read again when the vault is packed anew. For any thread.

    Whatever becomes of the vault, the site goes on: pages whose blocks cannot be read carry none.
    """

    def __init__(self, vault: str | PathLike[str]) -> None:
        """Raise InputError if there is no vault."""
        self._folder = Path(vault)
        self._lock = threading.Lock()
        self._looked = 0.0
        self._state: Vault
        self._seen: tuple[int, int] = (0, 0)
        self._loads: OrderedDict[str, Load | None] = OrderedDict()
        self._bytes = 0
        self._added: dict[str, Added] = {}
        self._read()

    def load(self, key: str) -> Load | None:
        """Return what the page with a path and query carries; None if there is nothing to carry."""
        if time.monotonic() - self._looked > _LOOK_SECONDS:
            self._look()
        try:
            return self._loads[key]
        except KeyError:
            with self._lock:
                return self._made(key)

    def added(self, path: str) -> Added | None:
        """Return the vault's own answer for a path; None if it has none."""
        return self._added.get(path) if path.startswith(FOLDER) else None

    def _look(self) -> None:
        with self._lock:
            self._looked = time.monotonic()
            try:
                if self._mark() != self._seen:
                    self._read()
            except _UNREADABLE as error:
                _LOG.warning("%s: the vault cannot be read, what was read before is used: %s", self._folder, error)

    def _made(self, key: str) -> Load | None:
        try:
            return self._make(key)
        except _UNREADABLE:
            # It was packed anew since it was read, and old blocks are gone.
            try:
                self._read()
                return self._make(key)
            except _UNREADABLE as error:
                _LOG.warning("%s: a page is sent without its block: %s", self._folder, error)
                return None

    def _mark(self) -> tuple[int, int]:
        found = (self._folder / NAME).stat()
        return found.st_mtime_ns, found.st_ino

    def _read(self) -> None:
        seen = self._mark()
        self._state = open_vault(self._folder)
        self._seen, self._looked = seen, time.monotonic()
        self._loads, self._bytes = OrderedDict(), 0
        state = self._state
        self._leads = bool(state.settings.extra_pages or state.settings.raw)
        self._counts = {each.id: each.shape.count for each in state.newest.files} if state.generations else {}
        added = {
            key: Added(with_blocks(extra_pages.extra_page(key), state.text(key)), "text/html; charset=utf-8")
            for key in added_pages(state)
        }
        added |= {name: Added(content, "application/octet-stream") for name, content in raw_contents(state)}
        if added:
            index = Added(extra_pages.index_page(added), "text/html; charset=utf-8")
            added |= {extra_pages.INDEX: index, FOLDER: index}
        self._added = added

    def _make(self, key: str) -> Load | None:
        state = self._state
        listed = key in state.live
        if listed:
            text = carried_by(state, key, leads=self._leads)
            since = state.since[key]
        else:
            place = place_of_unlisted(key, self._counts)
            text = b"" if place is None else state.text_of_place(place)
            since = max(state.since.values(), default="19700101000000")
        load = None if not text else _load(text, since, state.settings.limit, listed=listed)
        self._loads[key] = load
        self._bytes += len(text) + len(key)
        while self._bytes > _KEPT_BYTES and len(self._loads) > 1:
            gone, old = self._loads.popitem(last=False)
            self._bytes -= len(gone) + (len(old.text) if old is not None else 0)
        return load


def _load(text: bytes, since: str, limit: int, *, listed: bool) -> Load:
    tag = b"-v" + sha256(text).hexdigest()[:12].encode()
    seconds = int(dates.to_datetime(since).timestamp())
    return Load(text, tag, seconds, formatdate(seconds, usegmt=True).encode(), listed, limit)
