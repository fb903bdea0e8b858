"""Numbers of bytes as people write them."""

import re

from unlost.errors import UsageError

_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def parse_byte_size(text: str) -> int:
    """Return a number of bytes. A KB has 1,024, as the dissertation's have. Raises UsageError.

    >>> bytes_of("50KB"), bytes_of("1.5 MiB"), bytes_of("200")
    (51200, 1572864, 200)
    """
    found = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*([kmg]?)(?:i?b)?\s*", text, re.IGNORECASE)
    if found is None:
        raise UsageError(f"{ascii(text)[:40]}: expected a number of bytes, as in 50KB, 1MB or 1GB")
    return int(float(found[1]) * _FACTORS[found[2].lower()])


def format_byte_size(count: int) -> str:
    """Return a number of bytes for people.

    >>> shown_bytes(999), shown_bytes(51200), shown_bytes(3 << 20)
    ('999 B', '50.0 KB', '3.0 MB')
    """
    if count < 1 << 10:
        return f"{count:,} B"
    for unit, size in (("KB", 1 << 10), ("MB", 1 << 20)):
        if count < size << 10:
            return f"{count / size:,.1f} {unit}"
    return f"{count / (1 << 30):,.1f} GB"
