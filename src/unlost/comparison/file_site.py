"""Sites stored as plain files: folders as wget or a web server has them, exports, and ZIP and tar files.

Nothing is unpacked into the file system by its name, and links are not followed.
"""

import base64
import errno
import gzip
import hashlib
import io
import os
import re
import stat
import tarfile
import tempfile
import weakref
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, BinaryIO, Protocol, cast
from urllib.parse import quote, urlsplit

from unlost import dates
from unlost.comparison.site import (
    NO_DATE,
    SNIFF_BYTES,
    ResourceBody,
    ResourceTable,
    SiteResource,
    SiteResources,
    guess_media_type,
    is_archive_name,
)
from unlost.errors import DateError, InputError, UriError, UsageError
from unlost.export.manifest import MANIFEST_NAME, read_manifest
from unlost.problems import Problem, Problems
from unlost.uri.names import page_name

# What may stand in the path and query of an address as it is; `%` is looked at by itself.
_URL_SAFE = "/?&=+:@!$'()*,;~-._[]"
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST = re.compile(r"(?:[\w-]+\.)+[\w-]+(?:[:+][0-9]{1,5})?|localhost(?:[:+][0-9]{1,5})?|\[[0-9A-Fa-f:.]+\]")
_LAST_LABEL = re.compile(r"\.(?!\d+(?:[:+]|$))[\w-]{2,}(?:[:+]\d+)?$")
_IPV4 = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}(?:[:+]\d+)?")


def is_host_name(name: str) -> bool:
    """Return whether the name of a folder is that of a host, perhaps with a port, as wget writes it.

    >>> [is_host_name(name) for name in ("www.example.com", "localhost:8080", "127.0.0.1+8080", "css", "v1.0", ".git")]
    [True, True, True, False, False, False]
    """
    if not _HOST.fullmatch(name):
        return False
    return name.startswith(("localhost", "[")) or bool(_IPV4.fullmatch(name)) or bool(_LAST_LABEL.search(name))


def parse_base_url(text: str) -> str:
    """Return the address of a folder, which ends in a slash, of what somebody gave. Raises UsageError.

    >>> parse_base_url("example.com/a?x"), parse_base_url("https://example.com")
    ('http://example.com/a/', 'https://example.com/')
    """
    try:
        page_name(text)
    except UriError as error:
        raise UsageError(f"--base {ascii(text)[1:-1][:100]}: expected the address of a website: {error}") from None
    parts = urlsplit(text if "://" in text else f"http://{text}")
    path = parts.path if parts.path.endswith("/") else f"{parts.path}/"
    return f"{parts.scheme}://{parts.netloc}{path}"


def url_of_path(path: str, base: str | None) -> str:
    """Return the address of a file, by its path with slashes below the folder of a site.

    base: the address of that folder; None if the first part of the path is the host.

    >>> url_of_path("www.example.com/a b.php?x=1&y=é%2f", None)
    'http://www.example.com/a%20b.php?x=1&y=%C3%A9%2f'
    >>> url_of_path("100%#1.html", "http://example.com/~me/")
    'http://example.com/~me/100%25%231.html'
    """
    if base is not None:
        return base + _escape_path(path)
    host, _, rest = path.partition("/")
    return f"http://{host.replace('+', ':')}/{_escape_path(rest)}"


def _escape_path(path: str) -> str:
    return quote(_LONE_PERCENT.sub("%25", path), safe=_URL_SAFE + "%")


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


_EXPAND_CHUNK_BYTES = 1 << 20
_MAX_EXPANDED_BYTES = 64 << 30  # of a tar file without its compression, on the disk of temporary files
_DAMAGE_ERRORS = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, NotImplementedError, RuntimeError)


class PackageFiles(Protocol):
    """The files of a package; a `SiteFiles`."""

    def names(self) -> list[str]:
        """Return the paths of its regular files, in their order."""
        ...

    def walk(self, reading: FileSiteReader) -> Iterator[tuple[str, int]]:
        """Yield the regular files, and when each was changed."""
        ...

    def open(self, path: str) -> BinaryIO:
        """Open a file. Raises OSError, InputError."""
        ...


def read_package(
    path: Path,
    *,
    base: str | None = None,
    ignore_case: bool = False,
    on_read: Callable[[int], object] | None = None,
) -> FileSite:
    """Return the site in a zip or tar file, gzipped or not.

    base: the URL of its top; not needed with a manifest, or if the folders in it are named after hosts. Raises
    UsageError if it is missing, InputError for a package that is damaged or has no files, OSError.
    """
    try:
        package: PackageFiles = _ZipFiles(path) if zipfile.is_zipfile(path) else _TarFiles(path)
        names = package.names()
        manifest = None
        if base is None and MANIFEST_NAME in names:
            with package.open(MANIFEST_NAME) as opened:
                manifest = ExportManifestIndex(f"{path}/{MANIFEST_NAME}", opened)
        elif base is None and not all(is_host_name(name.partition("/")[0]) and "/" in name for name in names):
            found = next((name for name in names if not is_host_name(name.partition("/")[0])), "files at its top")
            message = f"expected an export with a manifest, or folders named after hosts, found {ascii(found)[:60]}"
            raise UsageError(f"{path}: {message}: give --base with the URL that the top folder had")
        return read_file_site(
            package, str(path), base=base, manifest=manifest, ignore_case=ignore_case, on_read=on_read
        )
    except _DAMAGE_ERRORS as error:
        raise InputError(f"{path}: damaged: {error!s:.100}") from error


def has_manifest(path: Path) -> bool:
    """Return whether a zip or tar file is an export with a manifest; False for one that cannot be read."""
    try:
        package: PackageFiles = _ZipFiles(path) if zipfile.is_zipfile(path) else _TarFiles(path)
    except (*_DAMAGE_ERRORS, InputError):
        return False
    return MANIFEST_NAME in package.names()


class _ZipFiles:
    """The files in a zip file. The names of two files may be the same: the last one counts."""

    def __init__(self, path: Path) -> None:
        self._archive = zipfile.ZipFile(path)
        self._members = {
            _strip_dot_slash(each.filename): each for each in self._archive.infolist() if not each.is_dir()
        }

    def names(self) -> list[str]:
        """Return the paths of its files."""
        return list(self._members)

    def walk(self, reading: FileSiteReader) -> Iterator[tuple[str, int]]:
        """Yield its files."""
        for name, member in self._members.items():
            if (member.external_attr >> 28) not in (0, 8):  # the type of the file, where Unix has it
                reading.skipped["link"] += 1
                continue
            try:
                moment = datetime(*member.date_time, tzinfo=UTC).timestamp()
            except ValueError:
                yield name, NO_DATE
            else:
                yield name, date_number(moment)

    def open(self, path: str) -> BinaryIO:
        """Open a file. Raises InputError for one that is damaged or encrypted."""
        try:
            return cast("BinaryIO", _CheckedFile(self._archive.open(self._members[path]), path))
        except _DAMAGE_ERRORS as error:
            raise InputError(f"{path}: {error!s:.100}") from error


class _CheckedFile(io.RawIOBase):
    """A file in a package, whose damage is an InputError."""

    def __init__(self, inner: IO[bytes], path: str) -> None:
        self._inner = inner
        self._path = path

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return some bytes; none at the end."""
        try:
            return self._inner.read(size)
        except _DAMAGE_ERRORS as error:
            raise InputError(f"{self._path}: {error!s:.100}") from error

    def close(self) -> None:
        """Close it."""
        self._inner.close()
        super().close()


class _TarFiles:
    """The files in a tar file; a compressed one is expanded into a temporary file once."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as opened:
            is_compressed = opened.read(2) == b"\x1f\x8b"
        self._file = _expand_gzip(path) if is_compressed else cast("BinaryIO", path.open("rb"))
        weakref.finalize(self, self._file.close)
        self._file.seek(0)
        self._members: dict[str, tarfile.TarInfo] = {}
        self._others = 0
        with tarfile.open(fileobj=self._file, mode="r:") as archive:
            for member in archive:
                if member.isreg():
                    self._members[_strip_dot_slash(member.name)] = member
                elif not member.isdir():
                    self._others += 1

    def names(self) -> list[str]:
        """Return the paths of its files."""
        return list(self._members)

    def walk(self, reading: FileSiteReader) -> Iterator[tuple[str, int]]:
        """Yield its files."""
        if self._others:
            reading.skipped["link"] += self._others
        for name, member in self._members.items():
            yield name, date_number(member.mtime)

    def open(self, path: str) -> BinaryIO:
        """Open a file. Several may be open at once, in several threads."""
        member = self._members[path]
        return io.BufferedReader(_FileSection(self._file.fileno(), member.offset_data, member.size))


class _FileSection(io.RawIOBase):
    """A part of a file, which is read without moving in it."""

    def __init__(self, number: int, start: int, size: int) -> None:
        self._number = number
        self._at = start
        self._end = start + size

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override]
        """Read as many bytes as there are, and there is room for."""
        data = os.pread(self._number, min(len(buffer), self._end - self._at), self._at)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def _expand_gzip(path: Path) -> BinaryIO:
    """Return what is in a gzipped file, as a temporary one. Raises InputError if it is damaged or too large."""
    expanded = tempfile.TemporaryFile()  # noqa: SIM115  it goes with its last reference
    try:
        with gzip.open(path) as packed:
            while data := packed.read(_EXPAND_CHUNK_BYTES):
                expanded.write(data)
                if expanded.tell() > _MAX_EXPANDED_BYTES:
                    limit = f"{_MAX_EXPANDED_BYTES >> 30} GB"
                    raise InputError(f"{path}: more than {limit} without its compression: unpack it first")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: damaged: {error!s:.100}") from error
    expanded.flush()
    return expanded


def _strip_dot_slash(name: str) -> str:
    """Return a path without the `./` that some programs write before it."""
    return name.removeprefix("./")
