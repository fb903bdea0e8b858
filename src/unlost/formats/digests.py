"""Digests of payloads: one spelling for each algorithm, so that equal ones are equal texts."""

import base64
import binascii
import re

# Bytes of a digest, and whether it is written in hexadecimal. SHA-1 is base32 in nearly every archive.
_DIGEST_ALGORITHMS = {"md5": (16, True), "sha1": (20, False), "sha256": (32, True), "sha512": (64, True)}

_LABELLED_DIGEST = re.compile(r"([A-Za-z0-9-]+):(.+)", re.DOTALL)
_BASE32_SHA1 = re.compile(r"[A-Z2-7]{32}", re.IGNORECASE)


def normalize_digest(text: str) -> str:
    """Return a digest in the one spelling of its algorithm: `sha1:` in base32, `md5:`, `sha256:`, `sha512:` in hex.

    What is of no known algorithm or length is returned as it stands. 32 base32 characters alone are a SHA-1, as in
    CDX files.

    >>> normal_digest("sha-1:da39a3ee5e6b4b0d3255bfef95601890afd80709")
    'sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ'
    >>> normal_digest("SHA-256:" + "AB" * 32)[:15], normal_digest("blake3:Xy=")
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
