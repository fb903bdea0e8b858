"""A site in a folder, as a crawler such as wget lays it out, or as it lay on its server."""

import base64
import errno
import hashlib
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Protocol

from unlost import dates
from unlost.errors import DateError, InputError, UriError, UsageError
from unlost.formats.problems import Problem, Problems
from unlost.measure.resource import NO_DATE, ResourceBody, SiteResource, SiteResources
from unlost.measure.sites.file_types import SNIFF_BYTES, guess_media_type
from unlost.measure.sites.folder_addresses import url_of_path, parse_base_url, is_host_name
from unlost.measure.sites.kinds import is_archive_name
from unlost.measure.sites.table import ResourceTable
from unlost.recover.export.manifest import MANIFEST_NAME, read_manifest
from unlost.uri.naming import page_name

_CHUNK_BYTES = 1 << 18
# Not waiting for whoever would write into a pipe, and not led elsewhere by a link that was put in a file's place.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# What HTTrack leaves beside the hosts: itself, and pages of its own.
_HTTRACK = "hts-cache"


class SiteFiles(Protocol):
    """The files of a site, in a folder or a package."""

    def walk(self, reading: "FileSiteReader") -> Iterator[tuple[str, int]]:
        """Yield regular files by their paths with slashes, and when each was changed (14 digits, or `NONE`).

        What is no regular file, or cannot be read, is reported to `reading`. Raises OSError, InputError.
        """
        ...

    def open(self, path: str) -> BinaryIO:
        """Open a file. Raises OSError, InputError."""
        ...


class FileSite:
    """A site that was read from files: a `Site`."""

    listed: frozenset[str] = frozenset()
    requests: int | None = None

    def __init__(self, source: SiteFiles, reading: "FileSiteReader") -> None:
        """Take what was read from a source of files."""
        self.resources: SiteResources = reading.table
        self.skipped: Mapping[str, int] = dict(reading.skipped)
        self.problems = reading.problems
        self._source = source
        self._table = reading.table
        self._files = reading.files

    def read_body(self, resource: SiteResource, max_bytes: int) -> ResourceBody:
        """Return the body of one of its resources, at most so many bytes. Raises InputError, OSError."""
        file = self._files[self._table.locate(resource.place)[0]]
        try:
            with self._source.open(file) as opened:
                content = opened.read(max_bytes + 1)
        except FileNotFoundError as error:
            raise InputError(f"{error.filename or file}: it has vanished meanwhile") from None
        return ResourceBody(content[:max_bytes], None, len(content) > max_bytes)


def read_folder(
    root: Path,
    *,
    base: str | None = None,
    ignore_case: bool = False,
    on_read: Callable[[int], object] | None = None,
) -> FileSite:
    """Return the site in a folder. Links are not followed.

    base: the address of the folder; without it, the names of the folders in it are those of hosts. Raises UsageError if
    they are not, InputError if there are no files, OSError if the folder itself cannot be read. A folder that `unlost
    export` wrote has a manifest with the URL of each file, and needs no base.
    """
    source = _FolderFiles(root)
    manifest = None
    if base is None and (root / MANIFEST_NAME).is_file():
        with _open_regular_file(root / MANIFEST_NAME) as opened:
            manifest = ExportManifestIndex(str(root / MANIFEST_NAME), opened)
    elif base is None:
        source.skipped = _names_beside_hosts(root)
    return read_file_site(source, str(root), base=base, manifest=manifest, ignore_case=ignore_case, on_read=on_read)


def read_file_site(
    source: SiteFiles,
    name: str,
    *,
    base: str | None,
    manifest: "ExportManifestIndex | None",
    ignore_case: bool,
    on_read: Callable[[int], object] | None,
) -> FileSite:
    """Return the site that files are. name: of the folder or package, for messages. Raises as `read_folder` does."""
    address = None if base is None else parse_base_url(base)
    reading = FileSiteReader(source, name, address, manifest, on_read or (lambda _: None), ignore_case=ignore_case)
    for path, changed in source.walk(reading):
        reading.read_file(path, changed)
    if not reading.files and not reading.skipped and not reading.problems.total:
        raise InputError(f"{name}: no files in it")
    return FileSite(source, reading)


class ExportManifestIndex:
    """What the manifest of an export says, by the paths of files. Raises InputError for what is no manifest."""

    def __init__(self, name: str, lines: Iterable[bytes]) -> None:
        self.header, entries = read_manifest(name, lines)
        self._entries = {entry.path: entry for entry in entries}

    def url_of(self, path: str) -> str:
        """Return the URL of a file; of one that was added to the export, by its path. Raises UriError."""
        entry = self._entries.get(path)
        return url_of_path(path, self.header.base) if entry is None else entry.url

    def is_site_file(self, path: str) -> bool:
        """Return whether a file belongs to the site: not the manifest, nor files for web servers."""
        return path != MANIFEST_NAME and path not in self.header.hosting

    def match_capture(self, path: str, digest: bytes, size: int) -> tuple[bytes, int, int]:
        """Return digest, size and date of the capture that became a file; its own, without a date, if it was changed.

        digest, size: of the file. Links that were rewritten do not count as a change of the capture.
        """
        entry = self._entries.get(path)
        if entry is None or entry.file_size != size or _decode_sha1(entry.file_digest) != digest:
            return digest, size, NO_DATE
        moment = int(entry.datetime) if entry.datetime.isdigit() and len(entry.datetime) == 14 else NO_DATE
        return _decode_sha1(entry.digest), entry.size, moment

    def mime(self, path: str) -> str | None:
        """Return the media type of a file; None if the manifest does not tell."""
        entry = self._entries.get(path)
        return None if entry is None else entry.mime


def _decode_sha1(digest: str) -> bytes:
    try:
        return base64.b32decode(digest.removeprefix("sha1:"))
    except ValueError:
        return b""


class FileSiteReader:
    """Reads the files of a site into a table."""

    def __init__(
        self,
        source: SiteFiles,
        name: str,
        base: str | None,
        manifest: ExportManifestIndex | None,
        on_read: Callable[[int], object],
        *,
        ignore_case: bool,
    ) -> None:
        self.table = ResourceTable()
        self.files: list[str] = []
        self.skipped: Counter[str] = Counter()
        self.problems = Problems()
        self._source = source
        self._name = name
        self._base = base
        self._manifest = manifest
        self._ignore_case = ignore_case
        self._on_read = on_read
        self._bytes = 0

    def read_file(self, path: str, modified: int) -> None:
        """Read one file. changed: when it was, 14 digits, or `NONE`."""
        manifest = self._manifest
        if manifest is not None and not manifest.is_site_file(path):
            if path != MANIFEST_NAME:
                self.skipped["server-file"] += 1
            return
        try:
            path.encode()
        except UnicodeEncodeError:
            self.report("bad-name", path, "expected a name in UTF-8, found other bytes: rename it")
            self.skipped["no-address"] += 1
            return
        try:
            uri = url_of_path(path, self._base) if manifest is None else manifest.url_of(path)
            name = page_name(uri, ignore_case=self._ignore_case)
        except UriError as error:
            self.report("bad-uri", path, str(error))
            self.skipped["no-address"] += 1
            return
        try:
            digest, size, head = self._digest(path)
        except (OSError, InputError) as error:
            self.report("unreadable", path, getattr(error, "strerror", None) or str(error))
            self.skipped["unreadable"] += 1
            return
        mime, moment = guess_media_type(path, head), NO_DATE
        if manifest is not None:
            mime = manifest.mime(path) or mime
            digest, size, moment = manifest.match_capture(path, digest, size)
        # Of two files with one name, the one that was changed last counts.
        self.table.add(name, uri, moment, modified, mime, digest, size, None, (len(self.files), 0, 0))
        self.files.append(path)

    def _digest(self, path: str) -> tuple[bytes, int, bytes]:
        """Return the SHA-1 of a file, how many bytes it has, and the first of them. Raises OSError, InputError."""
        hashed, size, head = hashlib.sha1(usedforsecurity=False), 0, b""
        with self._source.open(path) as opened:
            while piece := opened.read(_CHUNK_BYTES):
                head = head or piece[:SNIFF_BYTES]
                hashed.update(piece)
                size += len(piece)
                self._bytes += len(piece)
                self._on_read(self._bytes)  # piece by piece: one file may be as large as all others together
        return hashed.digest(), size, head

    def report(self, kind: str, path: str, message: str) -> None:
        """Add a problem with a file."""
        self.problems.add(Problem(kind, f"{self._name}/{path}" if path else self._name, None, 0, message))


class _FolderFiles:
    """The files in a folder. skipped: names at its top that are no part of the site."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.skipped: frozenset[str] = frozenset()

    def walk(self, reading: FileSiteReader) -> Iterator[tuple[str, int]]:
        """Yield the regular files, in the order of their names. Raises OSError."""
        with os.scandir(self._root):
            pass  # a root that may not be listed is an error; a folder in it is a problem
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            folders = []
            for name in self._list_folder(folder, reading):
                path = f"{folder}{name}"
                if not folder and name in self.skipped:
                    reading.skipped["beside-hosts"] += 1
                    continue
                try:
                    found = os.lstat(self._root / path)
                except OSError as error:
                    reading.report("unreadable", path, error.strerror or str(error))
                    continue
                if stat.S_ISDIR(found.st_mode):
                    folders.append(f"{path}/")
                elif stat.S_ISREG(found.st_mode):
                    yield path, date_number(found.st_mtime)
                else:
                    reading.skipped["link" if stat.S_ISLNK(found.st_mode) else "special-file"] += 1
            waiting += reversed(folders)

    def _list_folder(self, folder: str, reading: FileSiteReader) -> list[str]:
        try:
            return sorted(os.listdir(self._root / folder))  # noqa: PTH208  names, and no more objects than needed
        except OSError as error:
            reading.report("unreadable", folder, error.strerror or str(error))
            return []

    def open(self, path: str) -> BinaryIO:
        """Open a regular file. Raises OSError."""
        return _open_regular_file(self._root / path)


def _names_beside_hosts(root: Path) -> frozenset[str]:
    """Return what is beside the folders of hosts, and is none. Raises UsageError if these are no folders of hosts."""
    hosts: list[str] = []
    others: list[str] = []
    for entry in sorted(os.scandir(root), key=lambda entry: entry.name):
        is_folder = entry.is_dir(follow_symlinks=False)
        (hosts if is_folder and is_host_name(entry.name) else others).append(entry.name)
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


def _open_regular_file(file: Path) -> BinaryIO:
    """Open a regular file, and nothing else that may have taken its place. Raises OSError."""
    number = os.open(file, _FLAGS)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "no longer a regular file", str(file))
    return os.fdopen(number, "rb")


def date_number(seconds: float) -> int:
    """Return seconds since 1970 as a number of 14 digits; `NONE` after the year 9999."""
    try:
        return int(dates.from_epoch(str(int(seconds))))
    except DateError:
        return NO_DATE
