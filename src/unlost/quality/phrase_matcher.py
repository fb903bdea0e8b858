"""Finds phrases of many languages in normalized text."""

import re
import tomllib
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from itertools import accumulate
from typing import Any

_MAX_GAP = 45  # characters that the `*` of a phrase may match, about six words
_NON_WORD = re.compile(r"[^\w\n]+|_+")
# Combining marks that texts may omit: accents, Hebrew points, Arabic vowels, Japanese voicing marks, Devanagari nukta.
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u3099\u309a\u093c]+")
# Letters that NFKD does not decompose (dotless i among them), and the Arabic tatweel, which only stretches a word.
_PLAIN = str.maketrans({"\u0131": "i", "ł": "l", "ø": "o", "đ": "d", "\u0640": None})
# Scripts without spaces between words, in which a phrase may begin anywhere.
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af]")


def normalize_text(text: str) -> str:
    """Normalize a text: casefolded, without accents, words separated by one space. Line breaks stay.

    >>> normalize_text("Página  no encontrada!")
    'pagina no encontrada '
    """
    normalized = text.lower() if text.isascii() else _MARKS.sub("", unicodedata.normalize("NFKD", text.casefold()))
    if not normalized.isascii():
        normalized = unicodedata.normalize("NFC", normalized).translate(_PLAIN)
    return _NON_WORD.sub(" ", normalized)


def is_unspaced(text: str) -> bool:
    """Return whether a text has characters of a script without spaces between words."""
    return _UNSPACED.search(text) is not None


def text_weight(text: str) -> int:
    """Return the length of a text in characters; a character that is a syllable or a word counts as three."""
    return len(text) if text.isascii() else len(text) + 2 * sum(map(len, _UNSPACED.findall(text)))


class NormalizedLines(list[str]):
    """Normalized lines with a space at both ends, indexed for searching many phrases."""

    @cached_property
    def joined(self) -> str:
        """All lines in one string."""
        return "\n".join(self)

    @cached_property
    def ends(self) -> list[int]:
        """The end of each line in `joined`."""
        return [*accumulate((len(line) + 1 for line in self), initial=-1)][1:]

    @cached_property
    def word_prefixes(self) -> frozenset[str]:
        """All words, and their first four characters."""
        words = set(self.joined.split())
        return frozenset(words.union(word[:4] for word in words))

    @cached_property
    def is_unspaced(self) -> bool:
        """Whether any line is in a script without spaces between words."""
        return is_unspaced(self.joined)


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase whose parts, separated by `*` in its text, may have a gap of some words between them."""

    text: str
    parts: tuple[str, ...]

    def find_in(self, lines: NormalizedLines) -> Iterator[tuple[int, int, int]]:
        """Yield the line number, and start and end in `joined`, of each occurrence."""
        text, first = lines.joined, self.parts[0]
        start = text.find(first)
        while start >= 0:
            line = bisect_right(lines.ends, start)
            end = start + len(first)
            for part in self.parts[1:]:
                position = text.find(part, end - 1, min(end + _MAX_GAP + len(part), lines.ends[line]))
                if position < 0:
                    break
                end = position + len(part)
            else:
                yield line, start, end
            start = text.find(first, start + 1)


@dataclass(frozen=True, slots=True)
class PhraseMatches:
    """The phrases that were found in lines.

    Attributes:
        shares: The largest share of a line that a phrase covers, by line number.
        phrases: The phrases, each once.
        leading_lines: The lines that begin with a phrase.
    """

    shares: dict[int, float]
    phrases: tuple[str, ...]
    leading_lines: frozenset[int]

    def max_share(self) -> float:
        """Return the largest share; 0.0 without matches."""
        return max(self.shares.values(), default=0.0)


class PhraseMatcher:
    """Searches lines for a set of phrases.

    Only phrases are searched whose first word, or its first four characters, occurs in the lines.
    """

    def __init__(self, phrases: Iterable[str]) -> None:
        self._by_first_word: dict[str, list[Phrase]] = {}
        self._unspaced_phrases: list[Phrase] = []
        for text in dict.fromkeys(phrases):
            parts = [normalize_text(part).strip() for part in text.split("*")]
            if is_unspaced(parts[0]):
                self._unspaced_phrases.append(Phrase(text, tuple(parts)))
                continue
            phrase = Phrase(text, tuple(f" {part}" for part in parts))
            if " " in parts[0] or len(parts) > 1:
                self._by_first_word.setdefault(parts[0].split(" ")[0], []).append(phrase)
            else:  # a single word may be inflected in the text
                self._by_first_word.setdefault(parts[0][:4], []).append(phrase)

        self._order = {prefix: number for number, prefix in enumerate(self._by_first_word)}

    def find_in(self, lines: NormalizedLines) -> PhraseMatches:
        """Return the phrases in the lines."""
        shares: dict[int, float] = {}
        phrases: dict[str, None] = {}
        leading: set[int] = set()
        for phrase in self._candidates(lines):
            for line, start, end in phrase.find_in(lines):
                size = len(lines[line])
                shares[line] = max(min(1.0, (end - start) / max(1, size - 2)), shares.get(line, 0.0))
                phrases[phrase.text] = None
                if start <= lines.ends[line] - size + 1:
                    leading.add(line)
        return PhraseMatches(shares, tuple(phrases), frozenset(leading))

    def _candidates(self, lines: NormalizedLines) -> Iterator[Phrase]:
        """Yield the phrases whose first word occurs, in the order in which they were given."""
        for prefix in sorted(self._by_first_word.keys() & lines.word_prefixes, key=self._order.__getitem__):
            yield from self._by_first_word[prefix]
        if lines.is_unspaced:
            yield from self._unspaced_phrases


@cache
def load_phrase_file(name: str) -> dict[str, Any]:
    """Load `phrases/NAME.toml`."""
    file = resources.files("unlost.quality") / "phrases" / f"{name}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


@cache
def load_phrases(name: str, section: str | None = None, key: str | None = None) -> PhraseMatcher:
    """Load the phrases of one section in all languages, or of one key in all sections."""
    sections = load_phrase_file(name)
    if section is not None:
        return PhraseMatcher(phrase for each in sections[section].values() for phrase in each)
    return PhraseMatcher(phrase for each in sections.values() for phrase in each[key])
