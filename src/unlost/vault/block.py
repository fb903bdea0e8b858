"""The text form of a block: header fields, base64 data, an optional signature, and the carrier that hides it in a page.

`find_blocks` extracts all valid blocks from a page. The format is specified in docs/vault-format.md.
"""

import binascii
import hashlib
import re
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from unlost._core import is_signed, sign, signing_public_key
from unlost.vault.erasure_code import BLOCK_UNIT, MAX_BLOCKS, CodeShape

BEGIN_MARKER, END_MARKER = b"BEGIN_FILE_RECOVERY", b"END_FILE_RECOVERY"
"""What the dissertation puts around blocks (its Figure 51)."""
BLOCK_FORMAT = "unlost-vault-1"
CODE_NAME = "rs16"
KIND_FILES, KIND_MANIFEST = "files", "manifest"
"""What is coded: files, or the list of them all."""
MAX_BLOCK_BYTES = 16 << 20
"""More than any archive keeps of a page, and little enough for memory."""
_LINE_LENGTH = 76  # characters of base64: what mail has, and editors bear
_HEADER_FIELDS = (
    "format",
    "kind",
    "segment",
    "version",
    "needed",
    "count",
    "index",
    "size",
    "block",
    "code",
    "wrap",
    "sha256",
)
_HEX = re.compile(r"[0-9a-f]+")
_WRAPS = frozenset({"tar.gz", "tar.gz.age", "json.gz", "json.gz.age"})


class InvalidBlockError(Exception):
    """Words between the marks that are no block. kind: one word for counting."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class BlockHeader:
    """What a block says of itself; all blocks of one version say the same but for `index` and `sha256`.

    kind: `FILES` or `MANIFEST`. segment: which part of the files: 16 hexadecimal digits. version: the SHA-256 of what
    was coded. wrap: what that is, as the ending of a file. index: its number, from 0. sha256: of its own bytes.
    key: who signed it, a public key in hexadecimal digits; None if nobody did.
    """

    kind: str
    segment: str
    version: str
    shape: CodeShape
    wrap: str
    index: int
    sha256: str
    key: str | None = None

    @property
    def group(self) -> tuple[str, str, str, int, int, int]:
        """What blocks must share to be used together."""
        return self.kind, self.segment, self.version, self.shape.size, self.shape.block, self.shape.needed


@dataclass(frozen=True, slots=True)
class VaultBlock:
    """A block with its bytes."""

    header: BlockHeader
    data: bytes


def format_header(header: BlockHeader) -> str:
    """Return the words that describe a block, in their order: what is signed."""
    shape = header.shape
    values = (
        BLOCK_FORMAT, header.kind, header.segment, header.version, shape.needed, shape.count, header.index, shape.size,
        shape.block, CODE_NAME, header.wrap, header.sha256,
    )  # fmt: skip
    return " ".join(f"{name}={value}" for name, value in zip(_HEADER_FIELDS, values, strict=True))


def serialize_block(block: VaultBlock, seed: bytes | None = None) -> bytes:
    """Return a block as it stands in a page, without a carrier: lines of ASCII. seed: a secret key to sign it."""
    words = format_header(block.header)
    lines = [BEGIN_MARKER, *words.encode().split(b" ")]
    if seed is not None:
        signature = b64encode(sign(seed, words.encode()))
        lines += [b"key=" + signing_public_key(seed).hex().encode(), b"signature=" + signature]
    lines.append(b"data")
    coded = b64encode(block.data)
    lines += [coded[at : at + _LINE_LENGTH] for at in range(0, len(coded), _LINE_LENGTH)]
    lines.append(END_MARKER)
    return b"\n".join(lines) + b"\n"


def serialized_size(block_size: int, *, signed: bool) -> int:
    """Return how many bytes `text_of` makes of a block of so many, at most: base64, line ends, words.

    >>> shape = CodeShape(64, 64, 1, 30_000)
    >>> label = BlockHeader(KIND_FILES, "0" * 16, "0" * 64, shape, "json.gz.age", 29_999, "0" * 64)
    >>> len(serialize_block(VaultBlock(label, bytes(64)), bytes(range(32)))) <= serialized_size(64, signed=True)
    True
    """
    coded = -(-block_size // 3) * 4
    return coded + -(-coded // _LINE_LENGTH) + 420 + (180 if signed else 0)


def parse_block(text: bytes) -> VaultBlock:
    """Return the block in what stands between the marks, whatever became of its line ends. Raises BadBlockError.

    A block that says it is signed, and is not by the key that it names, is `forged`.
    """
    head, found, coded = _split_header(text)
    if not found:
        raise InvalidBlockError("cut")
    words = _parse_fields(head)
    try:
        label = _parse_header(words)
    except (KeyError, ValueError):
        raise InvalidBlockError("unreadable") from None
    try:
        data = b64decode(b"".join(coded.split()), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidBlockError("damaged") from None
    if len(data) != label.shape.block or hashlib.sha256(data).hexdigest() != label.sha256:
        raise InvalidBlockError("damaged")
    if label.key is not None and not _has_valid_signature(label, words.get("signature", "")):
        raise InvalidBlockError("forged")
    return VaultBlock(label, data)


def _split_header(text: bytes) -> tuple[bytes, bool, bytes]:
    found = re.search(rb"\sdata\s", text[:4096])
    if found is None:
        return b"", False, b""
    return text[: found.start()], True, text[found.end() :]


def _parse_fields(head: bytes) -> dict[str, str]:
    words: dict[str, str] = {}
    for word in head.decode("ascii", "replace").split():
        name, _, value = word.partition("=")
        words.setdefault(name, value)
    return words


def _parse_header(words: dict[str, str]) -> BlockHeader:
    """Raise KeyError or ValueError for what describes no block of this format."""
    if words["format"] != BLOCK_FORMAT or words["code"] != CODE_NAME:
        raise ValueError(words["format"])
    shape = CodeShape(*(_parse_number(words[name]) for name in ("size", "block", "needed", "count")))
    index = _parse_number(words["index"])
    is_sound = (
        1 <= shape.needed <= shape.count <= MAX_BLOCKS
        and index < shape.count
        and BLOCK_UNIT <= shape.block <= MAX_BLOCK_BYTES
        and shape.block % BLOCK_UNIT == 0
        and 0 < shape.size <= shape.needed * shape.block
        and words["kind"] in {KIND_FILES, KIND_MANIFEST}
        and words["wrap"] in _WRAPS
    )
    if not is_sound:
        raise ValueError(index)
    key = words.get("key")
    return BlockHeader(
        words["kind"],
        _parse_hex(words["segment"], 16),
        _parse_hex(words["version"], 64),
        shape,
        words["wrap"],
        index,
        _parse_hex(words["sha256"], 64),
        None if key is None else _parse_hex(key, 64),
    )


def _parse_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise ValueError(text)
    return int(text)


def _parse_hex(text: str, length: int) -> str:
    if len(text) != length or not _HEX.fullmatch(text):
        raise ValueError(text)
    return text


def _has_valid_signature(label: BlockHeader, signature: str) -> bool:
    try:
        signed = b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        return False
    return len(signed) == 64 and is_signed(bytes.fromhex(label.key or ""), format_header(label).encode(), signed)


SCRIPT_TYPE = "application/x-unlost-vault"
"""Of `script` elements that carry blocks: no browser runs a script of a type that it does not know."""


class Carrier(StrEnum):
    """How a page carries a block. Minifiers strip comments; few touch templates, fewer scripts of unknown types."""

    COMMENT = "comment"
    TEMPLATE = "template"
    SCRIPT = "script"


_DELIMITERS = {
    Carrier.COMMENT: (b"<!-- ", b"-->\n"),
    Carrier.TEMPLATE: (b"<template>", b"</template>\n"),
    Carrier.SCRIPT: (f'<script type="{SCRIPT_TYPE}">'.encode(), b"</script>\n"),
}
MAX_CARRIER_BYTES = 60
"""Bytes that a carrier adds, at most."""


def wrap_in_carrier(text: bytes, carrier: Carrier) -> bytes:
    r"""Return the text of a block as an element or comment of a page.

    >>> wrap_in_carrier(b"x", Carrier.TEMPLATE)
    b'<template>x</template>\n'
    """
    before, after = _DELIMITERS[carrier]
    return before + text + after


_UTF16_MARKERS = {
    "utf-16-le": BEGIN_MARKER.decode().encode("utf-16-le"),
    "utf-16-be": BEGIN_MARKER.decode().encode("utf-16-be"),
}
_MAX_BLOCK_TEXT = 2 * MAX_BLOCK_BYTES


def find_blocks(body: bytes, problems: Counter[str]) -> Iterator[VaultBlock]:
    """Yield the whole blocks of a page. Its charset need not be known: blocks are ASCII, or that in UTF-16.

    problems: gets how many blocks are `cut` (the page ends in them), `damaged` (their hash says so), `forged` (their
    signature does), or `unreadable` (of no format that is known here).
    """
    for inside in _marked_texts(_decode_utf16(body), problems):
        try:
            yield parse_block(inside)
        except InvalidBlockError as error:
            problems[error.kind] += 1


def _decode_utf16(body: bytes) -> bytes:
    for charset, mark in _UTF16_MARKERS.items():
        if (at := body.find(mark)) >= 0:
            # Letters of two bytes begin at even places, unless something of odd length was put before them.
            return body[at % 2 :].decode(charset, "replace").encode("ascii", "replace")
    return body


def _marked_texts(body: bytes, problems: Counter[str]) -> Iterator[bytes]:
    at, end = body.find(BEGIN_MARKER), 0
    while at >= 0:
        start = at + len(BEGIN_MARKER)
        following = body.find(BEGIN_MARKER, start)
        if 0 <= end < start:  # else it is known, and looking for it from every beginning would take forever
            end = body.find(END_MARKER, start)
        if end < 0 or 0 <= following < end or end - start > _MAX_BLOCK_TEXT:
            problems["cut"] += 1
        else:
            yield body[start:end]
        at = following
