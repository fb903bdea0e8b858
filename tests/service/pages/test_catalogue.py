"""All that pages and letters say stands in one file for each language, and none of it is missing in another."""

import re
import string
from pathlib import Path

import pytest

import unlost.service
from unlost.service.jobs.order import LANGUAGES
from unlost.service.pages.catalogue import Strings, texts_of

SERVICE = Path(unlost.service.__file__).parent
SOURCES = [*SERVICE.glob("templates/**/*.html"), *SERVICE.glob("templates/**/*.txt"), *SERVICE.glob("pages/*.py")]
NAMED = re.compile(r"""(?:\bt|strings\(request\))\(\s*f?"([a-z_]+(?:\.[a-z_]+)+)["{]""")
TEXT_BESIDE = re.compile(r">[^<>{}%]*[A-Za-z]{3,}[^<>{}%]*<")


def values_in(text: str) -> set[str]:
    """Return the names of the values that a text takes."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_every_language_has_the_same_texts(language: str) -> None:
    """The same names, and in each text the same values; none is left in English."""
    english, other = texts_of("en"), texts_of(language)
    assert set(english) == set(other)
    assert {name for name in english if values_in(english[name]) != values_in(other[name])} == set()
    same = {name for name in english if english[name] == other[name] and len(english[name].split()) > 3}
    assert same <= {"date.moment"}


def test_every_text_that_is_wanted_is_there() -> None:
    """Names that templates and code ask for are in the catalogue, also with a count."""
    texts = texts_of("en")
    wanted = {name for file in SOURCES for name in NAMED.findall(file.read_text())}
    assert len(wanted) > 150
    begun = {name for name in wanted if any(each.startswith(name) for each in texts)}
    assert wanted - set(texts) - begun == set()


def test_no_text_stands_in_a_template() -> None:
    """What people read comes from the catalogue alone: but names of formats and of the program itself."""
    allowed = {"unlost", "link", "JSON", "CDXJ"}
    part = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|<code>.*?</code>|aria-[a-z]+=\"[^\"]*\"")
    found = {
        (file.name, text.strip("<> \n"))
        for file in SERVICE.glob("templates/**/*.html")
        for text in TEXT_BESIDE.findall(part.sub("", file.read_text()))
    }
    assert {(name, text) for name, text in found if text not in allowed} == set()


def test_numbers_and_dates() -> None:
    """They are written as people of the language do."""
    english, german = Strings.of("en"), Strings.of("de")
    assert (english.number(1234567), german.number(1234567)) == ("1,234,567", "1.234.567")
    assert (english.size(999), english.size(1_500_000), german.size(1_500_000)) == ("999 B", "1.5 MB", "1,5 MB")
    assert (english.day(0), german.day(0)) == ("1 January 1970", "1. Januar 1970")
    assert (english.digits("20140517000000"), english.digits(None)) == ("17 May 2014", "–")  # noqa: RUF001
    assert [english.span(seconds) for seconds in (5, 61, 600, 7_200, 864_000)] == [
        "less than a minute", "a minute", "10 minutes", "2 hours", "10 days",
    ]  # fmt: skip
    assert english("problem.throttled", span="{span} {0} %s") == "Too many attempts. Please wait {span} {0} %s."
    assert Strings.of("xx").language == "en"
