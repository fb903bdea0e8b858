"""Recovers server files from pages with the Python standard library alone.

usage: python slow_decoder.py PAGE_OR_FOLDER... -o FOLDER

Writes the content of each segment: `SEGMENT.tar.gz`, to be unpacked with tar, or `….tar.gz.age`, to be decrypted with
age first. This file does not depend on unlost and is meant to outlive it; docs/vault-format.md explains every step.
Pages must be as served and without content coding.
"""

import base64
import hashlib
import pathlib
import re
import sys

MARKED_TEXT = re.compile(rb"BEGIN_FILE_RECOVERY(\s(?:(?!BEGIN_FILE_RECOVERY).)*?)END_FILE_RECOVERY", re.DOTALL)

# --- The field GF(2^16): 16-bit numbers. Addition is XOR; multiplication adds logarithms. ---

POLYNOMIAL = 0x1002D
BASIS = (
    0x0001, 0xACCA, 0x3C0E, 0x163E, 0xC582, 0xED2E, 0x914C, 0x4012,
    0x6C98, 0x10D8, 0x6A72, 0xB900, 0xFDB8, 0xFB34, 0xFF38, 0x991E,
)  # fmt: skip
ORDER = 65535  # order of the multiplicative group


def make_tables() -> tuple[list[int], list[int]]:
    """Return the powers of the generator, and the logarithms. Numbers are in the basis that blocks use, BASIS."""
    plain_log = [0] * 65536
    state = 1
    for power in range(ORDER):
        plain_log[state] = power
        state <<= 1
        if state > ORDER:
            state ^= POLYNOMIAL
    plain = [0] * 65536
    for bit, member in enumerate(BASIS):
        for number in range(1 << bit):
            plain[number | 1 << bit] = plain[number] ^ member
    log = [plain_log[value] for value in plain]
    power_of = [0] * ORDER
    for number in range(1, 65536):
        power_of[log[number]] = number
    return power_of, log


POWER, LOG = make_tables()


def multiply(block: bytes, log_factor: int) -> bytes:
    """Return a block multiplied by a number other than 0, given by its logarithm.

    Each 64 bytes contain 32 numbers: byte i is the low byte of number i, and byte 32 + i its high byte.
    """

    def column(shift: int) -> list[int]:
        return [POWER[(LOG[byte << shift] + log_factor) % ORDER] if byte else 0 for byte in range(256)]

    low, high = column(0), column(8)
    ll, lh = bytes(value & 255 for value in low), bytes(value >> 8 for value in low)
    hl, hh = bytes(value & 255 for value in high), bytes(value >> 8 for value in high)
    product = bytearray()
    for start in range(0, len(block), 64):
        lows, highs = block[start : start + 32], block[start + 32 : start + 64]
        product += add(lows.translate(ll), highs.translate(hl)) + add(lows.translate(lh), highs.translate(hh))
    return bytes(product)


def add(one: bytes, other: bytes) -> bytes:
    """Return the sum of two byte strings of the same length."""
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).to_bytes(len(one), "big")


# --- The erasure code: interpolation of polynomials. ---


def decode(blocks: dict[int, bytes], needed: int, size: int) -> bytes:
    """Return the coded content from at least `needed` blocks, by index.

    Let m be the smallest power of 2 that is at least `needed`. The numbers at one position of all blocks are values of
    one polynomial of a degree below m: block i is its value at point i for i < needed, and block needed + j its value
    at point m + j. At the points from needed to m - 1 it is 0. So any `needed` blocks and the zeros determine it, by
    Lagrange interpolation.
    """
    m = 1 << (needed - 1).bit_length()
    chosen = sorted(blocks)[:needed]
    if len(chosen) < needed:
        raise SystemExit(f"{needed - len(chosen)} more blocks are needed")

    def point(index: int) -> int:
        return index if index < needed else m + index - needed

    known = [point(index) for index in chosen] + list(range(needed, m))
    missing = [index for index in range(needed) if index not in blocks]
    content = {index: blocks[index] for index in chosen if index < needed}
    # Denominators of the Lagrange polynomials: logarithms of the products of (point - other) over all other points.
    denominators = {
        index: sum(LOG[point(index) ^ other] for other in known if other != point(index)) for index in chosen
    }
    for index in missing:
        numerator = sum(LOG[index ^ other] for other in known)
        total = bytes(len(blocks[chosen[0]]))
        for other in chosen:
            factor = numerator - LOG[index ^ point(other)] - denominators[other]
            total = add(total, multiply(blocks[other], factor % ORDER))
        content[index] = total
    return b"".join(content[index] for index in range(needed))[:size]


# --- Pages. ---

WRAPS = ("tar.gz", "json.gz")


def find_blocks(page: bytes) -> list[tuple[dict[str, str], bytes]]:
    """Return the header fields and the data of each valid block of a page."""
    for charset in ("utf-16-le", "utf-16-be"):
        if "BEGIN_FILE_RECOVERY".encode(charset) in page:
            page = page.decode(charset, "replace").encode("ascii", "replace")
    blocks = []
    for text in MARKED_TEXT.findall(page):
        head, _, encoded = re.sub(rb"\s+", b" ", text).partition(b" data ")
        header = dict(field.partition("=")[::2] for field in head.decode("ascii", "replace").split())
        try:
            data = base64.b64decode(encoded.replace(b" ", b""), validate=True)
        except ValueError:
            continue
        if is_valid_header(header, len(data)) and hashlib.sha256(data).hexdigest() == header.get("sha256"):
            blocks.append((header, data))
    return blocks


def is_valid_header(header: dict[str, str], length: int) -> bool:
    """Return whether a header describes a block of `length` bytes. Pages may contain forged blocks."""
    names = ("needed", "count", "index", "size", "block")
    if header.get("format") != "unlost-vault-1" or header.get("wrap", "").removesuffix(".age") not in WRAPS:
        return False
    if not all(re.fullmatch("[0-9]{1,15}", header.get(name, "")) for name in names):
        return False
    if not re.fullmatch("[0-9a-f]{16} [0-9a-f]{64}", f"{header.get('segment')} {header.get('version')}"):
        return False
    needed, count, index, size, block = (int(header[name]) for name in names)
    return 1 <= needed <= count <= 30_000 and index < count and block == length and 0 < size <= needed * block


def main(arguments: list[str]) -> None:
    """Read pages, and write one file for each version of each segment that can be decoded."""
    if "-o" not in arguments[:-1]:
        raise SystemExit(__doc__)
    position = arguments.index("-o")
    target = pathlib.Path(arguments[position + 1])
    target.mkdir(parents=True, exist_ok=True)
    groups: dict[tuple[str, ...], dict[int, bytes]] = {}
    for name in arguments[:position] + arguments[position + 2 :]:
        path = pathlib.Path(name)
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            for header, data in find_blocks(file.read_bytes()) if file.is_file() else []:
                fields = ("kind", "segment", "version", "needed", "size", "block", "wrap")
                key = tuple(header.get(field, "") for field in fields)
                groups.setdefault(key, {})[int(header["index"])] = data
    for (kind, segment, version, needed, size, _, wrap), blocks in groups.items():
        if len(blocks) < int(needed):
            print(f"{kind} {segment}: {len(blocks)} of {needed} blocks of version {version[:12]}")
            continue
        content = decode(blocks, int(needed), int(size))
        if hashlib.sha256(content).hexdigest() != version:
            print(f"{kind} {segment}: a block of version {version[:12]} is forged")
            continue
        file_name = re.sub("[^0-9a-z.]", "", f"{segment}.{version[:12]}.{wrap}")
        (target / file_name).write_bytes(content)
        print(f"{kind} {segment}: {file_name}, {len(content)} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
