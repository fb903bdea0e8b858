"""A site in a zip or tar file, such as `unlost export` writes. Nothing is unpacked into the file system by its name."""

import gzip
import io
import os
import tarfile
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, BinaryIO, Protocol, cast

from unlost.errors import InputError, UsageError
from unlost.measure.resource import NO_DATE
from unlost.measure.sites.folder_addresses import is_host_name
from unlost.measure.sites.folder_site import FileSite, ExportManifestIndex, FileSiteReader, date_number, read_file_site
from unlost.recover.export.manifest import MANIFEST_NAME

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
