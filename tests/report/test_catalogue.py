"""What people read stands in one file for each language, and none of it is missing in another."""

import string
from collections import Counter
from importlib.resources import files

import pytest
from markupsafe import Markup

from unlost.report import EMPTY, LANGUAGES, Translations, load_texts, negotiate_language

PACKAGES = ("unlost.report", "unlost.report.recovery", "unlost.webui")


def values_in(text: str) -> set[str]:
    """Return the names of the values that a text takes."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_every_language_has_the_same_texts(language: str, package: str) -> None:
    """The same names, and in each text the same values; none is left in English."""
    english, other = load_texts("en", package), load_texts(language, package)
    assert set(english) == set(other)
    assert {name for name in english if values_in(english[name]) != values_in(other[name])} == set()
    same = {name for name in english if english[name] == other[name] and len(english[name].split()) > 3}
    assert same <= {"date.moment"}


def test_there_are_no_other_files() -> None:
    """A language that is known has its file in each package, and no file is of a language that is not."""
    for package in PACKAGES:
        names = {each.name for each in files(package).joinpath("languages").iterdir()}
        assert names == {f"{language}.toml" for language in LANGUAGES}


def test_no_name_is_given_twice() -> None:
    """Texts of several packages are one catalogue, in which none covers another."""
    counts = Counter(name for package in PACKAGES for name in load_texts("en", package))
    assert [name for name, count in counts.items() if count > 1] == []


def test_numbers_and_dates() -> None:
    """They are written as people of the language do."""
    english, german = Translations.load("en"), Translations.load("de")
    assert (english.number(1234567), german.number(1234567)) == ("1,234,567", "1.234.567")
    assert (english.size(999), english.size(1_500_000), german.size(1_500_000)) == ("999 B", "1.5 MB", "1,5 MB")
    assert (english.day(0), german.day(0), german.moment(None)) == ("1 January 1970", "1. Januar 1970", EMPTY)
    assert (english.digits("20140517000000"), english.digits(None)) == ("17 May 2014", EMPTY)
    assert english.digits("20141399000000") == "20141399000000"
    assert [english.span(seconds) for seconds in (5, 61, 600, 7_200, 864_000)] == [
        "less than a minute", "a minute", "10 minutes", "2 hours", "10 days",
    ]  # fmt: skip
    assert [german.share(value) for value in (None, 0.0, 0.001, 0.5, 0.999, 1.0)] == [
        EMPTY, "0 %", "< 1 %", "50 %", "> 99 %", "100 %",
    ]  # fmt: skip


def test_plurals() -> None:
    """One is one in both languages, and all other numbers are several."""
    for language, said in {
        "en": ("1 copy", "0 copies", "1,000 copies"),
        "de": ("1 Kopie", "0 Kopien", "1.000 Kopien"),
    }.items():
        t = Translations.load(language, "unlost.report.recovery")
        assert tuple(t("time.copies", count) for count in (1, 0, 1_000)) == said


def test_markup_is_only_what_is_meant_to_be() -> None:
    """Texts and values are escaped, but for values that are markup; braces in them are no patterns."""
    strings = Translations("en", {"a": "<i>{x}</i> {y}", "number.group": ",", "number.point": "."})
    said = strings.marked("a", x="<b>{y}", y=Markup("<b>{x}</b>"))
    assert said == Markup("&lt;i&gt;&lt;b&gt;{y}&lt;/i&gt; <b>{x}</b>")


@pytest.mark.parametrize(
    ("asked", "kept", "accepted", "language"),
    [
        ("de", "en", "en", "de"),
        ("xx", "de", "en", "de"),
        (None, "xx", "fr;q=1, de-CH, en", "de"),
        (None, None, "en;q=0.5, de;q=0.9", "de"),
        (None, None, "fr, de;q=0, en;q=0.1", "en"),
        (None, None, "de;q=0", "en"),
        (None, None, "de;q=never, en", "de"),
        (None, None, "", "en"),
        (None, None, "x" * 600 + ",de", "en"),
    ],
)
def test_a_language_is_chosen(asked: str | None, kept: str | None, accepted: str, language: str) -> None:
    """By the address, else by what was chosen before, else by what the browser accepts; else it is English."""
    assert negotiate_language(asked, kept, accepted) == language
