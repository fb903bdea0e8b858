"""Captures: one stored observation of a resource, whatever index or archive file it was read from.

Also payload digests: one normalised spelling for each algorithm, so that equal payloads have equal digest texts.
"""

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from typing import BinaryIO


@dataclass(frozen=True, slots=True)
class Capture:
    """One stored copy of a resource. What a source does not tell is None; nothing is guessed.

    uri: the original address (URI-R), as it was captured. Empty in indexes that keep only keys.
    key: its normal key, as `unlost.uri.row_key` makes it; None for what is not a web page (`dns:`, `warcinfo:`).
    datetime: when it was captured, 14 digits, UTC; missing digits filled as `unlost.dates` says.
    status: the HTTP status; None for what has none.
    mime: the media type in lower case without parameters; `warc/revisit` is told by `revisit` instead.
    digest: of the payload, with its algorithm in front (`sha1:…`) where that is known, in the one spelling that
        `unlost.capture` has for it.
    length: bytes of the record as it is stored, compressed if it is.
    redirect: where it redirects to, as the source says it.
    archive: the id of the archive that holds it, in the registry.
    urim: the address of this copy in an archive (URI-M).
    migrated: whether the archive changed its format (True), kept it (False), or does not say (None).
    revisit: whether the record says "as before" and has no body of its own.
    revisit_of: the address, then the 14-digit datetime, of the capture that has the body, where the record says so.
    filename, offset: where the record is stored: a WARC's name and a position in bytes.
    skip: how many bytes of text come before it in its compressed member, if that holds other records before it.
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


# Bytes of a digest, and whether it is written in hexadecimal. SHA-1 is base32 in nearly every archive.
_DIGEST_ALGORITHMS = {"md5": (16, True), "sha1": (20, False), "sha256": (32, True), "sha512": (64, True)}
_LABELLED_DIGEST = re.compile(r"([A-Za-z0-9-]+):(.+)", re.DOTALL)
_BASE32_SHA1 = re.compile(r"[A-Z2-7]{32}", re.IGNORECASE)


def normalize_digest(text: str) -> str:
    """Return a digest in the one spelling of its algorithm: `sha1:` in base32, `md5:`, `sha256:`, `sha512:` in hex.

    What is of no known algorithm or length is returned as it stands. 32 base32 characters alone are a SHA-1, as in
    CDX files.

    >>> normalize_digest("sha-1:da39a3ee5e6b4b0d3255bfef95601890afd80709")
    'sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ'
    >>> normalize_digest("SHA-256:" + "AB" * 32)[:15], normalize_digest("blake3:Xy=")
    ('sha256:abababab', 'blake3:Xy=')
    """
    if _BASE32_SHA1.fullmatch(text):
        return f"sha1:{text.upper()}"
    found = _LABELLED_DIGEST.fullmatch(text)
    if not found:
        return text
    algorithm, value = found[1].lower().replace("-", ""), found[2].strip()
    if algorithm not in _DIGEST_ALGORITHMS:
        return text
    size, in_hex = _DIGEST_ALGORITHMS[algorithm]
    digest = _decode_digest(value, size)
    if digest is None:
        return text
    return f"{algorithm}:{digest.hex() if in_hex else base64.b32encode(digest).decode().rstrip('=')}"


def _decode_digest(value: str, size: int) -> bytes | None:
    """Return the bytes of a digest in hexadecimal or base32; None if it is in neither, or of another size."""
    try:
        if len(value) == 2 * size:
            return bytes.fromhex(value)
        digest = base64.b32decode(value.rstrip("=").upper() + "=" * (-len(value.rstrip("=")) % 8))
    except (ValueError, binascii.Error):
        return None
    return digest if len(digest) == size else None


_ALGORITHMS = {"md5", "sha1", "sha256", "sha512"}
_CHUNK = 1 << 16


def matches_digest(body: BinaryIO, digest: str) -> bool | None:
    """Return whether a body, which is left at its beginning, has a digest; None if its algorithm is not known.

    >>> from io import BytesIO
    >>> [matches_digest(BytesIO(b""), text) for text in ("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", "md5:" + "00" * 16, "x")]
    [True, False, None]
    """
    algorithm = digest.partition(":")[0]
    if algorithm not in _ALGORITHMS:
        return None
    hashed = hashlib.new(algorithm, usedforsecurity=False)
    body.seek(0)
    while data := body.read(_CHUNK):
        hashed.update(data)
    body.seek(0)
    return normalize_digest(digest) == normalize_digest(f"{algorithm}:{hashed.hexdigest()}")
