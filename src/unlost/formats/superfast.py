"""Paul Hsieh's SuperFastHash, by which Chromium tells whether the records of its cache are whole."""

_ALL = 0xFFFFFFFF


def superfast(data: bytes) -> int:
    """Return the hash of some bytes. It guards against torn writes, not against anybody.

    Slow for more than some hundred bytes, which is what keys and records have.
    """
    if not data:
        return 0
    value = len(data)
    whole = len(data) // 4 * 4
    for place in range(0, whole, 4):
        value = (value + int.from_bytes(data[place : place + 2], "little")) & _ALL
        other = int.from_bytes(data[place + 2 : place + 4], "little") << 11 ^ value
        value = (value << 16 ^ other) & _ALL
        value = (value + (value >> 11)) & _ALL
    value = _with_rest(value, data[whole:])
    for left, right in ((3, 5), (4, 17), (25, 6)):
        value ^= value << left & _ALL
        value = (value + (value >> right)) & _ALL
    return value


def _with_rest(value: int, rest: bytes) -> int:
    """Mix in the last one to three bytes, of which an odd one has a sign."""
    if not rest:
        return value
    odd = int.from_bytes(rest[-1:], "little", signed=True)
    if len(rest) == 1:
        left, right = 10, 1
        value = (value + odd) & _ALL
    else:
        left, right = (16, 11) if len(rest) == 3 else (11, 17)
        value = (value + int.from_bytes(rest[:2], "little")) & _ALL
    value = (value ^ value << left) & _ALL
    if len(rest) == 3:
        value = (value ^ odd << 18) & _ALL
    return (value + (value >> right)) & _ALL
