"""Deterministic tar.gz archives of server files, and their safe extraction below one folder."""

import gzip
import hashlib
import io
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

from unlost.atomic import name_os_errors
from unlost.errors import InputError, UsageError
from unlost.vault.server_files import ServerFile

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_COMPRESSION_LEVEL = 6  # level 9 takes three times as long and saves one percent
_MEMBER_TYPES = {"file": tarfile.REGTYPE, "folder": tarfile.DIRTYPE, "link": tarfile.SYMTYPE}

MAX_EXPANSION = 200
"""Default limit of the ratio of unpacked to packed size. Text compresses to a tenth, repetitive dumps to a fiftieth,
decompression bombs to a thousandth.
"""
MIN_EXPANSION_LIMIT = 1 << 30
"""Unpacked size in bytes that is allowed for any segment, however small."""
_MAX_HEADER = 1 << 20  # bytes of an extended header, which tarfile reads into memory
_MAX_MEMBERS = 2_000_000
_CHUNK_BYTES = 1 << 18


def write_tar_gz(files: Sequence[ServerFile], target: BinaryIO) -> str:
    """Write files as tar.gz in the order of their names, reproducibly, and return the SHA-256 of the tar.

    Stores names, content, modes and modification times, but no owners.

    Raises:
        InputError: A file changes while it is read.
        OSError: A file cannot be read.
    """
    compressed = gzip.GzipFile(filename="", mode="wb", compresslevel=_COMPRESSION_LEVEL, fileobj=target, mtime=0)
    with compressed:
        hashing = _HashingWriter(compressed)
        with tarfile.open(fileobj=hashing, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for file in sorted(files, key=lambda file: file.name.encode("utf-8", "surrogateescape")):
                _add_member(tar, file)
    return hashing.digest.hexdigest()


def _add_member(tar: tarfile.TarFile, file: ServerFile) -> None:
    info = tarfile.TarInfo(file.name)
    info.type, info.mode, info.linkname = _MEMBER_TYPES[file.kind], file.mode, file.link_target
    seconds, nanoseconds = divmod(file.mtime, 10**9)
    info.mtime = seconds
    # The tar header has whole seconds. A PAX header adds the fraction, as text because floats are not exact.
    info.pax_headers = {"mtime": f"{seconds}.{nanoseconds:09d}"} if nanoseconds else {}
    if file.path is None:
        tar.addfile(info)
        return
    with file.path.open("rb") as source:
        info.size = file.size
        try:
            tar.addfile(info, source)
        except OSError as error:
            if error.errno is not None:
                raise
            raise InputError(f"{file.path}: it became shorter while it was read: pack again, or give --dump") from None
        if source.read(1):
            raise InputError(f"{file.path}: it became longer while it was read: pack again, or give --dump")


class _HashingWriter(io.RawIOBase):
    """Hashes the data written to it and forwards it."""

    def __init__(self, target: gzip.GzipFile) -> None:
        self.digest = hashlib.sha256()
        self._target = target
        self._position = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: "ReadableBuffer") -> int:
        view = memoryview(data)
        self.digest.update(view)
        self._target.write(view)
        self._position += len(view)
        return len(view)


@dataclass(slots=True)
class UnpackResult:
    """Result of unpacking.

    Attributes:
        files: Number of files and links written.
        bytes: Total size of the files.
        refused: Names of rejected members, such as paths outside the target folder.
        names: Names of the files and links written.
    """

    files: int = 0
    bytes: int = 0
    refused: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


@contextmanager
def atomic_new_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder that is renamed to the target on success and deleted on failure.

    Args:
        target: The folder.

    Raises:
        UsageError: The target exists and is not an empty folder.
    """
    if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        raise UsageError(f"{target}: something is there already: give another place by -o")
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        with name_os_errors(target):
            yield temporary
        temporary.chmod(0o755)
        temporary.replace(target)
    except BaseException:
        _remove_folder(temporary)
        raise


def _remove_folder(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)  # read-only folders cannot be emptied
    shutil.rmtree(folder, ignore_errors=True)


class _BoundedTarInfo(tarfile.TarInfo):
    """Tar member that rejects sparse files and headers too long to be read into memory."""

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type == tarfile.GNUTYPE_SPARSE or (not self.isreg() and self.size > _MAX_HEADER):
            raise tarfile.HeaderError("a header of a kind or length that is never packed")
        member: tarfile.TarInfo = super()._proc_member(tar)  # type: ignore[misc]
        return member

    def _refuse(self, *_: object) -> None:
        raise tarfile.HeaderError("a sparse file, which is never packed")

    _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _refuse


class Unpacker:
    """Unpacks several tars into one folder, which no other process may write to.

    Links are created last, so that nothing is written through them. Folders get their modes and times after their
    content, so that read-only folders can be filled.
    """

    def __init__(self, folder: Path, max_bytes: int | None = None) -> None:
        """Create an unpacker.

        Args:
            folder: The folder.
            max_bytes: Maximum unpacked size of a segment; None for the default limits.
        """
        self.result = UnpackResult()
        self._max_bytes = max_bytes
        self._folder = folder
        self._links: list[tuple[str, str, int]] = []
        self._folders: dict[str, tuple[int, int]] = {}
        self._seen: set[str] = set()

    def add(self, packed: BinaryIO, size: int) -> None:
        """Unpack one tar.gz of `size` bytes. Raises InputError if it is damaged or unpacks to more than the limit."""
        allowed = max(size * MAX_EXPANSION, MIN_EXPANSION_LIMIT) if self._max_bytes is None else self._max_bytes
        try:
            with (
                gzip.GzipFile(fileobj=packed) as plain,
                tarfile.open(fileobj=plain, mode="r|", tarinfo=_BoundedTarInfo) as tar,
            ):
                for count, info in enumerate(tar):
                    allowed -= max(info.size, 0)
                    if allowed < 0 or count > _MAX_MEMBERS:
                        raise InputError(
                            f"a segment of {size:,} bytes unpacks to far more than files do, as if it were made to "
                            "fill a disk: --most-bytes allows more"
                        )
                    self._extract(tar, info)
        except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ValueError) as error:
            raise InputError(f"expected a gzipped tar, found something else, or damage: {error!s}") from None

    def finish(self) -> UnpackResult:
        """Create links, and set modes and times of folders."""
        for name, link, mtime in self._links:
            if not _is_link_inside(name, link) or self._exists(name):
                self.result.refused.append(f"{name} -> {link}")
                continue
            path = self._target_path(name)
            path.symlink_to(link)
            os.utime(path, ns=(mtime, mtime), follow_symlinks=False)
            self._record_written(name)
        self._remove_escaping_links()
        for name, (mode, mtime) in sorted(self._folders.items(), reverse=True):
            path = self._folder / name
            path.chmod(mode)
            os.utime(path, ns=(mtime, mtime))
        return self.result

    def _remove_escaping_links(self) -> None:
        """Remove links that point outside through other links, although each of them alone points inside."""
        root = self._folder.resolve()
        created = [(name, link) for name, link, _ in self._links if (self._folder / name).is_symlink()]
        escaping = [(name, link) for name, link in created if not _resolves_inside(self._folder / name, root)]
        for name, link in escaping:
            (self._folder / name).unlink()
            self.result.refused.append(f"{name} -> {link}")
            self.result.names.remove(name)
            self.result.files -= 1

    def _exists(self, name: str) -> bool:
        """Return whether a folder, created for its content, has the name of a link."""
        return os.path.lexists(self._folder / name)

    def _extract(self, tar: tarfile.TarFile, info: tarfile.TarInfo) -> None:
        name = _safe_name(info.name)
        if name is None or name in self._seen or not (info.isreg() or info.isdir() or info.issym()):
            self.result.refused.append(info.name)
            return
        self._seen.add(name)
        if info.issym():
            self._links.append((name, info.linkname, _mtime_ns(info)))
        elif info.isdir():
            self._target_path(name).mkdir(exist_ok=True)
            self._folders[name] = (info.mode & 0o7777, _mtime_ns(info))
        else:
            self._write(tar, info, name)

    def _write(self, tar: tarfile.TarFile, info: tarfile.TarInfo, name: str) -> None:
        source = tar.extractfile(info)
        path = self._target_path(name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(path, flags, 0o600), "wb") as target:
            while chunk := (source.read(_CHUNK_BYTES) if source is not None else b""):
                target.write(chunk)
        # Without setuid, setgid and sticky bits, which the administrator must set again.
        path.chmod(info.mode & 0o777)
        os.utime(path, ns=(_mtime_ns(info), _mtime_ns(info)))
        self._record_written(name)
        self.result.bytes += info.size

    def _record_written(self, name: str) -> None:
        self.result.files += 1
        self.result.names.append(name)

    def _target_path(self, name: str) -> Path:
        path = self._folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise InputError(f"{name!a}: a file is where its folder should be") from None
        return path


def _safe_name(name: str) -> str | None:
    """Return a normalized relative name; None if it is absolute, empty, or contains `..`."""
    path = PurePosixPath(name)
    if path.is_absolute() or not path.parts or ".." in path.parts or "\0" in name:
        return None
    return str(path)


def _is_link_inside(name: str, link: str) -> bool:
    """Return whether a link's target is below the root folder."""
    if PurePosixPath(link).is_absolute() or "\0" in link or not link:
        return False
    depth = len(PurePosixPath(name).parts) - 1
    for part in PurePosixPath(link).parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return False
    return True


def _resolves_inside(link: Path, root: Path) -> bool:
    try:
        return link.resolve().is_relative_to(root)
    except (OSError, RuntimeError):  # a loop of links
        return True


def _mtime_ns(info: tarfile.TarInfo) -> int:
    """Return the modification time in nanoseconds, limited to the range of file systems."""
    text = str(info.pax_headers.get("mtime", ""))
    seconds, _, fraction = text.partition(".")
    if seconds.lstrip("-").isdigit() and (not fraction or fraction.isdigit()) and len(seconds) < 12:
        return int(seconds) * 10**9 + int((fraction or "0")[:9].ljust(9, "0"))
    return max(0, min(int(info.mtime), 1 << 40)) * 10**9
