"""How much two texts resemble each other."""

import sys

from unlost import _core
from unlost.errors import UsageError


def text_resemblance(first: str, second: str, size: int = 10) -> float:
    """Return how much of two texts is shared, from 0.0 to 1.0: shared shingles divided by all shingles.

    A shingle is a run of `size` words; of a text of fewer words, all of them. However often it occurs, it counts once.
    Two texts without words resemble each other by 1.0, one with and one without by 0.0.

    A word is a run of letters and digits of any script, whatever their case. Where words are not written apart (Han,
    Hiragana, Katakana, Thai, Lao, Khmer, Myanmar), each letter is one.

    Shingles are told apart by hashes of 64 bits that are the same everywhere: texts of a million words, none in common,
    share one by mistake once in ten million times. May be called from several threads; others run while long texts are
    compared.

    Raises UsageError if `size` is less than 1.

    >>> resemblance("Unlost brings lost sites back.", "unlost: brings lost sites back!", 3)
    1.0
    >>> resemblance("a b c d", "a b c e", 3)
    0.3333333333333333
    """
    if size < 1:
        msg = f"{size}: a shingle has at least one word"
        raise UsageError(msg)
    return _core.resemblance(first, second, min(size, sys.maxsize))
