"""Tests of the catalogues of translated texts."""

import string
from collections import Counter
from importlib.resources import files

import pytest
from markupsafe import Markup

from unlost.report import EMPTY, LANGUAGES, Translations, load_texts, negotiate_language

PACKAGES = ("unlost.report", "unlost.report.recovery", "unlost.webui")


def placeholders(text: str) -> set[str]:
    """Return the placeholders of a text."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_all_languages_have_the_same_texts(language: str, package: str) -> None:
    """Names and placeholders are equal, and no text is left in English."""
    english, other = load_texts("en", package), load_texts(language, package)
    assert set(english) == set(other)
    assert {name for name in english if placeholders(english[name]) != placeholders(other[name])} == set()
    same = {name for name in english if english[name] == other[name] and len(english[name].split()) > 3}
    assert same <= {"date.moment"}


def test_catalogue_files_match_known_languages() -> None:
    """Each package has exactly one file per language."""
    for package in PACKAGES:
        names = {each.name for each in files(package).joinpath("languages").iterdir()}
        assert names == {f"{language}.toml" for language in LANGUAGES}


def test_text_names_are_unique_across_packages() -> None:
    """No text of one package hides a text of another."""
    counts = Counter(name for package in PACKAGES for name in load_texts("en", package))
    assert [name for name, count in counts.items() if count > 1] == []


def test_numbers_and_dates_are_localised() -> None:
    """Numbers, sizes, dates and durations have the form of the language."""
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


def test_plurals_are_localised() -> None:
    """One is singular, and all other numbers are plural."""
    for language, text in {
        "en": ("1 capture", "0 captures", "1,000 captures"),
        "de": ("1 Archivversion", "0 Archivversionen", "1.000 Archivversionen"),
    }.items():
        t = Translations.load(language, "unlost.report.recovery")
        assert tuple(t("time.copies", count) for count in (1, 0, 1_000)) == text


def test_texts_and_values_are_escaped() -> None:
    """Values of type Markup are not escaped, and braces in values are literal."""
    strings = Translations("en", {"a": "<i>{x}</i> {y}", "number.group": ",", "number.point": "."})
    text = strings.marked("a", x="<b>{y}", y=Markup("<b>{x}</b>"))
    assert text == Markup("&lt;i&gt;&lt;b&gt;{y}&lt;/i&gt; <b>{x}</b>")


@pytest.mark.parametrize(
    ("requested", "stored", "accepted", "language"),
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
def test_language_is_negotiated(requested: str | None, stored: str | None, accepted: str, language: str) -> None:
    """The URL comes first, then the stored choice, then Accept-Language, then English."""
    assert negotiate_language(requested, stored, accepted) == language
