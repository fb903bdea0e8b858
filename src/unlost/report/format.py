"""Formatting of numbers, shares and untrusted text; the `ReportTable` model; the supported languages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from unlost.errors import UsageError


def format_share(value: float | None) -> str:
    """Return a share as a whole percentage, which is 0 or 100 only if exact; `n/a` for None.

    >>> format_share(0.684), format_share(0.999), format_share(0.0001), format_share(1.0), format_share(None)
    ('68 %', '> 99 %', '< 1 %', '100 %', 'n/a')
    """
    if value is None:
        return "n/a"
    if 0 < value < 0.005:
        return "< 1 %"
    if 0.995 <= value < 1:
        return "> 99 %"
    return f"{value:.0%}".replace("%", " %")


def escape_unprintable(text: str) -> str:
    r"""Return untrusted text with all unprintable characters escaped.

    >>> escape_unprintable("http://a.example/\u202egnp.exe\x1b")
    'http://a.example/\\u202egnp.exe\\x1b'
    """
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def format_count(count: int, what: str) -> str:
    """Return a count with its noun; the plural must end in `s`.

    >>> format_count(1, "request"), format_count(1_200, "request")
    ('1 request', '1,200 requests')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table of texts. Untrusted text in it is not escaped yet.

    Attributes:
        title: What the table shows.
        heads: Column headings.
        rows: Rows of cells.
        note: How to read the table; may be empty.
        words: Indexes of columns that contain text rather than numbers; the first always does.
    """

    title: str
    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str = ""
    words: frozenset[int] = frozenset({0})


LANGUAGES = ("en", "de")
"""Languages of pages and emails; the first is the default."""


_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def parse_byte_size(text: str) -> int:
    """Parse a size in bytes. 1 KB is 1,024 bytes, as in the dissertation. Raises UsageError.

    >>> parse_byte_size("50KB"), parse_byte_size("1.5 MiB"), parse_byte_size("200")
    (51200, 1572864, 200)
    """
    match = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*([kmg]?)(?:i?b)?\s*", text, re.IGNORECASE)
    if match is None:
        raise UsageError(f"{ascii(text)[:40]}: expected a number of bytes, as in 50KB, 1MB or 1GB")
    return int(float(match[1]) * _FACTORS[match[2].lower()])


def format_byte_size(count: int) -> str:
    """Return a size in bytes in human-readable form.

    >>> format_byte_size(999), format_byte_size(51200), format_byte_size(3 << 20)
    ('999 B', '50.0 KB', '3.0 MB')
    """
    if count < 1 << 10:
        return f"{count:,} B"
    for unit, size in (("KB", 1 << 10), ("MB", 1 << 20)):
        if count < size << 10:
            return f"{count / size:,.1f} {unit}"
    return f"{count / (1 << 30):,.1f} GB"
