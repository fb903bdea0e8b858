"""The languages that people are spoken to in, and which of them somebody wants."""

LANGUAGES = ("en", "de")
"""Those in which pages and letters are written; the first is taken where nobody says anything."""


def chosen_language(asked: str | None, kept: str | None, accepted: str) -> str:
    """Return a language: the one asked for, else the one chosen before, else the first accepted that there is.

    >>> chosen_language(None, None, "fr, de-AT;q=0.8, en;q=0.5"), chosen_language("en", "de", "de")
    ('de', 'en')
    """
    for each in (asked, kept):
        if each in LANGUAGES:
            return each
    for part in accepted[:500].split(","):
        name = part.partition(";")[0].strip().lower().partition("-")[0]
        if name in LANGUAGES:
            return name
    return LANGUAGES[0]
