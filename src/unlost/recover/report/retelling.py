"""Says in other languages what a recovery wrote down in English: states are the same whatever is spoken."""

import re
from functools import cache
from string import Formatter

from unlost.shown.catalogue import Translations, load_texts
from unlost.shown.language import LANGUAGES

PACKAGE = "unlost.recover.report"
"""Where the texts of reports are."""

_MAX_MESSAGE_LENGTH = 2_000  # characters of what is looked at; what is longer we did not write
_VALUES = {"quote": '".*"', "topic": "[a-z]+", "script": "[a-z]+", "number": "[0-9][0-9,]{0,15}"}


def report_strings(language: str) -> Translations:
    """Return the texts of reports in a language."""
    return Translations.load(language, PACKAGE)


def translate_message(text: str, t: Translations) -> str | None:
    """Return what somebody wrote into a state, in the language of `t`; None if it is none of what we write.

    >>> retold('it says "for sale"', report_strings("de")), retold("HTTP 503", report_strings("de"))
    ('sie sagt "for sale"', None)
    """
    if t.language == LANGUAGES[0]:
        return text
    for name, pattern in _patterns():
        if len(text) <= _MAX_MESSAGE_LENGTH and (found := pattern.fullmatch(text)):
            return t(name, **{value: _translate_value(value, said, t) for value, said in found.groupdict().items()})
    return None


def _translate_value(name: str, said: str, t: Translations) -> str:
    if name == "number":
        return t.number(int(said.replace(",", "")))
    return t.word(name, said) if name in ("topic", "script") else said


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    texts = load_texts(LANGUAGES[0], PACKAGE)
    return [(name, _pattern(text)) for name, text in texts.items() if name.startswith("said.")]


def _pattern(text: str) -> re.Pattern[str]:
    parts = Formatter().parse(text)
    return re.compile(
        "".join(re.escape(said) + (f"(?P<{name}>{_VALUES[name]})" if name else "") for said, name, _, _ in parts)
    )
