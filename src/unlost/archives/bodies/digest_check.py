"""Whether a copy is what the index says: archives cut copies short where a captured length was wrong."""

import hashlib
from typing import BinaryIO

from unlost.formats.digests import normalize_digest

_ALGORITHMS = {"md5", "sha1", "sha256", "sha512"}
_CHUNK = 1 << 16


def matches_digest(body: BinaryIO, digest: str) -> bool | None:
    """Return whether a body, which is left at its beginning, has a digest; None if its algorithm is not known.

    >>> from io import BytesIO
    >>> [has_digest(BytesIO(b""), text) for text in ("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", "md5:" + "00" * 16, "x")]
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
