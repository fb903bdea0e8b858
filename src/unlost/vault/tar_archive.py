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


_COMPRESSION_LEVEL = 6  # 9 takes three times as long for a percent
_MEMBER_TYPES = {"file": tarfile.REGTYPE, "folder": tarfile.DIRTYPE, "link": tarfile.SYMTYPE}


def write_tar_gz(files: Sequence[ServerFile], target: BinaryIO) -> str:
    """Write files as tar.gz, in the order of their names, and return the SHA-256 of the tar: the same for same files.

    Names, bytes, modes and times are kept, owners and all else is not. Raises InputError if a file changes meanwhile,
    OSError if it cannot be read.
    """
    packed = gzip.GzipFile(filename="", mode="wb", compresslevel=_COMPRESSION_LEVEL, fileobj=target, mtime=0)
    with packed:
        hashed = _HashingWriter(packed)
        with tarfile.open(fileobj=hashed, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for file in sorted(files, key=lambda file: file.name.encode("utf-8", "surrogateescape")):
                _add_member(tar, file)
    return hashed.digest.hexdigest()


def _add_member(tar: tarfile.TarFile, file: ServerFile) -> None:
    info = tarfile.TarInfo(file.name)
    info.type, info.mode, info.linkname = _MEMBER_TYPES[file.kind], file.mode, file.link_target
    seconds, rest = divmod(file.mtime, 10**9)
    info.mtime = seconds
    # Whole seconds stand in every tar's own field; parts of them need one more, as text: floats are not exact.
    info.pax_headers = {"mtime": f"{seconds}.{rest:09d}"} if rest else {}
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
    """Passes on what is written, and hashes it."""

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


MAX_EXPANSION = 200
"""How many times as long as what is packed its files may be, unless somebody allows more: texts are packed to a tenth,
dumps that repeat themselves to a fiftieth, and what somebody made to fill a disk to a thousandth."""
MIN_EXPANSION_LIMIT = 1 << 30
"""Bytes that the files of a segment may have, however short it is when it is packed."""
_MAX_HEADER = 1 << 20  # bytes of a name or of what else a tar says of a file, which are read into memory
_MAX_MEMBERS = 2_000_000
_CHUNK_BYTES = 1 << 18


@dataclass(slots=True)
class UnpackResult:
    """What came of unpacking. files, bytes: that were written. refused: names that would have led out of the target."""

    files: int = 0
    bytes: int = 0
    refused: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


@contextmanager
def atomic_new_folder(target: Path, option: str = "-o") -> Iterator[Path]:
    """Give an empty folder that gets the name of the target when the block ends well; otherwise nothing is left.

    option: by which the target was given. Raises UsageError if something is there already.
    """
    if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        raise UsageError(f"{target}: something is there already: give another place by {option}")
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        with name_os_errors(target):
            yield aside
        aside.chmod(0o755)
        aside.replace(target)
    except BaseException:
        _remove_folder(aside)
        raise


def _remove_folder(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)  # a folder that may not be written cannot be emptied
    shutil.rmtree(folder, ignore_errors=True)


class _BoundedTarInfo(tarfile.TarInfo):
    """A member of a tar whose header is short enough to be read into memory, as tarfile does; no sparse file."""

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type == tarfile.GNUTYPE_SPARSE or (not self.isreg() and self.size > _MAX_HEADER):
            raise tarfile.HeaderError("a header of a kind or length that is never packed")
        made: tarfile.TarInfo = super()._proc_member(tar)  # type: ignore[misc]
        return made

    def _refuse(self, *_: object) -> None:
        raise tarfile.HeaderError("a sparse file, which is never packed")

    _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _refuse


class Unpacker:
    """Puts files of several tars into one folder, which nobody else may write to meanwhile.

    Links come last, and folders get their modes and times after all that is in them: so nothing is ever written through
    a link, and no folder is closed too early.
    """

    def __init__(self, folder: Path, max_bytes: int | None = None) -> None:
        """most: bytes that a segment may have when it is unpacked; None for what is usual."""
        self.result = UnpackResult()
        self._max_bytes = max_bytes
        self._folder = folder
        self._links: list[tuple[str, str, int]] = []
        self._folders: dict[str, tuple[int, int]] = {}
        self._seen: set[str] = set()

    def add(self, packed: BinaryIO, size: int) -> None:
        """Unpack one tar.gz of so many bytes. Raises InputError if it is none."""
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
        """Make links, and give folders their modes and times."""
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
        """Take away links that lead out by way of others: each of these alone stays inside."""
        root = self._folder.resolve()
        made = [(name, link) for name, link, _ in self._links if (self._folder / name).is_symlink()]
        away = [(name, link) for name, link in made if not _resolves_inside(self._folder / name, root)]
        for name, link in away:
            (self._folder / name).unlink()
            self.result.refused.append(f"{name} -> {link}")
            self.result.names.remove(name)
            self.result.files -= 1

    def _exists(self, name: str) -> bool:
        """Return whether a folder was made, for what is in it, where a link would be."""
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
            while piece := (source.read(_CHUNK_BYTES) if source is not None else b""):
                target.write(piece)
        # No program gets rights that are not its owner's: that is for whoever installs it to decide.
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
    """Return a name that leads below a folder; None if it leads elsewhere, or nowhere."""
    path = PurePosixPath(name)
    if path.is_absolute() or not path.parts or ".." in path.parts or "\0" in name:
        return None
    return str(path)


def _is_link_inside(name: str, link: str) -> bool:
    """Return whether a link leads to somewhere below the folder that its name is in."""
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
    except (OSError, RuntimeError):  # it leads to itself
        return True


def _mtime_ns(info: tarfile.TarInfo) -> int:
    """Return the time of change in nanoseconds, within what file systems can have."""
    text = str(info.pax_headers.get("mtime", ""))
    seconds, _, rest = text.partition(".")
    if seconds.lstrip("-").isdigit() and (not rest or rest.isdigit()) and len(seconds) < 12:
        return int(seconds) * 10**9 + int((rest or "0")[:9].ljust(9, "0"))
    return max(0, min(int(info.mtime), 1 << 40)) * 10**9
