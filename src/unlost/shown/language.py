"""The languages that people are spoken to in, and which of them somebody wants."""

import re

LANGUAGES = ("en", "de")
"""Those in which pages and letters are written; the first is taken where nobody says anything."""

_QUALITY = re.compile(r"[qQ]\s*=\s*([01](?:\.[0-9]{0,3})?)")


def negotiate_language(requested: str | None, previous: str | None, accepted: str) -> str:
    """Return a language: the one asked for, else the one chosen before, else the one accepted most gladly.

    accepted: as browsers say it; of languages that they like as much, the first.

    >>> chosen_language(None, None, "fr, en;q=0.5, de-AT;q=0.8"), chosen_language("en", "de", "de")
    ('de', 'en')
    """
    for each in (requested, previous):
        if each in LANGUAGES:
            return each
    found, most = LANGUAGES[0], 0.0
    for part in accepted[:500].split(","):
        tag, _, more = part.partition(";")
        name, weight = tag.strip().lower().partition("-")[0], _parse_quality(more)
        if name in LANGUAGES and weight > most:
            found, most = name, weight
    return found


def _parse_quality(text: str) -> float:
    """Return how gladly something is accepted, from 0, not at all, to 1."""
    said = _QUALITY.fullmatch(text.strip())
    return float(said[1]) if said else 1.0
