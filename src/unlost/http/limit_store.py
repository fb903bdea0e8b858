"""Stores the rate-limit state of archives: in memory, or in files that all processes of a machine share."""

import errno
import fcntl
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
from unlost.http.rate_limit import RateLimitState, newer_version

T = TypeVar("T")

_MAX_BYTES = 1 << 20  # of a file; an account has some hundred
_MAX_NAME_LENGTH = 150  # characters of a file's name before its ending; systems take 255 bytes
_EMPTY_CACHE_SECONDS = 0.25  # for which an account that had no file is thought to have none
_LOCK_TIMEOUT = 30.0  # a change takes a millisecond: whoever holds the lock for so long was stopped
_EMPTY = RateLimitState()
_log = logging.getLogger(__name__)


class LimitStore(Protocol):
    """Keeps an account for each archive. Whoever uses the same store keeps the limits together."""

    @property
    def is_blocking(self) -> bool:
        """Whether a change may take a while, for a disk, a network or others: then it is made beside the event loop."""
        ...

    def is_known_empty(self, archive: str) -> bool:
        """Return whether an account is sure to have no entries, without waiting for anything."""
        ...

    def update(self, archive: str, change: Callable[[RateLimitState], tuple[RateLimitState, T]]) -> T:
        """Replace an archive's account, and return what the function returned beside it.

        Between its call and the end of the change, nobody else sees or changes that account. If it raises, nothing
        changes. It is called once; an archive that was never asked has `Ledger()`.
        """
        ...


class MemoryLimitStore:
    """Accounts that end with the process, for tests and for libraries that ask little. It may be used by threads."""

    is_blocking = False

    def __init__(self) -> None:
        self._states: dict[str, RateLimitState] = {}
        self._lock = Lock()

    def is_known_empty(self, archive: str) -> bool:
        """Return whether an account is sure to have no entries."""
        return archive not in self._states

    def update(self, archive: str, change: Callable[[RateLimitState], tuple[RateLimitState, T]]) -> T:
        """Replace an archive's account, and return what the function returned beside it."""
        with self._lock:
            ledger, result = change(self._states.get(archive, _EMPTY))
            if ledger == _EMPTY:
                self._states.pop(archive, None)
            else:
                self._states[archive] = ledger
            return result


class FileLimitStore:
    """A folder with a file for each archive, shared by all processes of a machine.

    A file is replaced whole, under a lock, so whoever is killed at any point leaves the old account or the new one. It
    is not forced to the disk each time: after a loss of power it may be that of some seconds before, and if it is
    damaged then, or by anything else, it is set aside as `….damaged` and everything that it counted is thought used up.

    folder: made when it is first needed, for its user alone.
    tell: gets a line for people if a file is damaged; by default the log of this module.
    """

    is_blocking = True

    def __init__(self, folder: str | os.PathLike[str], warn: Callable[[str], None] = _log.warning) -> None:
        self._folder = Path(folder)
        self._empty_since: dict[str, float] = {}
        self._warn = warn

    def is_known_empty(self, archive: str) -> bool:
        """Return whether an account has no entries: it has no file, in a folder that there is.

        Another process may have made one since we last looked, a quarter of a second ago at most.
        """
        now = time.monotonic()
        if now - self._empty_since.get(archive, -math.inf) < _EMPTY_CACHE_SECONDS:
            return True
        # Noted before we look, so that a thread that writes an entry meanwhile takes it away again.
        self._empty_since[archive] = now
        is_clear = False
        try:
            is_clear = self._folder.is_dir() and not self.path_of(archive).exists()
        finally:
            if not is_clear:
                self._empty_since.pop(archive, None)
        return is_clear

    def update(self, archive: str, change: Callable[[RateLimitState], tuple[RateLimitState, T]]) -> T:
        """Replace an archive's account, and return what the function returned beside it.

        Raises OSError if the folder cannot be written or another process holds the lock for half a minute, InputError
        if a newer unlost wrote the file: limits that cannot be kept are no reason to send without.
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
        """Return an archive's account without changing or locking anything. Raises OSError.

        A damaged account counts as one whose limits are used up.
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
        """Return where the account of an archive is, or would be."""
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
        # First the copy, then the new file: at no point is there none, which would mean that nothing was counted.
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
    """Hold the lock of a file that is only there to be locked: what is replaced cannot be."""
    # Whoever can open the file, if only to read it, can hold the lock for ever: nobody else on this machine may.
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        _lock(descriptor, file)
        yield
    finally:
        os.close(descriptor)  # which gives the lock back


def _lock(descriptor: int, file: Path) -> None:
    deadline = time.monotonic() + _LOCK_TIMEOUT
    pause = 0.0005
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                reason = f"locked by another process for {_LOCK_TIMEOUT:g} s"
                raise OSError(errno.EAGAIN, reason, str(file)) from None
            time.sleep(pause)
            pause = min(2 * pause, 0.02)
        else:
            return


def _replace_file(file: Path, data: bytes) -> None:
    """Write a file aside and rename it. Only who holds the lock may: what a killed process left is overwritten."""
    aside = file.with_name(file.name + ".part")
    aside.write_bytes(data)
    aside.replace(file)
