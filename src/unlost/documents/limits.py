"""Limits for reading one document, and the text collector that enforces the limit on text."""

import re
from dataclasses import astuple, dataclass
from enum import Enum, auto

from unlost.html.text import ExtractedText


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """What reading one document may take, whatever is in it. Whole numbers.

    body: bytes of the document.
    seconds: until its text must be there, and also of the processor's time.
    memory: bytes of address space of the process that reads it.
    unpacked: bytes that come out of its parts where they are packed.
    text: characters; what is beyond them is cut off.
    """

    body: int = 64 << 20
    seconds: int = 20
    memory: int = 1 << 30
    unpacked: int = 512 << 20
    text: int = 16 << 20

    def to_arguments(self) -> list[str]:
        """Return them as arguments of a command."""
        return [str(number) for number in astuple(self)]

    @classmethod
    def from_arguments(cls, arguments: list[str]) -> "DocumentLimits":
        """Return what `words` made these arguments of."""
        return cls(*map(int, arguments))


_BLANKS = re.compile(r"[\s\x00-\x1f]+")
_SOFT_HYPHEN = "\xad"  # where a word may be parted, whether or not it is
# Blanks are made one in blocks: all at once would take many times the memory of the text.
_BLOCK_CHARACTERS = 1 << 20


class TextSection(Enum):
    """Where a piece of text stands: so a document has the same words in the same order whichever format it is in."""

    TEXT = auto()
    NOTES = auto()
    """Footnotes and endnotes, notes of a speaker: behind the text."""
    MARGINS = auto()
    """Headers and footers: behind the notes."""


class TextLimitError(Exception):
    """Enough was gathered: nothing more is to be read."""


class TextCollector:
    """Words in reading order: the text, then notes, then headers and footers.

    most: characters; the piece that goes beyond them is cut off.
    is_cut: whether something is missing.
    """

    def __init__(self, max_characters: int) -> None:
        self._room = max_characters
        self._pieces: dict[TextSection, list[str]] = {where: [] for where in TextSection}
        self.is_truncated = False

    def add(self, piece: str, section: TextSection = TextSection.TEXT) -> None:
        """Add a piece, which may be a part of a word. Raises FullError once there is no more room."""
        kept = piece[: self._room]
        self._pieces[section].append(kept)
        self._room -= len(kept)
        if len(kept) < len(piece):
            self.is_truncated = True
            raise TextLimitError

    def text(self) -> ExtractedText:
        """Return what was gathered, with one blank between two words."""
        whole = "\n".join("".join(self._pieces[where]) for where in TextSection)
        blocks = (whole[at : at + _BLOCK_CHARACTERS] for at in range(0, len(whole), _BLOCK_CHARACTERS))
        words = "".join(_BLANKS.sub(" ", block.replace(_SOFT_HYPHEN, "")) for block in blocks)
        return ExtractedText(words.strip(), self.is_truncated)
