"""Serialization of a block: header fields, base64 data, an optional signature, and the carrier that hides it in a page.

`find_blocks` extracts all valid blocks of a page. The format is specified in docs/vault-format.md.
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
"""Delimiters of blocks, as in the dissertation (its Figure 51)."""
BLOCK_FORMAT = "unlost-vault-1"
CODE_NAME = "rs16"
KIND_FILES, KIND_MANIFEST = "files", "manifest"
"""The contents of a block: files, or the manifest of all files."""
MAX_BLOCK_BYTES = 16 << 20
"""Larger than any archive's page limit, and small enough for memory."""
_LINE_LENGTH = 76  # characters of base64, as in MIME (RFC 2045)
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

SCRIPT_TYPE = "application/x-unlost-vault"
"""Type of `script` elements that carry blocks: browsers do not run scripts of unknown types."""
MAX_CARRIER_BYTES = 60
"""Maximum number of bytes that a carrier adds."""
_UTF16_MARKERS = {
    "utf-16-le": BEGIN_MARKER.decode().encode("utf-16-le"),
    "utf-16-be": BEGIN_MARKER.decode().encode("utf-16-be"),
}
_MAX_BLOCK_TEXT = 2 * MAX_BLOCK_BYTES


class InvalidBlockError(Exception):
    """The text between the markers is not a valid block.

    Attributes:
        kind: Error code, for counting.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class BlockHeader:
    """The header of a block. Blocks of one version differ only in `index` and `sha256`.

    Attributes:
        kind: `KIND_FILES` or `KIND_MANIFEST`.
        segment: Id of the segment: 16 hexadecimal digits.
        version: SHA-256 of the coded content.
        shape: Parameters of the erasure code.
        wrap: Type of the coded content, as a file extension.
        index: Number of the block, from 0.
        sha256: Hash of the block's own bytes.
        key: Public key of the signature in hexadecimal digits; None if the block is not signed.
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
        """The fields that blocks must share to be decoded together."""
        return self.kind, self.segment, self.version, self.shape.size, self.shape.block, self.shape.needed


@dataclass(frozen=True, slots=True)
class VaultBlock:
    """A block: header and data."""

    header: BlockHeader
    data: bytes


def format_block_header(header: BlockHeader) -> str:
    """Return the header fields as text, in their fixed order. This text is what is signed."""
    shape = header.shape
    values = (
        BLOCK_FORMAT, header.kind, header.segment, header.version, shape.needed, shape.count, header.index, shape.size,
        shape.block, CODE_NAME, header.wrap, header.sha256,
    )  # fmt: skip
    return " ".join(f"{name}={value}" for name, value in zip(_HEADER_FIELDS, values, strict=True))


def serialize_block(block: VaultBlock, seed: bytes | None = None) -> bytes:
    """Return a block as lines of ASCII, without a carrier.

    Args:
        block: The block.
        seed: Secret key to sign the block with; None for no signature.
    """
    header_text = format_block_header(block.header)
    lines = [BEGIN_MARKER, *header_text.encode().split(b" ")]
    if seed is not None:
        signature = b64encode(sign(seed, header_text.encode()))
        lines += [b"key=" + signing_public_key(seed).hex().encode(), b"signature=" + signature]
    lines.append(b"data")
    encoded = b64encode(block.data)  # not the URL-safe alphabet: XML comments must not contain `--`
    lines += [encoded[start : start + _LINE_LENGTH] for start in range(0, len(encoded), _LINE_LENGTH)]
    lines.append(END_MARKER)
    return b"\n".join(lines) + b"\n"


def serialized_size(block_size: int, *, signed: bool) -> int:
    """Return the maximum number of bytes that `serialize_block` returns for a block of `block_size` bytes.

    >>> shape = CodeShape(64, 64, 1, 30_000)
    >>> header = BlockHeader(KIND_FILES, "0" * 16, "0" * 64, shape, "json.gz.age", 29_999, "0" * 64)
    >>> len(serialize_block(VaultBlock(header, bytes(64)), bytes(range(32)))) <= serialized_size(64, signed=True)
    True
    """
    encoded_size = -(-block_size // 3) * 4
    return encoded_size + -(-encoded_size // _LINE_LENGTH) + 420 + (180 if signed else 0)


def parse_block(text: bytes) -> VaultBlock:
    """Parse the text between the markers; any white space may separate its fields.

    Raises:
        InvalidBlockError: The block is `cut`, `unreadable` (unknown format), `damaged` (wrong hash), or `forged`
            (the signature does not match the key that the block names).
    """
    head, has_data, encoded = _split_header(text)
    if not has_data:
        raise InvalidBlockError("cut")
    fields = _parse_fields(head)
    try:
        header = _parse_header(fields)
    except (KeyError, ValueError):
        raise InvalidBlockError("unreadable") from None
    try:
        data = b64decode(b"".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidBlockError("damaged") from None
    if len(data) != header.shape.block or hashlib.sha256(data).hexdigest() != header.sha256:
        raise InvalidBlockError("damaged")
    if header.key is not None and not _has_valid_signature(header, fields.get("signature", "")):
        raise InvalidBlockError("forged")
    return VaultBlock(header, data)


def _split_header(text: bytes) -> tuple[bytes, bool, bytes]:
    match = re.search(rb"\sdata\s", text[:4096])
    if match is None:
        return b"", False, b""
    return text[: match.start()], True, text[match.end() :]


def _parse_fields(head: bytes) -> dict[str, str]:
    fields: dict[str, str] = {}
    for word in head.decode("ascii", "replace").split():
        name, _, value = word.partition("=")
        fields.setdefault(name, value)
    return fields


def _parse_header(fields: dict[str, str]) -> BlockHeader:
    """Parse the header fields. Raises KeyError or ValueError if they are not of this format."""
    if fields["format"] != BLOCK_FORMAT or fields["code"] != CODE_NAME:
        raise ValueError(fields["format"])
    shape = CodeShape(*(_parse_number(fields[name]) for name in ("size", "block", "needed", "count")))
    index = _parse_number(fields["index"])
    is_valid = (
        1 <= shape.needed <= shape.count <= MAX_BLOCKS
        and index < shape.count
        and BLOCK_UNIT <= shape.block <= MAX_BLOCK_BYTES
        and shape.block % BLOCK_UNIT == 0
        and 0 < shape.size <= shape.needed * shape.block
        and fields["kind"] in {KIND_FILES, KIND_MANIFEST}
        and fields["wrap"] in _WRAPS
    )
    if not is_valid:
        raise ValueError(index)
    key = fields.get("key")
    return BlockHeader(
        fields["kind"],
        _parse_hex(fields["segment"], 16),
        _parse_hex(fields["version"], 64),
        shape,
        fields["wrap"],
        index,
        _parse_hex(fields["sha256"], 64),
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


def _has_valid_signature(header: BlockHeader, signature: str) -> bool:
    try:
        signature_bytes = b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        return False
    return len(signature_bytes) == 64 and is_signed(
        bytes.fromhex(header.key or ""), format_block_header(header).encode(), signature_bytes
    )


class Carrier(StrEnum):
    """How a page carries a block. Minifiers strip comments; few change templates, fewer scripts of unknown types."""

    COMMENT = "comment"
    TEMPLATE = "template"
    SCRIPT = "script"


_DELIMITERS = {
    Carrier.COMMENT: (b"<!-- ", b"-->\n"),
    Carrier.TEMPLATE: (b"<template>", b"</template>\n"),
    Carrier.SCRIPT: (f'<script type="{SCRIPT_TYPE}">'.encode(), b"</script>\n"),
}


def wrap_in_carrier(text: bytes, carrier: Carrier) -> bytes:
    r"""Return a serialized block as an element or comment of a page.

    >>> wrap_in_carrier(b"x", Carrier.TEMPLATE)
    b'<template>x</template>\n'
    """
    before, after = _DELIMITERS[carrier]
    return before + text + after


def find_blocks(body: bytes, problems: Counter[str]) -> Iterator[VaultBlock]:
    """Yield the valid blocks of a page in any encoding: blocks are ASCII, or ASCII converted to UTF-16.

    Args:
        body: The page.
        problems: Counts invalid blocks by error code: `cut` (the page ends in them), `damaged` (wrong hash), `forged`
            (invalid signature), `unreadable` (unknown format).
    """
    for text in _marked_texts(_decode_utf16(body), problems):
        try:
            yield parse_block(text)
        except InvalidBlockError as error:
            problems[error.kind] += 1


def _decode_utf16(body: bytes) -> bytes:
    for charset, mark in _UTF16_MARKERS.items():
        if (offset := body.find(mark)) >= 0:
            # UTF-16 code units start at even offsets, unless something of odd length was inserted before them.
            return body[offset % 2 :].decode(charset, "replace").encode("ascii", "replace")
    return body


def _marked_texts(body: bytes, problems: Counter[str]) -> Iterator[bytes]:
    begin, end = body.find(BEGIN_MARKER), 0
    while begin >= 0:
        start = begin + len(BEGIN_MARKER)
        next_begin = body.find(BEGIN_MARKER, start)
        if 0 <= end < start:  # otherwise the end is still valid; searching from every marker would be quadratic
            end = body.find(END_MARKER, start)
        if end < 0 or 0 <= next_begin < end or end - start > _MAX_BLOCK_TEXT:
            problems["cut"] += 1
        else:
            yield body[start:end]
        begin = next_begin
