"""Python model of filters: a reader written from docs/filter.md, and XXH64.

In tests the expected content of a filter is a set; this module checks the documented format.
"""

import struct
from dataclasses import dataclass

_MASK = (1 << 64) - 1
_PRIMES = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_GOLDEN = 0x9E3779B97F4A7C15


def _rotated(number: int, by: int) -> int:
    return ((number << by) | (number >> (64 - by))) & _MASK


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _PRIMES[1]) & _MASK, 31) * _PRIMES[0] & _MASK


def xxh64(data: bytes) -> int:
    """Return the XXH64 of some bytes with seed 0."""
    one, two, three, four, five = _PRIMES
    at, hashed = 0, five
    if len(data) >= 32:
        lanes = [(one + two) & _MASK, two, 0, -one & _MASK]
        while at + 32 <= len(data):
            lanes = [_round(lane, word) for lane, word in zip(lanes, struct.unpack_from("<4Q", data, at), strict=True)]
            at += 32
        hashed = sum(_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            hashed = ((hashed ^ _round(0, lane)) * one + four) & _MASK
    hashed = (hashed + len(data)) & _MASK
    while at + 8 <= len(data):
        (word,) = struct.unpack_from("<Q", data, at)
        hashed = (_rotated(hashed ^ _round(0, word), 27) * one + four) & _MASK
        at += 8
    if at + 4 <= len(data):
        (half,) = struct.unpack_from("<I", data, at)
        hashed = (_rotated(hashed ^ (half * one & _MASK), 23) * two + three) & _MASK
        at += 4
    for byte in data[at:]:
        hashed = _rotated(hashed ^ (byte * five & _MASK), 11) * one & _MASK
    hashed = (hashed ^ (hashed >> 33)) * two & _MASK
    hashed = (hashed ^ (hashed >> 29)) * three & _MASK
    return hashed ^ (hashed >> 32)


@dataclass(frozen=True)
class Partition:
    """A binary fuse filter: seed, start positions, segment length, and fingerprints as one integer."""

    keys: int
    seed: int
    starts: int
    length: int
    fingerprints: int

    def has(self, hashed: int, bits: int) -> bool:
        """Return whether the four fingerprints come to the key's own."""
        if not self.starts:
            return False
        mixed = hashed ^ (self.seed * _GOLDEN & _MASK)
        mixed = (mixed ^ (mixed >> 33)) * 0xFF51AFD7ED558CCD & _MASK
        mixed = (mixed ^ (mixed >> 33)) * 0xC4CEB9FE1A85EC53 & _MASK
        mixed ^= mixed >> 33
        first = mixed * self.starts * self.length >> 64
        found = mixed * _GOLDEN % (1 << 64) >> (64 - bits)
        for segment, by in enumerate((None, 36, 18, 0)):
            offset = 0 if by is None else (mixed >> by) % self.length
            slot = (first + segment * self.length) ^ offset
            found ^= (self.fingerprints >> (slot * bits)) % (1 << bits)
        return found == 0


@dataclass(frozen=True)
class Layer:
    """One filter of a chain: its header and its partitions in order."""

    header: dict[str, str]
    partitions: list[Partition]

    def has(self, hashed: int) -> bool:
        """Return whether the partition of the hash's first bits has it."""
        number = hashed * len(self.partitions) >> 64
        return self.partitions[number].has(hashed, int(self.header["bits"]))


def read(data: bytes) -> list[Layer]:
    """Return the layers of a file, with all checksums verified."""
    layers = []
    while data:
        text, _, _ = data.partition(b"\n\n")
        header = dict(line.split(" ", 1) for line in text.decode().splitlines())
        assert header["unlost-filter"] == "1"
        at = len(text) + 2
        entries = list(struct.iter_unpack("<QIIII", data[at : at + 24 * int(header["partitions"])]))
        at += 24 * len(entries)
        assert struct.unpack_from("<Q", data, at) == (xxh64(data[:at]),)
        at += 8
        end = at + int(header["bytes"])
        partitions = []
        for checksum, keys, seed, starts, log in entries:
            slots = (starts + 3) << log if starts else 0
            size = (slots * int(header["bits"]) + 7) // 8 + 3
            assert xxh64(data[at : at + size]) == checksum
            partitions.append(Partition(keys, seed, starts, 1 << log, int.from_bytes(data[at : at + size], "little")))
            at += size
        assert at == end
        assert sum(partition.keys for partition in partitions) == int(header["keys"])
        layers.append(Layer(header, partitions))
        data = data[end:]
    return layers


def has(layers: list[Layer], key: str) -> bool:
    """Return whether the combined fingerprints equal the key's."""
    if layers[0].header["key"] == "hxpx":
        key = key.partition("?")[0]
    return any(layer.has(xxh64(key.encode())) for layer in layers)
