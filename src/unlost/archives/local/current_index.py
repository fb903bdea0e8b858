"""Keeps the index of a folder of archive files up to date for those who ask it, wherever it can be kept."""

import asyncio
import hashlib
import os
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import TypeVar

from unlost import home
from unlost.archives.local.file_index import WarcFileIndex
from unlost.archives.local.file_reading import IndexingStoppedError
from unlost.clock import Clock
from unlost.errors import FailedError, InputError
from unlost.formats.warcindex import is_archive_file

_T = TypeVar("_T")

_REFRESH_SECONDS = 10.0  # so late are files seen that come or change


class IndexUpdater:
    """The index of the archive files below a folder, in the user's cache; where that cannot be, in a temporary one.

    archive: its id, for errors. on_message: is told, in a line, what the user should know. on_file: is told which file
    is being indexed; both are called in other threads.
    """

    def __init__(
        self,
        root: Path,
        archive: str,
        clock: Clock,
        on_message: Callable[[str], object] | None,
        on_file: Callable[[str], object] | None,
    ) -> None:
        self._root = root
        self._archive = archive
        self._clock = clock
        self._on_message = on_message
        self._on_file = on_file
        self._name = f"{hashlib.sha256(os.fsencode(root)).hexdigest()[:32]}.sqlite"
        self._index = WarcFileIndex(root, home.cache_folder() / "files" / self._name)
        self._is_temporary = False
        self._refreshed_at: float | None = None
        self._refresh_lock = asyncio.Lock()

    async def query(self, query: Callable[[WarcFileIndex], _T]) -> _T:
        """Return what a question to the index gives, which is asked in a thread. Raises FailedError."""
        await self.refresh()
        try:
            return await asyncio.to_thread(query, self._index)
        except sqlite3.DatabaseError:
            # Damaged, or removed by somebody who cleans up: it is made anew, once.
            await self.refresh(force=True)
        try:
            return await asyncio.to_thread(query, self._index)
        except sqlite3.DatabaseError as error:
            raise FailedError(
                f"the index of {self._root} cannot be read: {error}", self._archive, "malformed"
            ) from error

    async def refresh(self, *, force: bool = False) -> None:
        """Look for files that came, changed or went, if that was not done lately. Raises FailedError."""
        async with self._refresh_lock:
            moment = self._clock.now()
            if not force and self._refreshed_at is not None and moment < self._refreshed_at + _REFRESH_SECONDS:
                return
            stop = Event()
            try:
                await asyncio.to_thread(self._refresh_index, stop)
            except asyncio.CancelledError:
                stop.set()  # the thread cannot be ended, but it can be told
                raise
            self._refreshed_at = self._clock.now()

    def _refresh_index(self, stop: Event) -> None:
        self._check_root()
        try:
            self._update(stop)
        except IndexingStoppedError:
            return  # nobody waits for it
        except (OSError, sqlite3.OperationalError) as error:
            if self._is_temporary:
                raise self._failed_error(error, "unreachable") from error
            self._use_temporary(error)
            self._refresh_index(stop)

    def _check_root(self) -> None:
        """Raise FailedError for a folder that cannot be listed, and for a file that is no archive file."""
        try:
            self._root.stat()
            if self._root.is_dir():
                os.scandir(self._root).close()
            elif not self._root.is_file() or not is_archive_file(self._root):
                message = f"{self._root}: expected a folder, or a WARC, ARC or WACZ file, found something else"
                raise FailedError(message, self._archive, "malformed")
        except OSError as error:
            raise self._failed_error(error, "unreachable") from error
        except InputError as error:
            raise FailedError(str(error), self._archive, "unreachable") from error

    def _update(self, stop: Event) -> None:
        try:
            if not self._index.is_current():
                self._index.update(stop, self._on_file)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            # Not a database, or no whole one: what is in it can be had again.
            self._index.remove()
            self._index.update(stop, self._on_file)

    def _use_temporary(self, error: Exception) -> None:
        folder = Path(tempfile.mkdtemp(prefix="unlost-files-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._index, self._is_temporary = WarcFileIndex(self._root, folder / self._name), True
        if self._on_message is not None:
            self._on_message(
                f"{self._archive}: the index of {self._root} cannot be kept in {home.cache_folder()}: {error}; it is made "
                "again each time. Set UNLOST_HOME to a folder that can be written"
            )

    def _failed_error(self, error: Exception, kind: str) -> FailedError:
        reason = error.strerror or error if isinstance(error, OSError) else error
        return FailedError(f"{self._root}: cannot be read: {reason}", self._archive, kind)
