"""Limits for reading one document, and the text collector that enforces the limit on text."""

import re
from dataclasses import astuple, dataclass
from enum import Enum, auto

from unlost.html.text import ExtractedText

_BLANKS = re.compile(r"[\s\x00-\x1f]+")
_SOFT_HYPHEN = "\xad"
# White space is collapsed block by block: all at once would take many times the memory of the text.
_BLOCK_CHARACTERS = 1 << 20


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """Limits for reading one document, all positive integers.

    Attributes:
        body: Size of the document in bytes.
        seconds: Wall-clock time, and also CPU time, in seconds.
        memory: Address space of the reader process in bytes.
        unpacked: Total size of the decompressed parts in bytes.
        text: Length of the text in characters; longer text is truncated.
    """

    body: int = 64 << 20
    seconds: int = 20
    memory: int = 1 << 30
    unpacked: int = 512 << 20
    text: int = 16 << 20

    def to_arguments(self) -> list[str]:
        """Return the limits as command line arguments."""
        return [str(number) for number in astuple(self)]

    @classmethod
    def from_arguments(cls, arguments: list[str]) -> "DocumentLimits":
        """Reverse `to_arguments`."""
        return cls(*map(int, arguments))


class TextSection(Enum):
    """The part of a document that a text belongs to.

    Notes and margins follow the text, so that formats which store them inline and those which store them separately
    yield the same order of words.
    """

    TEXT = auto()
    NOTES = auto()
    """Footnotes, endnotes and speaker notes: after the text."""
    MARGINS = auto()
    """Headers and footers: after the notes."""


class TextLimitError(Exception):
    """The limit on text is reached; the rest of the document need not be read."""


class TextCollector:
    """Collects text in reading order: the main text, then notes, then headers and footers.

    Args:
        max_characters: Limit on the text.

    Attributes:
        is_truncated: Whether text is missing.
    """

    def __init__(self, max_characters: int) -> None:
        self._remaining = max_characters
        self._pieces: dict[TextSection, list[str]] = {section: [] for section in TextSection}
        self.is_truncated = False

    def add(self, piece: str, section: TextSection = TextSection.TEXT) -> None:
        """Add text, which may end within a word. Raises TextLimitError when the limit is reached."""
        accepted = piece[: self._remaining]
        self._pieces[section].append(accepted)
        self._remaining -= len(accepted)
        if len(accepted) < len(piece):
            self.is_truncated = True
            raise TextLimitError

    def text(self) -> ExtractedText:
        """Return the collected text, with words separated by one space."""
        joined = "\n".join("".join(self._pieces[section]) for section in TextSection)
        blocks = (joined[start : start + _BLOCK_CHARACTERS] for start in range(0, len(joined), _BLOCK_CHARACTERS))
        words = "".join(_BLANKS.sub(" ", block.replace(_SOFT_HYPHEN, "")) for block in blocks)
        return ExtractedText(words.strip(), self.is_truncated)
