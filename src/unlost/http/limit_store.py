"""Stores the rate-limit state of archives: in memory, or in files shared by all processes of a machine."""

import errno
import logging
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Protocol, TypeVar
from urllib.parse import quote

from unlost.errors import InputError
from unlost.file_lock import acquire_lock
from unlost.http.rate_limit import RateLimitState, newer_version

T = TypeVar("T")

_MAX_BYTES = 1 << 20  # of a file; a state has a few hundred
_MAX_NAME_LENGTH = 150  # of a file name without its extension; file systems allow 255 bytes
_EMPTY_CACHE_SECONDS = 0.25  # how long the absence of a file is cached
_LOCK_TIMEOUT = 30.0  # a change takes about a millisecond: a process that holds the lock this long is suspended
_EMPTY = RateLimitState()
_log = logging.getLogger(__name__)


class LimitStore(Protocol):
    """Stores a rate-limit state for each archive. Clients that share a store respect the limits together."""

    @property
    def is_blocking(self) -> bool:
        """Whether an update may block, on a disk, a network or a lock, so that it has to run in a thread."""
        ...

    def is_known_empty(self, archive: str) -> bool:
        """Return whether an archive's state is certain to be empty. Never blocks."""
        ...

    def update(self, archive: str, change: Callable[[RateLimitState], tuple[RateLimitState, T]]) -> T:
        """Replace an archive's state by the first result of `change`, and return the second one.

        The state is locked meanwhile. `change` is called once; if it raises, nothing changes. An archive that was never
        queried has the state `RateLimitState()`.
        """
        ...


class MemoryLimitStore:
    """State that ends with the process, for tests and for libraries that send few requests. Thread-safe."""

    is_blocking = False

    def __init__(self) -> None:
        self._states: dict[str, RateLimitState] = {}
        self._lock = Lock()

    def is_known_empty(self, archive: str) -> bool:
        """Return whether an archive has no state."""
        return archive not in self._states

    def update(self, archive: str, change: Callable[[RateLimitState], tuple[RateLimitState, T]]) -> T:
        """Replace an archive's state by the first result of `change`, and return the second one."""
        with self._lock:
            state, result = change(self._states.get(archive, _EMPTY))
            if state == _EMPTY:
                self._states.pop(archive, None)
            else:
                self._states[archive] = state
            return result


class FileLimitStore:
    """State in a directory with a file for each archive, shared by all processes of a machine.

    Files are replaced atomically, under a lock, so that a killed process leaves the old state or the new one. They are
    not synced: after a power failure the state may be some seconds old. A damaged file is renamed to `*.damaged`, and
    all limits of the archive count as exhausted.

    Args:
        folder: The directory. It is created when first needed, readable by its user only.
        warn: Receives a warning if a file is damaged. By default, it is logged.
    """

    is_blocking = True

    def __init__(self, folder: str | os.PathLike[str], warn: Callable[[str], None] = _log.warning) -> None:
        self._folder = Path(folder)
        self._empty_since: dict[str, float] = {}
        self._warn = warn

    def is_known_empty(self, archive: str) -> bool:
        """Return whether an archive has no file, in a directory that exists.

        The result is cached for a quarter of a second, in which another process may create the file.
        """
        now = time.monotonic()
        if now - self._empty_since.get(archive, -math.inf) < _EMPTY_CACHE_SECONDS:
            return True
        # Stored before the check, so that a thread that writes the file during the check invalidates it.
        self._empty_since[archive] = now
        is_empty = False
        try:
            is_empty = self._folder.is_dir() and not self.path_of(archive).exists()
        finally:
            if not is_empty:
                self._empty_since.pop(archive, None)
        return is_empty

    def update(self, archive: str, change: Callable[[RateLimitState], tuple[RateLimitState, T]]) -> T:
        """Replace an archive's state by the first result of `change`, and return the second one.

        Without a stored state no request is sent, so that limits are never exceeded.

        Raises:
            OSError: The directory cannot be written, or another process holds the lock for half a minute.
            InputError: The file was written by a newer version of unlost.
        """
        file = self.path_of(archive)
        try:
            with _locked(file.with_suffix(".lock")):
                before = self._read(file)
                after, result = change(before)
                if after == _EMPTY:
                    file.unlink(missing_ok=True)
                elif after != before:
                    _replace_file(file, after.to_json().encode())
                return result
        finally:
            self._empty_since.pop(archive, None)

    def read(self, archive: str) -> RateLimitState:
        """Return an archive's state without changing or locking anything. Raises OSError.

        A damaged file counts as a state whose limits are exhausted.
        """
        try:
            data = self.path_of(archive).read_bytes()[:_MAX_BYTES]
        except FileNotFoundError:
            return RateLimitState()
        try:
            return RateLimitState.from_json(data.decode())
        except (InputError, UnicodeDecodeError):
            return RateLimitState(lost=True)

    def path_of(self, archive: str) -> Path:
        """Return the path of an archive's file."""
        name = quote(archive, safe="", errors="surrogatepass")
        if len(name) > _MAX_NAME_LENGTH:
            name = name[: _MAX_NAME_LENGTH - 65] + "-" + sha256(archive.encode("utf-8", "surrogatepass")).hexdigest()
        return self._folder / f"{name}.json"

    def _read(self, file: Path) -> RateLimitState:
        try:
            with file.open("rb") as opened:
                data = opened.read(_MAX_BYTES + 1)
        except FileNotFoundError:
            return RateLimitState()
        try:
            return RateLimitState.from_json(data[:_MAX_BYTES].decode())
        except (InputError, UnicodeDecodeError):
            if newer := newer_version(data):
                raise InputError(f"{file}: of version {newer}: expected 1; use the unlost that wrote it") from None
        # The backup is written first: without a file, nothing would count as sent.
        aside = file.with_suffix(".damaged")
        _replace_file(aside, data)
        lost = RateLimitState(lost=True)
        _replace_file(file, lost.to_json().encode())
        self._warn(
            f"{file}: damaged, and set aside as {aside.name}: the archive's limits are thought used up, those of a day "
            "until midnight UTC. To ask it now, delete the file if it was not asked today"
        )
        return lost


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Hold the lock of a separate file. A lock on the state file itself would be lost when that is replaced."""
    # A process that can open the file, even read-only, can hold the lock forever: restrict access to this user.
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        _lock(descriptor, file)
        yield
    finally:
        os.close(descriptor)  # releases the lock


def _lock(descriptor: int, file: Path) -> None:
    try:
        acquire_lock(descriptor, _LOCK_TIMEOUT)
    except BlockingIOError:
        raise OSError(errno.EAGAIN, f"locked by another process for {_LOCK_TIMEOUT:g} s", str(file)) from None


def _replace_file(file: Path, data: bytes) -> None:
    """Replace a file atomically. The lock must be held: a temporary file left by a killed process is overwritten."""
    aside = file.with_name(file.name + ".part")
    aside.write_bytes(data)
    aside.replace(file)
