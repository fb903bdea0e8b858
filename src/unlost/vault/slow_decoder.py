"""Takes server files out of pages again, with Python alone: slow, and meant to outlive everything else here.

usage: python slow_decoder.py PAGE_OR_FOLDER... -o FOLDER

Writes what was coded, as it was: `SEGMENT.tar.gz` to unpack with tar, `….tar.gz.age` to open with age first. It needs
nothing of unlost; docs/vault-format.md explains every step. Pages must be as they were served, not compressed.
"""

import base64
import hashlib
import pathlib
import re
import sys

MARKED = re.compile(rb"BEGIN_FILE_RECOVERY(\s(?:(?!BEGIN_FILE_RECOVERY).)*?)END_FILE_RECOVERY", re.DOTALL)

# --- The field GF(2^16): numbers of 16 bits; adding is "exclusive or", multiplying is by logarithms. ---

POLYNOMIAL = 0x1002D
BASIS = (
    0x0001, 0xACCA, 0x3C0E, 0x163E, 0xC582, 0xED2E, 0x914C, 0x4012,
    0x6C98, 0x10D8, 0x6A72, 0xB900, 0xFDB8, 0xFB34, 0xFF38, 0x991E,
)  # fmt: skip
ORDER = 65535  # of the numbers that are not 0


def tables() -> tuple[list[int], list[int]]:
    """Return powers of the generator and logarithms, of numbers as blocks have them: sums of members of BASIS."""
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


POWER, LOG = tables()


def times(block: bytes, log_factor: int) -> bytes:
    """Return a block multiplied by a number that is not 0, given by its logarithm.

    In each 64 bytes, 32 numbers: byte i is the low half of number i, byte 32 + i its high half.
    """

    def column(shift: int) -> list[int]:
        return [POWER[(LOG[byte << shift] + log_factor) % ORDER] if byte else 0 for byte in range(256)]

    low, high = column(0), column(8)
    ll, lh = bytes(value & 255 for value in low), bytes(value >> 8 for value in low)
    hl, hh = bytes(value & 255 for value in high), bytes(value >> 8 for value in high)
    made = bytearray()
    for at in range(0, len(block), 64):
        lows, highs = block[at : at + 32], block[at + 32 : at + 64]
        made += plus(lows.translate(ll), highs.translate(hl)) + plus(lows.translate(lh), highs.translate(hh))
    return bytes(made)


def plus(one: bytes, other: bytes) -> bytes:
    """Return the sum of two pieces of the same length."""
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).to_bytes(len(one), "big")


# --- The code: a polynomial through points. ---


def decode(blocks: dict[int, bytes], needed: int, size: int) -> bytes:
    """Return what was coded, from at least `needed` blocks by their numbers.

    Let m be the smallest power of 2 that is not below `needed`. For each place in the blocks there is one polynomial of
    a degree below m. At point i it is what block i has there, for i < needed; at points needed to m - 1 it is 0; at
    point m + j it is what block needed + j has. So any `needed` blocks and the zeros determine it (Lagrange).
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
    # The logarithm of the product of (point - other) over all other known points.
    apart = {index: sum(LOG[point(index) ^ other] for other in known if other != point(index)) for index in chosen}
    for index in missing:
        whole = sum(LOG[index ^ other] for other in known)
        total = bytes(len(blocks[chosen[0]]))
        for given in chosen:
            factor = whole - LOG[index ^ point(given)] - apart[given]
            total = plus(total, times(blocks[given], factor % ORDER))
        content[index] = total
    return b"".join(content[index] for index in range(needed))[:size]


# --- Pages. ---

WRAPS = ("tar.gz", "json.gz")


def found_in(page: bytes) -> list[tuple[dict[str, str], bytes]]:
    """Return the blocks of a page that are whole: their words, by name, and their bytes."""
    for charset in ("utf-16-le", "utf-16-be"):
        if "BEGIN_FILE_RECOVERY".encode(charset) in page:
            page = page.decode(charset, "replace").encode("ascii", "replace")
    blocks = []
    for inside in MARKED.findall(page):
        head, _, text = re.sub(rb"\s+", b" ", inside).partition(b" data ")
        words = dict(word.partition("=")[::2] for word in head.decode("ascii", "replace").split())
        try:
            data = base64.b64decode(text.replace(b" ", b""), validate=True)
        except ValueError:
            continue
        if is_sound(words, len(data)) and hashlib.sha256(data).hexdigest() == words.get("sha256"):
            blocks.append((words, data))
    return blocks


def is_sound(words: dict[str, str], length: int) -> bool:
    """Return whether words describe a block of so many bytes: anybody may put others into pages."""
    names = ("needed", "count", "index", "size", "block")
    if words.get("format") != "unlost-vault-1" or words.get("wrap", "").removesuffix(".age") not in WRAPS:
        return False
    if not all(re.fullmatch("[0-9]{1,15}", words.get(name, "")) for name in names):
        return False
    if not re.fullmatch("[0-9a-f]{16} [0-9a-f]{64}", f"{words.get('segment')} {words.get('version')}"):
        return False
    needed, count, index, size, block = (int(words[name]) for name in names)
    return 1 <= needed <= count <= 30_000 and index < count and block == length and 0 < size <= needed * block


def main(arguments: list[str]) -> None:
    """Read the pages, and write one file for each version of each segment that can be had."""
    if "-o" not in arguments[:-1]:
        raise SystemExit(__doc__)
    at = arguments.index("-o")
    target = pathlib.Path(arguments[at + 1])
    target.mkdir(parents=True, exist_ok=True)
    groups: dict[tuple[str, ...], dict[int, bytes]] = {}
    for name in arguments[:at] + arguments[at + 2 :]:
        place = pathlib.Path(name)
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            for words, data in found_in(file.read_bytes()) if file.is_file() else []:
                fields = ("kind", "segment", "version", "needed", "size", "block", "wrap")
                key = tuple(words.get(field, "") for field in fields)
                groups.setdefault(key, {})[int(words["index"])] = data
    for (kind, segment, version, needed, size, _, wrap), blocks in groups.items():
        if len(blocks) < int(needed):
            print(f"{kind} {segment}: {len(blocks)} of {needed} blocks of version {version[:12]}")
            continue
        content = decode(blocks, int(needed), int(size))
        if hashlib.sha256(content).hexdigest() != version:
            print(f"{kind} {segment}: a block of version {version[:12]} is forged")
            continue
        safe = re.sub("[^0-9a-z.]", "", f"{segment}.{version[:12]}.{wrap}")
        (target / safe).write_bytes(content)
        print(f"{kind} {segment}: {safe}, {len(content)} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
