"""Digests of what is kept, as WARCs and indexes write them."""

import base64
import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import _Hash


def sha1_digest(hashed: "_Hash") -> str:
    """Return a SHA-1 with its name in front, in base 32."""
    return f"sha1:{base64.b32encode(hashed.digest()).decode()}"


def digest_of(pieces: Iterable[bytes]) -> str:
    """Return the digest of all pieces together.

    >>> digest_of([])
    'sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ'
    """
    hashed = hashlib.sha1(usedforsecurity=False)
    for piece in pieces:
        hashed.update(piece)
    return sha1_digest(hashed)
