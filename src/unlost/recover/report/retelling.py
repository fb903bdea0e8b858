"""Says in other languages what a recovery wrote down in English: states are the same whatever is spoken."""

import re
from functools import cache
from string import Formatter

from unlost.shown.catalogue import Strings, texts_of
from unlost.shown.language import LANGUAGES

PACKAGE = "unlost.recover.report"
"""Where the texts of reports are."""

_LONGEST = 2_000  # characters of what is looked at; what is longer we did not write
_VALUES = {"quote": '".*"', "topic": "[a-z]+", "script": "[a-z]+", "number": "[0-9][0-9,]{0,15}"}


def report_strings(language: str) -> Strings:
    """Return the texts of reports in a language."""
    return Strings.of(language, PACKAGE)


def retold(text: str, t: Strings) -> str | None:
    """Return what somebody wrote into a state, in the language of `t`; None if it is none of what we write.

    >>> retold('it says "for sale"', report_strings("de")), retold("HTTP 503", report_strings("de"))
    ('sie sagt "for sale"', None)
    """
    if t.language == LANGUAGES[0]:
        return text
    for name, pattern in _patterns():
        if len(text) <= _LONGEST and (found := pattern.fullmatch(text)):
            return t(name, **{value: _value(value, said, t) for value, said in found.groupdict().items()})
    return None


def _value(name: str, said: str, t: Strings) -> str:
    if name == "number":
        return t.number(int(said.replace(",", "")))
    return t.word(name, said) if name in ("topic", "script") else said


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    texts = texts_of(LANGUAGES[0], PACKAGE)
    return [(name, _pattern(text)) for name, text in texts.items() if name.startswith("said.")]


def _pattern(text: str) -> re.Pattern[str]:
    parts = Formatter().parse(text)
    return re.compile(
        "".join(re.escape(said) + (f"(?P<{name}>{_VALUES[name]})" if name else "") for said, name, _, _ in parts)
    )
