"""Python model of Bob Jenkins' hash of 1996."""

_ALL = 0xFFFFFFFF


def jenkins(data: bytes) -> int:
    """Return the hash of some bytes with initial value 0."""
    a = b = 0x9E3779B9
    c = 0
    whole = len(data) // 12 * 12
    for place in range(0, whole, 12):
        a += int.from_bytes(data[place : place + 4], "little")
        b += int.from_bytes(data[place + 4 : place + 8], "little")
        c += int.from_bytes(data[place + 8 : place + 12], "little")
        a, b, c = _mixed(a, b, c)
    rest = data[whole:]
    a += int.from_bytes(rest[:4], "little")
    b += int.from_bytes(rest[4:8], "little")
    c += len(data) + (int.from_bytes(rest[8:], "little") << 8)
    return _mixed(a, b, c)[2]


def _mixed(a: int, b: int, c: int) -> tuple[int, int, int]:
    a, b, c = a & _ALL, b & _ALL, c & _ALL
    for first, second, third in ((13, 8, 13), (12, 16, 5), (3, 10, 15)):
        a = ((a - b - c) & _ALL) ^ (c >> first)
        b = ((b - c - a) & _ALL) ^ ((a << second) & _ALL)
        c = ((c - a - b) & _ALL) ^ (b >> third)
    return a, b, c
