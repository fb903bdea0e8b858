"""The text of a page."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Text:
    """What people read in a page.

    text: its words in reading order, without markup.
    cut: whether there is more of it than this.
    """

    text: str
    cut: bool
