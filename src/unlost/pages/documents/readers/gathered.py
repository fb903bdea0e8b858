"""Text that is gathered piece by piece, and no more of it than may be."""

import re
from enum import Enum, auto

from unlost.pages.text import Text

_BLANKS = re.compile(r"[\s\x00-\x1f]+")
_SOFT_HYPHEN = "\xad"  # where a word may be parted, whether or not it is

# Blanks are made one in blocks: all at once would take many times the memory of the text.
_BLOCK = 1 << 20


class Where(Enum):
    """Where a piece of text stands: so a document has the same words in the same order whichever format it is in."""

    TEXT = auto()
    NOTES = auto()
    """Footnotes and endnotes, notes of a speaker: behind the text."""
    MARGINS = auto()
    """Headers and footers: behind the notes."""


class FullError(Exception):
    """Enough was gathered: nothing more is to be read."""


class Gathered:
    """Words in reading order: the text, then notes, then headers and footers.

    most: characters; the piece that goes beyond them is cut off.
    is_cut: whether something is missing.
    """

    def __init__(self, most: int) -> None:
        self._room = most
        self._pieces: dict[Where, list[str]] = {where: [] for where in Where}
        self.is_cut = False

    def add(self, piece: str, where: Where = Where.TEXT) -> None:
        """Add a piece, which may be a part of a word. Raises FullError once there is no more room."""
        kept = piece[: self._room]
        self._pieces[where].append(kept)
        self._room -= len(kept)
        if len(kept) < len(piece):
            self.is_cut = True
            raise FullError

    def text(self) -> Text:
        """Return what was gathered, with one blank between two words."""
        whole = "\n".join("".join(self._pieces[where]) for where in Where)
        blocks = (whole[at : at + _BLOCK] for at in range(0, len(whole), _BLOCK))
        words = "".join(_BLANKS.sub(" ", block.replace(_SOFT_HYPHEN, "")) for block in blocks)
        return Text(words.strip(), self.is_cut)
