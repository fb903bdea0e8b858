"""Python model of text resemblance: sets of word tuples.

Combining marks are not supported: some of them count as letters, and Python's tables do not identify them.
"""

import unicodedata

# Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar, by Unicode character name.
UNSPACED = (
    "CJK ",
    "HIRAGANA ",
    "KATAKANA",
    "HALFWIDTH KATAKANA",
    "IDEOGRAPHIC ",
    "THAI ",
    "LAO ",
    "KHMER ",
    "MYANMAR ",
)


def is_letter(character: str) -> bool:
    """Return whether a character is a letter or digit, including enclosed ones."""
    around = unicodedata.name(character, "").startswith(
        ("CIRCLED LATIN", "SQUARED LATIN", "NEGATIVE CIRCLED LATIN", "NEGATIVE SQUARED LATIN")
    )
    return unicodedata.category(character)[0] in "LN" or around


def words(text: str) -> list[str]:
    """Return the words of a text."""
    found = [""]
    for character in text:
        if not is_letter(character):
            found.append("")
        elif unicodedata.name(character, "").startswith(UNSPACED):
            found += [character, ""]
        else:
            found[-1] += character
    return [word.lower() for word in found if word]


def shingles(text: str, size: int) -> set[tuple[str, ...]]:
    """Return all sequences of `size` words; all words if there are fewer."""
    every = words(text)
    if not every:
        return set()
    return {tuple(every[start : start + size]) for start in range(max(len(every) - size, 0) + 1)}


def resemblance(first: str, second: str, size: int) -> float:
    """Return the share of common shingles."""
    one, other = shingles(first, size), shingles(second, size)
    return len(one & other) / len(one | other) if one | other else 1.0
