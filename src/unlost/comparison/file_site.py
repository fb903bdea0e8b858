"""Sites stored as plain files: mirrors of wget or a web server, exports, and ZIP and tar files.

Files are not extracted to paths given by their names, and symbolic links are not followed.
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
from contextlib import ExitStack
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

# Characters that are not escaped in path and query of a URL; `%` is handled separately.
_URL_SAFE = "/?&=+:@!$'()*,;~-._[]"
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST = re.compile(r"(?:[\w-]+\.)+[\w-]+(?:[:+][0-9]{1,5})?|localhost(?:[:+][0-9]{1,5})?|\[[0-9A-Fa-f:.]+\]")
_LAST_LABEL = re.compile(r"\.(?!\d+(?:[:+]|$))[\w-]{2,}(?:[:+]\d+)?$")
_IPV4 = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}(?:[:+]\d+)?")


def is_host_name(name: str) -> bool:
    """Return whether a directory name is a host name, optionally with a port, as wget writes it.

    >>> [is_host_name(name) for name in ("www.example.com", "localhost:8080", "127.0.0.1+8080", "css", "v1.0", ".git")]
    [True, True, True, False, False, False]
    """
    if not _HOST.fullmatch(name):
        return False
    return name.startswith(("localhost", "[")) or bool(_IPV4.fullmatch(name)) or bool(_LAST_LABEL.search(name))


def parse_base_url(text: str) -> str:
    """Return the URL of a directory, with a final slash, for the value of `--base`. Raises UsageError.

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
    """Return the URL of a file.

    Args:
        path: Path of the file relative to the root of the site, with slashes.
        base: URL of the root; None if the first component of the path is the host.

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
# O_NONBLOCK: open() must not wait for the writer of a pipe. O_NOFOLLOW: the file may have been replaced by a link.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# The cache directory of HTTrack, which also writes pages of its own next to the directories of hosts.
_HTTRACK = "hts-cache"


class SiteFiles(Protocol):
    """The files of a site, in a directory or a package."""

    def walk(self, reader: "FileSiteReader") -> Iterator[tuple[str, int]]:
        """Yield the paths of regular files, with slashes, and their modification dates (14 digits, or `NO_DATE`).

        Other files, and unreadable ones, are reported to `reader`. Raises OSError, InputError.
        """
        ...

    def open(self, path: str) -> BinaryIO:
        """Open a file. Raises OSError, InputError."""
        ...


class FileSite:
    """A site that was read from files; a `Site`."""

    listed: frozenset[str] = frozenset()
    requests: int | None = None

    def __init__(self, source: SiteFiles, reader: "FileSiteReader") -> None:
        """Create a site from a finished reader."""
        self.resources: SiteResources = reader.table
        self.skipped: Mapping[str, int] = dict(reader.skipped)
        self.problems = reader.problems
        self._source = source
        self._table = reader.table
        self._files = reader.files

    def read_body(self, resource: SiteResource, max_bytes: int) -> ResourceBody:
        """Return at most `max_bytes` of the body of a resource. Raises InputError, OSError."""
        file = self._files[self._table.locate(resource.location)[0]]
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
    """Read the site in a directory. Symbolic links are not followed.

    A directory that `unlost export` has written has a manifest with the URL of each file, and needs no base.

    Args:
        root: The directory.
        base: URL of the directory; without it, its subdirectories must be named after hosts.
        ignore_case: Whether resource names are case-insensitive.
        on_read: Called with the number of bytes read so far.

    Raises:
        UsageError: `base` is required.
        InputError: The directory has no files.
        OSError: The directory cannot be read.
    """
    source = _FolderFiles(root)
    manifest = None
    if base is None and (root / MANIFEST_NAME).is_file():
        with _open_regular_file(root / MANIFEST_NAME) as opened:
            manifest = ExportManifestIndex(str(root / MANIFEST_NAME), opened)
    elif base is None:
        source.skipped = _names_next_to_hosts(root)
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
    """Read the site that consists of these files.

    Args:
        source: The files.
        name: The directory or package, for messages.
        base: As for `read_folder`.
        manifest: The manifest of an export; None without one.
        ignore_case: As for `read_folder`.
        on_read: As for `read_folder`.

    Raises:
        UsageError, InputError, OSError: As `read_folder`.
    """
    base_url = None if base is None else parse_base_url(base)
    reader = FileSiteReader(source, name, base_url, manifest, on_read or (lambda _: None), ignore_case=ignore_case)
    for path, modified in source.walk(reader):
        reader.read_file(path, modified)
    if not reader.files and not reader.skipped and not reader.problems.total:
        raise InputError(f"{name}: no files in it")
    return FileSite(source, reader)


class ExportManifestIndex:
    """The manifest of an export, indexed by path. Raises InputError for an invalid manifest."""

    def __init__(self, name: str, lines: Iterable[bytes]) -> None:
        self.header, entries = read_manifest(name, lines)
        self._entries = {entry.path: entry for entry in entries}

    def url_of(self, path: str) -> str:
        """Return the URL of a file; for a file added after the export, it is derived from the path. Raises UriError."""
        entry = self._entries.get(path)
        return url_of_path(path, self.header.base) if entry is None else entry.url

    def is_site_file(self, path: str) -> bool:
        """Return whether a file belongs to the site: neither the manifest nor a configuration file for web servers."""
        return path != MANIFEST_NAME and path not in self.header.hosting

    def match_capture(self, path: str, digest: bytes, size: int) -> tuple[bytes, int, int]:
        """Return digest, size and date of the capture that a file was exported from.

        Rewritten links do not count as a change. If the file was changed after the export, its own digest and size are
        returned, without a date.
        """
        entry = self._entries.get(path)
        if entry is None or entry.file_size != size or _decode_sha1(entry.file_digest) != digest:
            return digest, size, NO_DATE
        date = int(entry.datetime) if entry.datetime.isdigit() and len(entry.datetime) == 14 else NO_DATE
        return _decode_sha1(entry.digest), entry.size, date

    def mime(self, path: str) -> str | None:
        """Return the media type of a file; None if the manifest has none."""
        entry = self._entries.get(path)
        return None if entry is None else entry.mime


def _decode_sha1(digest: str) -> bytes:
    try:
        return base64.b32decode(digest.removeprefix("sha1:"))
    except ValueError:
        return b""


class FileSiteReader:
    """Reads the files of a site into a `ResourceTable`."""

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
        """Read one file.

        Args:
            path: Its path, with slashes.
            modified: Its modification date, 14 digits or `NO_DATE`.
        """
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
        mime, date = guess_media_type(path, head), NO_DATE
        if manifest is not None:
            mime = manifest.mime(path) or mime
            digest, size, date = manifest.match_capture(path, digest, size)
        # Of two files with the same name, the one that was modified last counts.
        self.table.add(name, uri, date, modified, mime, digest, size, None, (len(self.files), 0, 0))
        self.files.append(path)

    def _digest(self, path: str) -> tuple[bytes, int, bytes]:
        """Return the SHA-1 of a file, its size, and its first bytes. Raises OSError, InputError."""
        sha1, size, head = hashlib.sha1(usedforsecurity=False), 0, b""
        with self._source.open(path) as opened:
            while chunk := opened.read(_CHUNK_BYTES):
                head = head or chunk[:SNIFF_BYTES]
                sha1.update(chunk)
                size += len(chunk)
                self._bytes += len(chunk)
                self._on_read(self._bytes)  # after each chunk, since files may be large
        return sha1.digest(), size, head

    def report(self, kind: str, path: str, message: str) -> None:
        """Add a problem with a file."""
        self.problems.add(Problem(kind, f"{self._name}/{path}" if path else self._name, None, 0, message))


class _FolderFiles:
    """The files in a directory.

    Attributes:
        skipped: Names at its top that do not belong to the site.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self.skipped: frozenset[str] = frozenset()

    def walk(self, reader: FileSiteReader) -> Iterator[tuple[str, int]]:
        """Yield the regular files in the order of their names. Raises OSError."""
        with os.scandir(self._root):
            pass  # an unreadable root is an error, an unreadable subdirectory is a problem
        pending = [""]
        while pending:
            folder = pending.pop()
            folders = []
            for name in self._list_folder(folder, reader):
                path = f"{folder}{name}"
                if not folder and name in self.skipped:
                    reader.skipped["beside-hosts"] += 1
                    continue
                try:
                    status = os.lstat(self._root / path)
                except OSError as error:
                    reader.report("unreadable", path, error.strerror or str(error))
                    continue
                if stat.S_ISDIR(status.st_mode):
                    folders.append(f"{path}/")
                elif stat.S_ISREG(status.st_mode):
                    yield path, date_number(status.st_mtime)
                else:
                    reader.skipped["link" if stat.S_ISLNK(status.st_mode) else "special-file"] += 1
            pending += reversed(folders)

    def _list_folder(self, folder: str, reader: FileSiteReader) -> list[str]:
        try:
            return sorted(os.listdir(self._root / folder))  # noqa: PTH208  only names, without an object for each
        except OSError as error:
            reader.report("unreadable", folder, error.strerror or str(error))
            return []

    def open(self, path: str) -> BinaryIO:
        """Open a regular file. Raises OSError."""
        return _open_regular_file(self._root / path)


def _names_next_to_hosts(root: Path) -> frozenset[str]:
    """Return the names next to the directories of hosts.

    Raises UsageError if the directories are not named after hosts.
    """
    hosts: list[str] = []
    others: list[str] = []
    for entry in sorted(os.scandir(root), key=lambda entry: entry.name):
        is_folder = entry.is_dir(follow_symlinks=False)
        (hosts if is_folder and is_host_name(entry.name) else others).append(entry.name)
    unexpected = (
        []
        if _HTTRACK in others
        else [name for name in others if not name.startswith(".") and not name.endswith(".log")]
    )
    archives = [name for name in unexpected if is_archive_name(name)]
    if archives and not hosts:
        is_link = (root / archives[0]).is_symlink()
        other_name = next((name for name in unexpected if name not in archives), None)
        reason = "a link" if is_link or other_name is None else f"beside {ascii(other_name)[:60]}"
        message = f"expected archive files and nothing else, or a site, found {ascii(archives[0])[:60]}, {reason}"
        raise UsageError(f"{root}: {message}: name the archive file itself, or give --base if it is a part of the site")
    if unexpected or not hosts:
        found = ascii(unexpected[0])[:60] if unexpected else "none"
        message = f"expected folders named after hosts, as wget makes them, found {found}"
        raise UsageError(f"{root}: {message}: give --base with the address that the folder had")
    return frozenset(others)


def _open_regular_file(file: Path) -> BinaryIO:
    """Open a file if it is still a regular file. Raises OSError."""
    descriptor = os.open(file, _FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "no longer a regular file", str(file))
    return os.fdopen(descriptor, "rb")


def date_number(seconds: float) -> int:
    """Convert seconds since 1970 to a number of 14 digits; `NO_DATE` after the year 9999."""
    try:
        return int(dates.from_epoch(str(int(seconds))))
    except DateError:
        return NO_DATE


_EXPAND_CHUNK_BYTES = 1 << 20
_MAX_EXPANDED_BYTES = 64 << 30  # limit of a decompressed tar file, in the directory for temporary files
_DAMAGE_ERRORS = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, NotImplementedError, RuntimeError)


class PackageFiles(Protocol):
    """The files of a package; a `SiteFiles`."""

    def names(self) -> list[str]:
        """Return the paths of the regular files in order."""
        ...

    def walk(self, reading: FileSiteReader) -> Iterator[tuple[str, int]]:
        """Yield the paths of regular files and their modification dates."""
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
    """Read the site in a ZIP or tar file, gzipped or not.

    Args:
        path: The file.
        base: URL of its root; not needed with a manifest, or if its directories are named after hosts.
        ignore_case: Whether resource names are case-insensitive.
        on_read: Called with the number of bytes read so far.

    Raises:
        UsageError: `base` is required.
        InputError: The package is damaged, or has no files.
        OSError: The file cannot be read.
    """
    try:
        package: PackageFiles = _ZipFiles(path) if zipfile.is_zipfile(path) else _TarFiles(path)
        names = package.names()
        manifest = None
        if base is None and MANIFEST_NAME in names:
            with package.open(MANIFEST_NAME) as opened:
                manifest = ExportManifestIndex(f"{path}/{MANIFEST_NAME}", opened)
        elif base is None and not all(is_host_name(name.partition("/")[0]) and "/" in name for name in names):
            unexpected = next((name for name in names if not is_host_name(name.partition("/")[0])), "files at its top")
            message = (
                f"expected an export with a manifest, or folders named after hosts, found {ascii(unexpected)[:60]}"
            )
            raise UsageError(f"{path}: {message}: give --base with the URL that the top folder had")
        return read_file_site(
            package, str(path), base=base, manifest=manifest, ignore_case=ignore_case, on_read=on_read
        )
    except _DAMAGE_ERRORS as error:
        raise InputError(f"{path}: damaged: {error!s:.100}") from error


def has_manifest(path: Path) -> bool:
    """Return whether a ZIP or tar file is an export with a manifest; False if it cannot be read."""
    try:
        package: PackageFiles = _ZipFiles(path) if zipfile.is_zipfile(path) else _TarFiles(path)
    except (*_DAMAGE_ERRORS, InputError):
        return False
    return MANIFEST_NAME in package.names()


class _ZipFiles:
    """The files in a ZIP file. Of two files with the same name, the last one counts."""

    def __init__(self, path: Path) -> None:
        self._archive = zipfile.ZipFile(path)
        self._members = {
            _strip_dot_slash(each.filename): each for each in self._archive.infolist() if not each.is_dir()
        }

    def names(self) -> list[str]:
        """Return the paths of the files."""
        return list(self._members)

    def walk(self, reader: FileSiteReader) -> Iterator[tuple[str, int]]:
        """Yield the files."""
        for name, member in self._members.items():
            if (member.external_attr >> 28) not in (0, 8):  # the file type bits of the Unix mode
                reader.skipped["link"] += 1
                continue
            try:
                timestamp = datetime(*member.date_time, tzinfo=UTC).timestamp()
            except ValueError:
                yield name, NO_DATE
            else:
                yield name, date_number(timestamp)

    def open(self, path: str) -> BinaryIO:
        """Open a file. Raises InputError if it is damaged or encrypted."""
        try:
            return cast("BinaryIO", _CheckedFile(self._archive.open(self._members[path]), path))
        except _DAMAGE_ERRORS as error:
            raise InputError(f"{path}: {error!s:.100}") from error


class _CheckedFile(io.RawIOBase):
    """A file in a package whose read errors are raised as InputError."""

    def __init__(self, inner: IO[bytes], path: str) -> None:
        self._inner = inner
        self._path = path

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes; empty at the end."""
        try:
            return self._inner.read(size)
        except _DAMAGE_ERRORS as error:
            raise InputError(f"{self._path}: {error!s:.100}") from error

    def close(self) -> None:
        """Close the file."""
        self._inner.close()
        super().close()


class _TarFiles:
    """The files in a tar file. A compressed one is decompressed into a temporary file once."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as opened:
            is_compressed = opened.read(2) == b"\x1f\x8b"
        self._file = _expand_gzip(path) if is_compressed else cast("BinaryIO", path.open("rb"))
        weakref.finalize(self, self._file.close)
        self._file.seek(0)
        self._members: dict[str, tarfile.TarInfo] = {}
        self._skipped_members = 0
        with tarfile.open(fileobj=self._file, mode="r:") as archive:
            for member in archive:
                if member.isreg():
                    self._members[_strip_dot_slash(member.name)] = member
                elif not member.isdir():
                    self._skipped_members += 1

    def names(self) -> list[str]:
        """Return the paths of the files."""
        return list(self._members)

    def walk(self, reader: FileSiteReader) -> Iterator[tuple[str, int]]:
        """Yield the files."""
        if self._skipped_members:
            reader.skipped["link"] += self._skipped_members
        for name, member in self._members.items():
            yield name, date_number(member.mtime)

    def open(self, path: str) -> BinaryIO:
        """Open a file. Several may be open at once, in several threads."""
        member = self._members[path]
        return io.BufferedReader(_FileSection(self._file.fileno(), member.offset_data, member.size))


class _FileSection(io.RawIOBase):
    """A section of a file, read without changing the file's position, so that several threads can read it."""

    def __init__(self, descriptor: int, start: int, size: int) -> None:
        self._descriptor = descriptor
        self._position = start
        self._end = start + size

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override]
        """Read into a buffer."""
        data = os.pread(self._descriptor, min(len(buffer), self._end - self._position), self._position)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def _expand_gzip(path: Path) -> BinaryIO:
    """Decompress a gzip file into a temporary file. Raises InputError if it is damaged or too large."""
    with ExitStack() as on_error:
        expanded = on_error.enter_context(tempfile.TemporaryFile())
        _copy_gzip(path, expanded)
        on_error.pop_all()
    return expanded


def _copy_gzip(path: Path, expanded: BinaryIO) -> None:
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


def _strip_dot_slash(name: str) -> str:
    """Return a path without the `./` that some programs write before it."""
    return name.removeprefix("./")
