"""The manifest of an exported site, as JSON Lines: which file is the capture of which URL."""

import hashlib
import json
import os
from base64 import b32encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from unlost.errors import InputError
from unlost.http.models import new_body

MANIFEST_NAME = ".unlost-manifest.jsonl"
"""Name of the manifest in the top folder. No file of a site has it, because names with a leading dot are escaped."""

_VERSION = 1
_MAX_LINE_BYTES = 1 << 20
_CHUNK_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """A file of an export.

    Attributes:
        path: Path in the export, with slashes.
        url: URL of the capture.
        datetime: Datetime of the capture, 14 digits.
        archive: Id of the archive.
        mime: The sniffed media type; None if unknown.
        digest: SHA-1 digest of the captured body (`sha1:` and Base32).
        size: Size of the captured body in bytes.
        file_digest: Digest of the file; equal to `digest` if nothing was rewritten.
        file_size: Size of the file in bytes.
        doubtful: Kind of the classifier's verdict against the capture; None without one.
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
    """Properties of a whole export.

    Attributes:
        base: URL of the top folder; None if there is a folder for each host.
        hosting: Files for web servers and an added start page, which are not part of the site.
        substitutes: URLs that no archive has, with the URLs with another query whose captures replace them.
    """

    base: str | None
    hosting: tuple[str, ...]
    substitutes: Mapping[str, str] = field(default_factory=dict)


class ManifestWriter:
    """Collects the entries of a manifest in memory, a few hundred bytes each."""

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
        self._lines.append((entry.path, _json_line(fields)))

    def finish(self, header: ManifestHeader) -> BinaryIO:
        """Return the manifest, rewound."""
        manifest = new_body()
        fields = {"unlost-manifest": _VERSION, "base": header.base, "hosting": list(header.hosting)}
        manifest.write(_json_line({**fields, "substitutes": dict(header.substitutes)}))
        manifest.writelines(line for _, line in sorted(self._lines))
        manifest.seek(0)
        return manifest


def body_digest(body: BinaryIO) -> tuple[str, int]:
    """Return the SHA-1 digest and the size of a body, which is rewound."""
    sha1 = hashlib.sha1(usedforsecurity=False)
    body.seek(0)
    while piece := body.read(_CHUNK_BYTES):
        sha1.update(piece)
    size = body.seek(0, os.SEEK_END)
    body.seek(0)
    return f"sha1:{b32encode(sha1.digest()).decode()}", size


def read_manifest(name: str, lines: Iterable[bytes]) -> tuple[ManifestHeader, Iterator[ManifestEntry]]:
    """Parse a manifest into its header and an iterator of its entries.

    Args:
        name: Name of the file, for error messages.
        lines: The lines.

    Raises:
        InputError: Not a manifest or of a later version; may also be raised by the iterator.
    """
    numbered = enumerate(lines, start=1)
    _, first_line = next(numbered, (1, b""))
    fields = _parse_object(name, 1, first_line)
    base, hosting = fields.get("base"), fields.get("hosting")
    if fields.get("unlost-manifest") != _VERSION or not isinstance(hosting, list):
        raise InputError(f"{name}: expected a manifest of version {_VERSION}: use the version of unlost that wrote it")
    substitutes = fields.get("substitutes")
    header = ManifestHeader(
        base if isinstance(base, str) else None,
        tuple(map(str, hosting)),
        {url: str(substitute) for url, substitute in substitutes.items()} if isinstance(substitutes, dict) else {},
    )
    return header, (_parse_entry(name, line_number, line) for line_number, line in numbered)


def _parse_entry(name: str, line_number: int, line: bytes) -> ManifestEntry:
    fields = _parse_object(name, line_number, line)
    try:
        path, url, datetime, digest = (str(fields[field]) for field in ("path", "url", "datetime", "digest"))
        size = int(str(fields["size"]))
        file_digest, file_size = str(fields.get("file_digest", digest)), int(str(fields.get("file_size", size)))
    except (KeyError, ValueError) as error:
        raise InputError(f"{name}:{line_number}: expected an entry of a manifest: {error!s:.100}") from None
    archive, mime, doubtful = fields.get("archive"), fields.get("mime"), fields.get("doubtful")
    return ManifestEntry(
        path,
        url,
        datetime,
        None if archive is None else str(archive),
        None if mime is None else str(mime),
        digest,
        size,
        file_digest,
        file_size,
        None if doubtful is None else str(doubtful),
    )


def _parse_object(name: str, line_number: int, line: bytes) -> dict[str, object]:
    try:
        value = json.loads(line) if len(line) <= _MAX_LINE_BYTES else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InputError(f"{name}:{line_number}: expected an object in JSON")
    return value


def _json_line(fields: dict[str, object]) -> bytes:
    return json.dumps(fields).encode() + b"\n"
