"""The zip file of a WACZ, which tells the digest of everything in it."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import IO, BinaryIO, Self
from zipfile import ZIP_DEFLATED, ZipFile

from unlost.formats.sorting import sort_lines
from unlost.formats.zipnum import compress_blocks
from unlost.recover.export.targets.zip_target import zip_entry

WACZ_VERSION = "1.1.1"
"""Of https://specs.webrecorder.net/wacz/1.1.1/."""

_MEMBER_DATE = "19800101000000"  # of all members: no clock is in them
_INDEX, _INDEX_SUMMARY = "index.cdx.gz", "index.idx"
_DATAPACKAGE = "datapackage.json"


class WaczMemberWriter:
    """A member that is being written. size: bytes so far. begin: where they begin in the file."""

    def __init__(self, opened: IO[bytes], begin: int) -> None:
        self._opened = opened
        self._hashed = hashlib.sha256()
        self.offset = begin
        self.size = 0

    def write(self, data: bytes) -> None:
        """Write some more of it."""
        self._opened.write(data)
        self._hashed.update(data)
        self.size += len(data)

    @property
    def digest(self) -> str:
        """Of what was written so far."""
        return f"sha256:{self._hashed.hexdigest()}"


class WaczWriter:
    """The members of a WACZ, one behind the other. Use it as a context manager; `end` makes it whole."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._archive = ZipFile(file, "w")
        self._resources: list[dict[str, object]] = []

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """Write nothing more."""
        self._archive.fp = None

    @contextmanager
    def member(self, path: str, *, is_large: bool = False) -> Iterator[WaczMemberWriter]:
        """Give a member to write to. Records and blocks are stored as they are, so that each can be read alone.

        is_large: whether it may have more than 2 GiB.
        """
        info = zip_entry(path, _MEMBER_DATE)
        if not path.endswith(".gz"):
            info.compress_type = ZIP_DEFLATED
        with self._archive.open(info, "w", force_zip64=is_large) as opened:
            member = WaczMemberWriter(opened, self._file.tell())
            yield member
        name = path.rpartition("/")[2]
        self._resources.append({"name": name, "path": path, "hash": member.digest, "bytes": member.size})

    def add(self, path: str, pieces: Iterable[bytes]) -> str:
        """Write a member, and return its digest."""
        with self.member(path) as member:
            for piece in pieces:
                member.write(piece)
        return member.digest

    def add_index(self, lines: Iterable[bytes]) -> None:
        """Write an index of lines of CDXJ, which are sorted here: in compressed blocks, and a list of these."""
        listing = [f"!meta 0 {json.dumps({'format': 'cdxj-gzip-1.0', 'filename': _INDEX})}\n".encode()]
        with self.member(f"indexes/{_INDEX}") as member:
            for head, block in compress_blocks(sort_lines(lines)):
                digest = f"sha256:{hashlib.sha256(block).hexdigest()}"
                place = {"offset": member.size, "length": len(block), "digest": digest, "filename": _INDEX}
                listing.append(head + f" {json.dumps(place)}\n".encode())
                member.write(block)
        self.add(f"indexes/{_INDEX_SUMMARY}", listing)

    def finish(self, about: Mapping[str, object]) -> None:
        """Write what is known about the collection, the digests, and the directory of the file."""
        known = {name: value for name, value in about.items() if value is not None}
        package = {"profile": "data-package", "wacz_version": WACZ_VERSION, **known, "resources": self._resources[:]}
        digest = self.add(_DATAPACKAGE, [_json(package)])
        self.add("datapackage-digest.json", [_json({"path": _DATAPACKAGE, "hash": digest})])
        self._archive.close()


def _json(value: object) -> bytes:
    return f"{json.dumps(value, indent=2)}\n".encode()
