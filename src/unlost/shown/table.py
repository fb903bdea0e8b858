"""A table of words and numbers, before anybody decides whether it is text or a page."""

from collections.abc import Sequence
from dataclasses import dataclass


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
