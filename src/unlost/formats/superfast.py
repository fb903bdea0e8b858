"""Paul Hsieh's SuperFastHash, by which Chromium tells whether the records of its cache are whole."""

_UINT32_MASK = 0xFFFFFFFF


def super_fast_hash(data: bytes) -> int:
    """Return the hash of some bytes. It guards against torn writes, not against anybody.

    Slow for more than some hundred bytes, which is what keys and records have.
    """
    if not data:
        return 0
    value = len(data)
    whole = len(data) // 4 * 4
    for place in range(0, whole, 4):
        value = (value + int.from_bytes(data[place : place + 2], "little")) & _UINT32_MASK
        other = int.from_bytes(data[place + 2 : place + 4], "little") << 11 ^ value
        value = (value << 16 ^ other) & _UINT32_MASK
        value = (value + (value >> 11)) & _UINT32_MASK
    value = _mix_tail(value, data[whole:])
    for left, right in ((3, 5), (4, 17), (25, 6)):
        value ^= value << left & _UINT32_MASK
        value = (value + (value >> right)) & _UINT32_MASK
    return value


def _mix_tail(value: int, rest: bytes) -> int:
    """Mix in the last one to three bytes, of which an odd one has a sign."""
    if not rest:
        return value
    odd = int.from_bytes(rest[-1:], "little", signed=True)
    if len(rest) == 1:
        left, right = 10, 1
        value = (value + odd) & _UINT32_MASK
    else:
        left, right = (16, 11) if len(rest) == 3 else (11, 17)
        value = (value + int.from_bytes(rest[:2], "little")) & _UINT32_MASK
    value = (value ^ value << left) & _UINT32_MASK
    if len(rest) == 3:
        value = (value ^ odd << 18) & _UINT32_MASK
    return (value + (value >> right)) & _UINT32_MASK
