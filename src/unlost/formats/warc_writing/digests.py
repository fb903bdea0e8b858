"""Digests of what is kept, as WARCs and indexes write them."""

import base64
import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import _Hash


def format_sha1(hashed: "_Hash") -> str:
    """Return a SHA-1 with its name in front, in base 32."""
    return f"sha1:{base64.b32encode(hashed.digest()).decode()}"


def payload_and_block_digests(head: bytes, pieces: Iterable[bytes]) -> tuple[str, str]:
    """Return the digest of all pieces together, and that of a head with them behind it.

    >>> digests_of(b"", [])[0]
    'sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ'
    """
    payload, block = hashlib.sha1(usedforsecurity=False), hashlib.sha1(head, usedforsecurity=False)
    for piece in pieces:
        payload.update(piece)
        block.update(piece)
    return format_sha1(payload), format_sha1(block)
