"""Files into a tar that is the same for the same files, gzipped."""

import gzip
import hashlib
import io
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from unlost.errors import InputError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_COMPRESSION_LEVEL = 6  # 9 takes three times as long for a percent


@dataclass(frozen=True, slots=True)
class ServerFile:
    """A file, folder or link to keep.

    name: its path in the tar, with slashes. place: where its bytes are; None for folders and links.
    kind: `file`, `folder` or `link`. mode: the permission bits. mtime: nanoseconds since 1970. size: bytes.
    link: where a link leads.
    """

    name: str
    path: Path | None
    kind: str
    mode: int
    mtime: int
    size: int
    link_target: str = ""


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
