"""Finds phrases of many languages in normalised text."""

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

_MAX_GAP = 45  # letters that the `*` of a phrase may stand for: about six words
_NO_WORD = re.compile(r"[^\w\n]+|_+")
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u3099\u309a\u093c]+")
_PLAIN = str.maketrans({"\u0131": "i", "ł": "l", "ø": "o", "đ": "d", "\u0640": None})
# Written without spaces between words: a phrase may begin anywhere.
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af]")


def normalize_text(text: str) -> str:
    """Return a text with its words in one spelling: no case, no accents, one space between them; lines are kept.

    >>> normalize_text("Página  no encontrada!")
    'pagina no encontrada '
    """
    plain = text.lower() if text.isascii() else _MARKS.sub("", unicodedata.normalize("NFKD", text.casefold()))
    if not plain.isascii():
        plain = unicodedata.normalize("NFC", plain).translate(_PLAIN)
    return _NO_WORD.sub(" ", plain)


def is_unspaced(text: str) -> bool:
    """Return whether a text is written without spaces between words, in part at least."""
    return _UNSPACED.search(text) is not None


def text_weight(text: str) -> int:
    """Return how much a text says, in letters of an alphabet: one that stands for a syllable or a word counts more."""
    return len(text) if text.isascii() else len(text) + 2 * sum(map(len, _UNSPACED.findall(text)))


class NormalizedLines(list[str]):
    """Normal lines, each with a space at both ends, made ready for looking for many phrases."""

    @cached_property
    def joined(self) -> str:
        """All of them."""
        return "\n".join(self)

    @cached_property
    def ends(self) -> list[int]:
        """Where in `joined` each of them ends."""
        return [*accumulate((len(line) + 1 for line in self), initial=-1)][1:]

    @cached_property
    def word_prefixes(self) -> frozenset[str]:
        """Their words, and the first four letters of them."""
        words = set(self.joined.split())
        return frozenset(words.union(word[:4] for word in words))

    @cached_property
    def is_unspaced(self) -> bool:
        """Whether they are written without spaces between words, in part at least."""
        return is_unspaced(self.joined)


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase: its parts, one behind the other with a few words between them."""

    text: str
    parts: tuple[str, ...]

    def find_in(self, lines: NormalizedLines) -> Iterator[tuple[int, int, int]]:
        """Yield where it is: the number of the line, and where in `joined` it begins and ends."""
        text, first = lines.joined, self.parts[0]
        start = text.find(first)
        while start >= 0:
            line = bisect_right(lines.ends, start)
            end = start + len(first)
            for part in self.parts[1:]:
                found = text.find(part, end - 1, min(end + _MAX_GAP + len(part), lines.ends[line]))
                if found < 0:
                    break
                end = found + len(part)
            else:
                yield line, start, end
            start = text.find(first, start + 1)


@dataclass(frozen=True, slots=True)
class PhraseMatches:
    """Phrases in lines.

    shares: of which lines, by number, a phrase is in, and how much of it is that phrase.
    phrases: those that were found, each once.
    first: the lines that begin with one.
    """

    shares: dict[int, float]
    phrases: tuple[str, ...]
    leading_lines: frozenset[int]

    def max_share(self) -> float:
        """Return the largest share; 0.0 if nothing was found."""
        return max(self.shares.values(), default=0.0)


class PhraseMatcher:
    """Phrases to look for."""

    def __init__(self, phrases: Iterable[str]) -> None:
        self._first: dict[str, list[Phrase]] = {}
        self._anywhere: list[Phrase] = []
        for shown in dict.fromkeys(phrases):
            parts = [normalize_text(part).strip() for part in shown.split("*")]
            if is_unspaced(parts[0]):
                self._anywhere.append(Phrase(shown, tuple(parts)))
                continue
            phrase = Phrase(shown, tuple(f" {part}" for part in parts))
            if " " in parts[0] or len(parts) > 1:
                self._first.setdefault(parts[0].split(" ")[0], []).append(phrase)
            else:  # a single word may have an ending in the text
                self._first.setdefault(parts[0][:4], []).append(phrase)

        self._order = {start: number for number, start in enumerate(self._first)}

    def find_in(self, lines: NormalizedLines) -> PhraseMatches:
        """Return which phrases are in which lines."""
        shares: dict[int, float] = {}
        phrases: dict[str, None] = {}
        first: set[int] = set()
        for phrase in self._candidates(lines):
            for line, start, end in phrase.find_in(lines):
                size = len(lines[line])
                shares[line] = max(min(1.0, (end - start) / max(1, size - 2)), shares.get(line, 0.0))
                phrases[phrase.text] = None
                if start <= lines.ends[line] - size + 1:
                    first.add(line)
        return PhraseMatches(shares, tuple(phrases), frozenset(first))

    def _candidates(self, lines: NormalizedLines) -> Iterator[Phrase]:
        """Yield the phrases that may be in lines, in the order in which they were given."""
        for start in sorted(self._first.keys() & lines.word_prefixes, key=self._order.__getitem__):
            yield from self._first[start]
        if lines.is_unspaced:
            yield from self._anywhere


@cache
def load_phrase_file(name: str) -> dict[str, Any]:
    """Return a file of phrases."""
    file = resources.files("unlost.quality") / "phrases" / f"{name}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


@cache
def load_phrases(name: str, section: str | None = None, key: str | None = None) -> PhraseMatcher:
    """Return the phrases of a file: of one section in all languages; or of one key in all sections."""
    found = load_phrase_file(name)
    if section is not None:
        return PhraseMatcher(phrase for each in found[section].values() for phrase in each)
    return PhraseMatcher(phrase for each in found.values() for phrase in each[key])
