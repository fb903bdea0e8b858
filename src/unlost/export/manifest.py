"""The manifest of an exported site, as JSON Lines: which file is the capture of which URL."""

import hashlib
import json
import os
from base64 import b32encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from unlost.errors import InputError
from unlost.http.body import new_body

MANIFEST_NAME = ".unlost-manifest.jsonl"
"""The name of the file, at the top of an export. No file of a site has it: names that begin with a dot are escaped."""

_VERSION = 1
_MAX_LINE = 1 << 20
_PIECE = 1 << 18


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """A file of an export.

    path: in the export, with slashes. url, datetime, archive: of the capture. mime: its true type; None if unknown.
    digest, size: of the captured body. file_digest, file_size: of the file; the same if nothing was rewritten.
    Digests are SHA-1, as `sha1:` and Base32. doubtful: the verdict against the capture, if it was kept in spite of it.
    """

    path: str
    url: str
    datetime: str
    archive: str | None
    mime: str | None
    digest: str
    size: int
    file_digest: str
    file_size: int
    doubtful: str | None = None


@dataclass(frozen=True, slots=True)
class ManifestHeader:
    """What a manifest says of the whole export.

    base: the URL of its top folder; None if there is a folder for each host. hosting: files for web servers, and a
    start page that was added, which are no part of the site. substitutes: URLs that no archive has, and those with
    another query whose captures are used.
    """

    base: str | None
    hosting: tuple[str, ...]
    substitutes: Mapping[str, str] = field(default_factory=dict)


class ManifestWriter:
    """Collects the entries of a manifest, some hundred bytes each."""

    def __init__(self) -> None:
        self._lines: list[tuple[str, bytes]] = []

    def add(self, entry: ManifestEntry) -> None:
        """Append an entry."""
        fields: dict[str, object] = {
            "path": entry.path,
            "url": entry.url,
            "datetime": entry.datetime,
            "archive": entry.archive,
            "mime": entry.mime,
            "digest": entry.digest,
            "size": entry.size,
        }
        if (entry.file_digest, entry.file_size) != (entry.digest, entry.size):
            fields |= {"file_digest": entry.file_digest, "file_size": entry.file_size}
        if entry.doubtful is not None:
            fields["doubtful"] = entry.doubtful
        self._lines.append((entry.path, _line(fields)))

    def finish(self, header: ManifestHeader) -> BinaryIO:
        """Return the whole manifest, at its beginning."""
        whole = new_body()
        fields = {"unlost-manifest": _VERSION, "base": header.base, "hosting": list(header.hosting)}
        whole.write(_line({**fields, "substitutes": dict(header.substitutes)}))
        whole.writelines(line for _, line in sorted(self._lines))
        whole.seek(0)
        return whole


def body_digest(body: BinaryIO) -> tuple[str, int]:
    """Return the SHA-1 digest and the size of a body, which is left at its beginning."""
    hashed = hashlib.sha1(usedforsecurity=False)
    body.seek(0)
    while piece := body.read(_PIECE):
        hashed.update(piece)
    size = body.seek(0, os.SEEK_END)
    body.seek(0)
    return f"sha1:{b32encode(hashed.digest()).decode()}", size


def read_manifest(name: str, lines: Iterable[bytes]) -> tuple[ManifestHeader, Iterator[ManifestEntry]]:
    """Return the header of a manifest, and what yields its entries. name: of the file, for messages.

    Raises InputError, also while entries are read, for what is no manifest or one of a later version.
    """
    numbered = enumerate(lines, start=1)
    _, first = next(numbered, (1, b""))
    found = _object(name, 1, first)
    base, hosting = found.get("base"), found.get("hosting")
    if found.get("unlost-manifest") != _VERSION or not isinstance(hosting, list):
        raise InputError(f"{name}: expected a manifest of version {_VERSION}: use the version of unlost that wrote it")
    substitutes = found.get("substitutes")
    header = ManifestHeader(
        base if isinstance(base, str) else None,
        tuple(map(str, hosting)),
        {url: str(other) for url, other in substitutes.items()} if isinstance(substitutes, dict) else {},
    )
    return header, (_entry(name, number, line) for number, line in numbered)


def _entry(name: str, number: int, line: bytes) -> ManifestEntry:
    found = _object(name, number, line)
    try:
        path, url, moment, digest = (str(found[field]) for field in ("path", "url", "datetime", "digest"))
        size = int(str(found["size"]))
        file_digest, file_size = str(found.get("file_digest", digest)), int(str(found.get("file_size", size)))
    except (KeyError, ValueError) as error:
        raise InputError(f"{name}:{number}: expected an entry of a manifest: {error!s:.100}") from None
    archive, mime, doubtful = found.get("archive"), found.get("mime"), found.get("doubtful")
    return ManifestEntry(
        path,
        url,
        moment,
        None if archive is None else str(archive),
        None if mime is None else str(mime),
        digest,
        size,
        file_digest,
        file_size,
        None if doubtful is None else str(doubtful),
    )


def _object(name: str, number: int, line: bytes) -> dict[str, object]:
    try:
        found = json.loads(line) if len(line) <= _MAX_LINE else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{name}:{number}: expected an object in JSON")
    return found


def _line(fields: dict[str, object]) -> bytes:
    return json.dumps(fields).encode() + b"\n"
