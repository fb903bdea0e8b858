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
from unlost.measure.resource import NONE
from unlost.measure.sites.folder_addresses import is_host
from unlost.measure.sites.folder_site import FolderSite, Manifest, SiteReading, modified_at, read_files
from unlost.recover.export.manifest import MANIFEST

_PIECE = 1 << 20
_MAX_BYTES = 64 << 30  # of a tar file without its compression, on the disk of temporary files
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, NotImplementedError, RuntimeError)


class Package(Protocol):
    """The files of a package; a `SiteFiles`."""

    def names(self) -> list[str]:
        """Return the paths of its regular files, in their order."""
        ...

    def walk(self, reading: SiteReading) -> Iterator[tuple[str, int]]:
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
) -> FolderSite:
    """Return the site in a zip or tar file, gzipped or not.

    base: the URL of its top; not needed with a manifest, or if the folders in it are named after hosts. Raises
    UsageError if it is missing, InputError for a package that is damaged or has no files, OSError.
    """
    try:
        package: Package = _Zip(path) if zipfile.is_zipfile(path) else _Tar(path)
        names = package.names()
        manifest = None
        if base is None and MANIFEST in names:
            with package.open(MANIFEST) as opened:
                manifest = Manifest(f"{path}/{MANIFEST}", opened)
        elif base is None and not all(is_host(name.partition("/")[0]) and "/" in name for name in names):
            found = next((name for name in names if not is_host(name.partition("/")[0])), "files at its top")
            message = f"expected an export with a manifest, or folders named after hosts, found {ascii(found)[:60]}"
            raise UsageError(f"{path}: {message}: give --base with the URL that the top folder had")
        return read_files(package, str(path), base=base, manifest=manifest, ignore_case=ignore_case, on_read=on_read)
    except _DAMAGED as error:
        raise InputError(f"{path}: damaged: {error!s:.100}") from error


def has_manifest(path: Path) -> bool:
    """Return whether a zip or tar file is an export with a manifest; False for one that cannot be read."""
    try:
        package: Package = _Zip(path) if zipfile.is_zipfile(path) else _Tar(path)
    except (*_DAMAGED, InputError):
        return False
    return MANIFEST in package.names()


class _Zip:
    """The files in a zip file. The names of two files may be the same: the last one counts."""

    def __init__(self, path: Path) -> None:
        self._archive = zipfile.ZipFile(path)
        self._members = {_plain(each.filename): each for each in self._archive.infolist() if not each.is_dir()}

    def names(self) -> list[str]:
        """Return the paths of its files."""
        return list(self._members)

    def walk(self, reading: SiteReading) -> Iterator[tuple[str, int]]:
        """Yield its files."""
        for name, member in self._members.items():
            if (member.external_attr >> 28) not in (0, 8):  # the type of the file, where Unix has it
                reading.left_out["link"] += 1
                continue
            try:
                moment = datetime(*member.date_time, tzinfo=UTC).timestamp()
            except ValueError:
                yield name, NONE
            else:
                yield name, modified_at(moment)

    def open(self, path: str) -> BinaryIO:
        """Open a file. Raises InputError for one that is damaged or encrypted."""
        try:
            return cast("BinaryIO", _Checked(self._archive.open(self._members[path]), path))
        except _DAMAGED as error:
            raise InputError(f"{path}: {error!s:.100}") from error


class _Checked(io.RawIOBase):
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
        except _DAMAGED as error:
            raise InputError(f"{self._path}: {error!s:.100}") from error

    def close(self) -> None:
        """Close it."""
        self._inner.close()
        super().close()


class _Tar:
    """The files in a tar file; a compressed one is expanded into a temporary file once."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as opened:
            is_compressed = opened.read(2) == b"\x1f\x8b"
        self._file = _expanded(path) if is_compressed else cast("BinaryIO", path.open("rb"))
        weakref.finalize(self, self._file.close)
        self._file.seek(0)
        self._members: dict[str, tarfile.TarInfo] = {}
        self._others = 0
        with tarfile.open(fileobj=self._file, mode="r:") as archive:
            for member in archive:
                if member.isreg():
                    self._members[_plain(member.name)] = member
                elif not member.isdir():
                    self._others += 1

    def names(self) -> list[str]:
        """Return the paths of its files."""
        return list(self._members)

    def walk(self, reading: SiteReading) -> Iterator[tuple[str, int]]:
        """Yield its files."""
        if self._others:
            reading.left_out["link"] += self._others
        for name, member in self._members.items():
            yield name, modified_at(member.mtime)

    def open(self, path: str) -> BinaryIO:
        """Open a file. Several may be open at once, in several threads."""
        member = self._members[path]
        return io.BufferedReader(_Section(self._file.fileno(), member.offset_data, member.size))


class _Section(io.RawIOBase):
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


def _expanded(path: Path) -> BinaryIO:
    """Return what is in a gzipped file, as a temporary one. Raises InputError if it is damaged or too large."""
    expanded = tempfile.TemporaryFile()  # noqa: SIM115  it goes with its last reference
    try:
        with gzip.open(path) as packed:
            while data := packed.read(_PIECE):
                expanded.write(data)
                if expanded.tell() > _MAX_BYTES:
                    limit = f"{_MAX_BYTES >> 30} GB"
                    raise InputError(f"{path}: more than {limit} without its compression: unpack it first")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: damaged: {error!s:.100}") from error
    expanded.flush()
    return expanded


def _plain(name: str) -> str:
    """Return a path without the `./` that some programs write before it."""
    return name.removeprefix("./")
