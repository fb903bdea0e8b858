"""A site in a folder, as a crawler such as wget lays it out, or as it lay on its server."""

import errno
import hashlib
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from unlost import dates
from unlost.errors import DateError, InputError, UriError, UsageError
from unlost.formats.problems import Problem, Problems
from unlost.measure.resource import NONE, Body, Resource, Resources
from unlost.measure.sites.file_types import LOOK, type_of
from unlost.measure.sites.folder_addresses import address_of, base_of, is_host
from unlost.measure.sites.kinds import is_archive_name
from unlost.measure.sites.table import Table
from unlost.uri.naming import name_of

_PIECE = 1 << 18
# Not waiting for whoever would write into a pipe, and not led elsewhere by a link that was put in a file's place.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# What HTTrack leaves beside the hosts: itself, and pages of its own.
_HTTRACK = "hts-cache"


class FolderSite:
    """A site that was read from a folder: a `Site`."""

    listed: frozenset[str] = frozenset()
    requests: int | None = None

    def __init__(
        self, root: Path, table: Table, left_out: Mapping[str, int], problems: Problems, files: list[str]
    ) -> None:
        """Take a table whose parts are these files, by their paths below the root."""
        self.resources: Resources = table
        self.left_out = left_out
        self.problems = problems
        self._root = root
        self._table = table
        self._files = files

    def body(self, resource: Resource, most: int) -> Body:
        """Return the body of one of its resources, at most so many bytes. Raises InputError, OSError."""
        file = self._files[self._table.place(resource.place)[0]]
        try:
            with _opened(self._root / file) as opened:
                content = opened.read(most + 1)
        except FileNotFoundError:
            raise InputError(f"{self._root / file}: it has vanished meanwhile") from None
        return Body(content[:most], None, len(content) > most)


def read_folder(
    root: Path,
    *,
    base: str | None = None,
    ignore_case: bool = False,
    on_read: Callable[[int], object] | None = None,
) -> FolderSite:
    """Return the site in a folder. Links are not followed.

    base: the address of the folder; without it, the names of the folders in it are those of hosts. Raises UsageError if
    they are not, InputError if there are no files, OSError if the folder itself cannot be read.
    """
    address = None if base is None else base_of(base)
    reading = _Reading(root, address, on_read or (lambda _: None), ignore_case=ignore_case)
    if address is None:
        reading.skipped = _beside_hosts(root)
    for path, found in reading.walk():
        reading.take(path, found)
    if not reading.files and not reading.left_out and not reading.problems.total:
        raise InputError(f"{root}: no files in it")
    return FolderSite(root, reading.table, dict(reading.left_out), reading.problems, reading.files)


class _Reading:
    def __init__(self, root: Path, base: str | None, on_read: Callable[[int], object], *, ignore_case: bool) -> None:
        self.table = Table()
        self.files: list[str] = []
        self.left_out: Counter[str] = Counter()
        self.problems = Problems()
        self.skipped: frozenset[str] = frozenset()
        self._root = root
        self._base = base
        self._ignore_case = ignore_case
        self._on_read = on_read
        self._bytes = 0

    def walk(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the regular files, by their paths below the root, in the order of their names. Raises OSError."""
        with os.scandir(self._root):
            pass  # a root that may not be listed is an error; a folder in it is a problem
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            folders = []
            for name in self._listed(folder):
                path = f"{folder}{name}"
                if not folder and name in self.skipped:
                    self.left_out["beside-hosts"] += 1
                    continue
                try:
                    found = os.lstat(self._root / path)
                except OSError as error:
                    self._report("unreadable", path, error.strerror or str(error))
                    continue
                if stat.S_ISDIR(found.st_mode):
                    folders.append(f"{path}/")
                elif stat.S_ISREG(found.st_mode):
                    yield path, found
                else:
                    self.left_out["link" if stat.S_ISLNK(found.st_mode) else "special-file"] += 1
            waiting += reversed(folders)

    def _listed(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(self._root / folder))  # noqa: PTH208  names, and no more objects than needed
        except OSError as error:
            self._report("unreadable", folder, error.strerror or str(error))
            return []

    def take(self, path: str, found: os.stat_result) -> None:
        """Read one file."""
        try:
            path.encode()
        except UnicodeEncodeError:
            self._report("bad-name", path, "expected a name in UTF-8, found other bytes: rename it")
            self.left_out["no-address"] += 1
            return
        try:
            uri = address_of(path, self._base)
            name = name_of(uri, ignore_case=self._ignore_case)
        except UriError as error:
            self._report("bad-uri", path, str(error))
            self.left_out["no-address"] += 1
            return
        try:
            digest, size, head = self._digest(path)
        except OSError as error:
            self._report("unreadable", path, error.strerror or str(error))
            self.left_out["unreadable"] += 1
            return
        # Of two files with one name, the one that was changed last counts.
        changed = _modified(found)
        self.table.add(name, uri, NONE, changed, type_of(path, head), digest, size, None, (len(self.files), 0, 0))
        self.files.append(path)

    def _digest(self, path: str) -> tuple[bytes, int, bytes]:
        """Return the SHA-1 of a file, how many bytes it has, and the first of them. Raises OSError."""
        hashed, size, head = hashlib.sha1(usedforsecurity=False), 0, b""
        with _opened(self._root / path) as opened:
            while piece := opened.read(_PIECE):
                head = head or piece[:LOOK]
                hashed.update(piece)
                size += len(piece)
                self._bytes += len(piece)
                self._on_read(self._bytes)  # piece by piece: one file may be as large as all others together
        return hashed.digest(), size, head

    def _report(self, kind: str, path: str, message: str) -> None:
        self.problems.add(Problem(kind, str(self._root / path), None, 0, message))


def _beside_hosts(root: Path) -> frozenset[str]:
    """Return what is beside the folders of hosts, and is none. Raises UsageError if these are no folders of hosts."""
    hosts: list[str] = []
    others: list[str] = []
    for entry in sorted(os.scandir(root), key=lambda entry: entry.name):
        is_folder = entry.is_dir(follow_symlinks=False)
        (hosts if is_folder and is_host(entry.name) else others).append(entry.name)
    wrong = (
        []
        if _HTTRACK in others
        else [name for name in others if not name.startswith(".") and not name.endswith(".log")]
    )
    archives = [name for name in wrong if is_archive_name(name)]
    if archives and not hosts:
        is_link = (root / archives[0]).is_symlink()
        beside = next((name for name in wrong if name not in archives), None)
        why = "a link" if is_link or beside is None else f"beside {ascii(beside)[:60]}"
        message = f"expected archive files and nothing else, or a site, found {ascii(archives[0])[:60]}, {why}"
        raise UsageError(f"{root}: {message}: name the archive file itself, or give --base if it is a part of the site")
    if wrong or not hosts:
        found = ascii(wrong[0])[:60] if wrong else "none"
        message = f"expected folders named after hosts, as wget makes them, found {found}"
        raise UsageError(f"{root}: {message}: give --base with the address that the folder had")
    return frozenset(others)


def _opened(file: Path) -> BinaryIO:
    """Open a regular file, and nothing else that may have taken its place. Raises OSError."""
    number = os.open(file, _FLAGS)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "no longer a regular file", str(file))
    return os.fdopen(number, "rb")


def _modified(found: os.stat_result) -> int:
    try:
        return int(dates.from_epoch(str(int(found.st_mtime))))
    except DateError:
        return NONE  # behind the year 9999
