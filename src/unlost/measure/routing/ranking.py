"""How likely an archive holds what is asked for, by how much lies under the key: precision bought with recall.

Questions are split in two. On one half it is counted how often a key of about so many copies, of a page itself or of a
wildcard, was right; by that the other half is judged, and the other way round. So nothing is judged by itself.
"""

from collections.abc import Sequence

WILDCARD_BAND = 128
"""Added to the band of what only a wildcard, or a shortened key, stands for; there are fewer bands of copies."""

_PRIOR_WEIGHT = 2.0
"""Answers that the mean over all bands counts for, in a band of which little is known."""


def likelihood_band(copies: int | None, *, is_wildcard: bool) -> int:
    """Return a number for keys that are about as likely: never 0, which is for what is not predicted.

    >>> band_of(1, is_wild=False), band_of(1000, is_wild=False), band_of(1000, is_wild=True)
    (2, 11, 139)
    """
    return 1 + (copies or 0).bit_length() + (WILDCARD_BAND if is_wildcard else 0)


def estimate_probabilities(bands: Sequence[int], held: Sequence[bool], counts: Sequence[int]) -> list[float]:
    """Return for each question how likely it is held, by what the other half of the questions teaches; 0 for band 0.

    bands: by `band_of`, 0 where nothing is predicted. counts: how often each is asked.

    >>> probabilities([0, 2, 2, 2, 2], [False, True, True, False, False], [1] * 5)
    [0.0, 0.5, 0.5, 0.5, 0.5]
    """
    halves: list[dict[int, tuple[float, float]]] = [{}, {}]
    for place, (band, is_held, count) in enumerate(zip(bands, held, counts, strict=True)):
        if band:
            hits, total = halves[place % 2].get(band, (0.0, 0.0))
            halves[place % 2][band] = hits + is_held * count, total + count
    means = [_hit_share(half) for half in halves]
    found = []
    for place, band in enumerate(bands):
        other = 1 - place % 2
        hits, total = halves[other].get(band, (0.0, 0.0))
        found.append((hits + _PRIOR_WEIGHT * means[other]) / (total + _PRIOR_WEIGHT) if band else 0.0)
    return found


def _hit_share(half: dict[int, tuple[float, float]]) -> float:
    total = sum(each[1] for each in half.values())
    return sum(each[0] for each in half.values()) / total if total else 0.5
