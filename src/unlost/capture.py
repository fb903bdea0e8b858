"""Captures: stored observations of a resource, from any index or archive file.

Also payload digests, normalized to one spelling for each algorithm, so that equal payloads have equal digests.
"""

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from typing import BinaryIO

# Size of a digest in bytes, and whether it is written in hexadecimal. WARC 1.1 recommends no algorithm; its examples,
# and nearly all archives, have SHA-1 in base 32.
_DIGEST_ALGORITHMS = {"md5": (16, True), "sha1": (20, False), "sha256": (32, True), "sha512": (64, True)}
_LABELLED_DIGEST = re.compile(r"([A-Za-z0-9-]+):(.+)", re.DOTALL)
_BASE32_SHA1 = re.compile(r"[A-Z2-7]{32}", re.IGNORECASE)

_READ_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Capture:
    """A stored observation of a resource. Unknown attributes are None; nothing is guessed.

    Attributes:
        uri: Original URL (URI-R), as captured. Empty in indexes that have only keys.
        key: Normalized key, as from `unlost.uri.row_key`; None if it is not a web page (`dns:`, `warcinfo:`).
        datetime: Date, 14 digits, UTC; missing digits are filled as by `unlost.dates.pad`.
        status: HTTP status.
        mime: Media type in lower case without parameters; None for `warc/revisit` (see `revisit`).
        digest: Digest of the payload with its algorithm (`sha1:…`) if known, as from `normalize_digest`.
        length: Size of the record as stored, possibly compressed, in bytes.
        redirect: Redirect target, verbatim.
        archive: ID of the archive in the registry.
        urim: URL of the memento (URI-M).
        migrated: Whether the archive converted the resource to another format; None if unknown.
        revisit: Whether it is a revisit record, without a body of its own.
        revisit_of: URL and 14-digit date of the capture with the body, if the revisit record names it
            (`WARC-Refers-To-Target-URI` and `WARC-Refers-To-Date`).
        filename: WARC file of the record.
        offset: Offset of the record in the file, in bytes.
        skip: Decompressed bytes before the record, if its compressed member contains several records.
    """

    uri: str
    key: str | None
    datetime: str
    status: int | None = None
    mime: str | None = None
    digest: str | None = None
    length: int | None = None
    redirect: str | None = None
    archive: str | None = None
    urim: str | None = None
    migrated: bool | None = None
    revisit: bool = False
    revisit_of: tuple[str, str] | None = None
    filename: str | None = None
    offset: int | None = None
    skip: int | None = None


def normalize_digest(text: str) -> str:
    """Return a digest in a canonical spelling: `sha1:` in base 32; `md5:`, `sha256:` and `sha512:` in hexadecimal.

    Unknown algorithms and lengths are returned unchanged. 32 base-32 characters alone are a SHA-1, as in CDX files.

    >>> normalize_digest("sha-1:da39a3ee5e6b4b0d3255bfef95601890afd80709")
    'sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ'
    >>> normalize_digest("SHA-256:" + "AB" * 32)[:15], normalize_digest("blake3:Xy=")
    ('sha256:abababab', 'blake3:Xy=')
    """
    if _BASE32_SHA1.fullmatch(text):
        return f"sha1:{text.upper()}"
    match = _LABELLED_DIGEST.fullmatch(text)
    if not match:
        return text
    algorithm, value = match[1].lower().replace("-", ""), match[2].strip()
    if algorithm not in _DIGEST_ALGORITHMS:
        return text
    size, is_hex = _DIGEST_ALGORITHMS[algorithm]
    digest = _decode_digest(value, size)
    if digest is None:
        return text
    return f"{algorithm}:{digest.hex() if is_hex else base64.b32encode(digest).decode().rstrip('=')}"


def _decode_digest(value: str, size: int) -> bytes | None:
    """Decode a digest in hexadecimal or base 32; None if it is neither or has the wrong size."""
    try:
        if len(value) == 2 * size:
            return bytes.fromhex(value)
        digest = base64.b32decode(value.rstrip("=").upper() + "=" * (-len(value.rstrip("=")) % 8))
    except (ValueError, binascii.Error):
        return None
    return digest if len(digest) == size else None


def matches_digest(body: BinaryIO, digest: str) -> bool | None:
    """Return whether a body has a digest; None for an unknown algorithm. The body is rewound.

    >>> from io import BytesIO
    >>> matches_digest(BytesIO(b""), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ")
    True
    >>> matches_digest(BytesIO(b""), "md5:" + "00" * 16), matches_digest(BytesIO(b""), "x")
    (False, None)
    """
    algorithm = digest.partition(":")[0]
    if algorithm not in _DIGEST_ALGORITHMS:
        return None
    hashed = hashlib.new(algorithm, usedforsecurity=False)
    body.seek(0)
    while data := body.read(_READ_BYTES):
        hashed.update(data)
    body.seek(0)
    return normalize_digest(digest) == normalize_digest(f"{algorithm}:{hashed.hexdigest()}")
