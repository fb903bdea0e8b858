"""Formats numbers, shares and untrusted text; the `Table` model; the supported languages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from unlost.errors import UsageError


def format_share(value: float | None) -> str:
    """Return a share for people: a whole percentage that says 0 or 100 only where it is; `n/a` of nothing.

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
    r"""Return untrusted text in which nothing is hidden: whatever has no sign of its own is spelled out.

    >>> escape_unprintable("http://a.example/\u202egnp.exe\x1b")
    'http://a.example/\\u202egnp.exe\\x1b'
    """
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def format_count(count: int, what: str) -> str:
    """Return how many there are of something whose plural ends in `s`.

    >>> format_count(1, "request"), format_count(1_200, "request")
    ('1 request', '1,200 requests')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class ReportTable:
    """Rows under heads, all of them texts; other people's words in them are not yet made harmless.

    title: what it shows. note: a sentence about how to read it; empty if there is no need. words: the columns, from 0,
    that are words and not numbers; the first always is.
    """

    title: str
    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str = ""
    words: frozenset[int] = frozenset({0})


LANGUAGES = ("en", "de")
"""Those in which pages and letters are written; the first is taken where nobody says anything."""


_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def parse_byte_size(text: str) -> int:
    """Return a number of bytes. A KB has 1,024, as the dissertation's have. Raises UsageError.

    >>> parse_byte_size("50KB"), parse_byte_size("1.5 MiB"), parse_byte_size("200")
    (51200, 1572864, 200)
    """
    found = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*([kmg]?)(?:i?b)?\s*", text, re.IGNORECASE)
    if found is None:
        raise UsageError(f"{ascii(text)[:40]}: expected a number of bytes, as in 50KB, 1MB or 1GB")
    return int(float(found[1]) * _FACTORS[found[2].lower()])


def format_byte_size(count: int) -> str:
    """Return a number of bytes for people.

    >>> format_byte_size(999), format_byte_size(51200), format_byte_size(3 << 20)
    ('999 B', '50.0 KB', '3.0 MB')
    """
    if count < 1 << 10:
        return f"{count:,} B"
    for unit, size in (("KB", 1 << 10), ("MB", 1 << 20)):
        if count < size << 10:
            return f"{count / size:,.1f} {unit}"
    return f"{count / (1 << 30):,.1f} GB"
