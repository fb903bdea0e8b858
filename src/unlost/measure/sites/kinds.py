"""Which kind of site is kept at a place, told by looking at it."""

import os
import stat
import zipfile
import zlib
from enum import Enum
from pathlib import Path

from unlost.errors import InputError
from unlost.formats.unread import unreadable_error
from unlost.recover.export.manifest import MANIFEST_NAME
from unlost.state_file import STATE_FILE_NAME as STATE

WARC_FOLDER = "warc"
"""The folder of a recovery that has its archive files."""

_ARCHIVE_EXTENSIONS = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz", ".arc.zst", ".wacz", ".warc.gz.open")
_HEAD_BYTES = 512  # bytes that tell what a file is
_GZIP = b"\x1f\x8b\x08"
_ZSTD = (b"\x28\xb5\x2f\xfd", b"\x2a\x4d\x18")


class SiteKind(Enum):
    """What a site is kept in."""

    ARCHIVES = "archive files"
    RECOVERY = "a recovery"
    FOLDER = "a folder"
    EXPORT = "an export"
    PACKAGE = "a zip or tar file"


def detect_site_kind(path: Path) -> tuple[SiteKind, list[Path]]:
    """Return what is kept at a place, and if it is that, its archive files in the order of their names.

    Raises InputError for what cannot be read, is none of them, or has nothing in it; OSError for a folder in it.
    """
    try:
        found = path.stat()
    except OSError as error:
        raise unreadable_error(path, error) from error
    if stat.S_ISREG(found.st_mode):
        if not found.st_size:
            raise InputError(f"{path}: an empty file: expected a WARC, an ARC or a WACZ")
        if is_package(path):
            return SiteKind.PACKAGE, []
        if not is_archive(path):
            message = "neither a WARC, an ARC, a WACZ, a zip nor a tar file"
            raise InputError(f"{path}: {message}: give one of these, a folder, or the folder of a recovery")
        return SiteKind.ARCHIVES, [path]
    if not stat.S_ISDIR(found.st_mode):
        raise InputError(f"{path}: neither a file nor a folder: write it to a file first")
    if (path / STATE).is_file() and (path / WARC_FOLDER).is_dir():
        return SiteKind.RECOVERY, []
    if (path / MANIFEST_NAME).is_file():
        return SiteKind.EXPORT, []
    files, has_others = _list_archives(path)
    if not files and not has_others:
        raise InputError(f"{path}: nothing in it")
    return (SiteKind.FOLDER, []) if has_others else (SiteKind.ARCHIVES, files)


def site_bytes(path: Path) -> int:
    """Return how many bytes are read of a site, at most, for whoever shows how far that is. 0 if nobody knows."""
    if path.is_file():
        return path.stat().st_size
    folder = path / WARC_FOLDER if (path / STATE).is_file() else path
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(root, name)).st_size  # noqa: PTH118  many of them
            except OSError:
                continue  # it vanished
    return total


def is_archive(file: Path) -> bool:
    """Return whether a file is an archive, by its first bytes, or, if they are damaged, by its name. Raises OSError."""
    if is_archive_name(file.name):
        return True
    with file.open("rb") as opened:
        head = opened.read(_HEAD_BYTES)
    if head.startswith(b"PK\3\4"):
        return True
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(head, _HEAD_BYTES)
        except zlib.error:
            return False
    return head.startswith((b"WARC/", b"filedesc://", *_ZSTD[:1])) or head[1:4] == _ZSTD[1]


def is_package(file: Path) -> bool:
    """Return whether a file is a zip or tar file with the files of a site, and not a WACZ. Raises OSError."""
    if is_archive_name(file.name):
        return False
    with file.open("rb") as opened:
        head = opened.read(_HEAD_BYTES)
    if head.startswith(b"PK\3\4"):
        try:
            with zipfile.ZipFile(file) as archive:
                names = archive.namelist()
        except zipfile.BadZipFile:
            return file.name.lower().endswith(".zip")
        # A WACZ under another name, or a zip of archive files.
        return MANIFEST_NAME in names or not any(name == "datapackage.json" or is_archive_name(name) for name in names)
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(head, _HEAD_BYTES)
        except zlib.error:
            return False
    return head[257:262] == b"ustar" or file.name.lower().endswith((".tar", ".tar.gz", ".tgz"))


def is_archive_name(name: str) -> bool:
    """Return whether the name of a file is that of an archive."""
    return name.lower().endswith(_ARCHIVE_EXTENSIONS)


def _list_archives(folder: Path) -> tuple[list[Path], bool]:
    """Return the files with names of archives below a folder, and whether there are any others. Raises OSError."""
    found: list[Path] = []
    unlisted: list[OSError] = []
    for root, folders, names in os.walk(folder, onerror=unlisted.append):
        folders.sort()
        for name in sorted(names):
            if name.startswith("."):
                continue
            file = Path(root) / name
            if not is_archive_name(name) or file.is_symlink() or not file.is_file():
                return [], True
            found.append(file)
    if unlisted:
        raise unlisted[0]  # there may be more archives in it: a site without them would be another one
    return found, False
