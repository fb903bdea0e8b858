"""Texts by language: one TOML file for each package and language, and the choice of a language."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files

from markupsafe import Markup, escape

from unlost import dates
from unlost.errors import DateError
from unlost.report.format import LANGUAGES, format_share

_QUALITY = re.compile(r"[qQ]\s*=\s*([01](?:\.[0-9]{0,3})?)")


def negotiate_language(requested: str | None, previous: str | None, accepted: str) -> str:
    """Return a language: the one asked for, else the one chosen before, else the one accepted most gladly.

    accepted: as browsers say it; of languages that they like as much, the first.

    >>> negotiate_language(None, None, "fr, en;q=0.5, de-AT;q=0.8"), negotiate_language("en", "de", "de")
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


EMPTY = "\N{EN DASH}"
"""What stands where there is nothing to say."""
_COMMON = "unlost.report"  # numbers, dates and lengths of time
_UNITS = ("B", "kB", "MB", "GB", "TB")


@dataclass(frozen=True, slots=True)
class Translations:
    """The texts of one language, by name: `part.name`, as its files have them.

    >>> german = Translations.load("de", "unlost.report.recovery")
    >>> german("report.missing", 1234), Translations.load("en").size(2_500_000)
    ('1.234 fehlen.', '2.5 MB')
    """

    language: str
    texts: Mapping[str, str]

    @classmethod
    def load(cls, language: str, *packages: str) -> "Translations":
        """Return those of some packages in a language of `LANGUAGES`; in the first of them for any other."""
        known = language if language in LANGUAGES else LANGUAGES[0]
        return cls(known, load_texts(known, _COMMON, *packages))

    def __call__(self, name: str, count: int | None = None, /, **values: object) -> str:
        """Return a text with values in it. count: chooses between `.one` and `.other`, and is `{n}` in it."""
        text = self._select(name, count, values)
        # Values are never read as a pattern, whatever is in them.
        return text.format_map(values) if values else text

    def marked(self, name: str, count: int | None = None, /, **values: object) -> Markup:
        """Return a text for a page, in which values that are markup stay so; all else is escaped.

        >>> Translations.load("en", "unlost.report.recovery").marked("report.title", site=Markup("<b>it</b>"))
        Markup('What came back of <b>it</b>')
        """
        return escape(self._select(name, count, values)).format_map(values)

    def _select(self, name: str, count: int | None, values: dict[str, object]) -> str:
        if count is not None:
            name = f"{name}.one" if count == 1 and f"{name}.one" in self.texts else f"{name}.other"
            values["n"] = self.number(count)
        return self.texts[name]

    def has(self, name: str) -> bool:
        """Return whether there is such a text."""
        return name in self.texts

    def word(self, part: str, key: str) -> str:
        """Return the text for a word of programs; the word itself if there is none.

        >>> Translations.load("en", "unlost.report.recovery").word("reason", "not-held"), Translations.load("en").word("reason", "x")
        ('no archive has it', 'x')
        """
        return self.texts.get(f"{part}.{key.replace('-', '_').replace(' ', '_')}", key)

    def number(self, value: float, digits: int = 0) -> str:
        """Return a number as people write it."""
        signs = {ord(","): self.texts["number.group"], ord("."): self.texts["number.point"]}
        return f"{value:,.{digits}f}".translate(signs)

    def share(self, value: float | None) -> str:
        """Return a share from 0 to 1 in per cent, which says 0 or 100 only where it is; a dash of nothing."""
        return EMPTY if value is None else format_share(value)

    def size(self, count: int) -> str:
        """Return a number of bytes."""
        value, unit = float(count), _UNITS[0]
        for unit in _UNITS:
            if value < 1_000 or unit == _UNITS[-1]:
                break
            value /= 1_000
        return f"{self.number(value, 1 if unit != 'B' and value < 100 else 0)} {unit}"

    def day(self, seconds: float | None) -> str:
        """Return the day of a time, UTC; a dash for none."""
        return EMPTY if seconds is None else self._day(datetime.fromtimestamp(seconds, UTC))

    def moment(self, seconds: float | None) -> str:
        """Return a time to the minute, UTC."""
        if seconds is None:
            return EMPTY
        return self("date.moment", day=self.day(seconds), time=f"{datetime.fromtimestamp(seconds, UTC):%H:%M}")

    def digits(self, date: str | None) -> str:
        """Return the day of a date of 14 digits; what is no date stays as it is.

        >>> Translations.load("de").digits("20140517000000"), Translations.load("de").digits("20149999000000")
        ('17. Mai 2014', '20149999000000')
        """
        if not date:
            return EMPTY
        try:
            return self._day(dates.to_datetime(date))
        except DateError:
            return date

    def _day(self, date: datetime) -> str:
        return self("date.day", day=date.day, month=self.texts[f"date.month.{date.month}"], year=date.year)

    def span(self, seconds: float) -> str:
        """Return a length of time, in the unit that people would say it in."""
        for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
            if seconds >= 1.5 * length or (unit == "minutes" and seconds >= length):
                return self(f"span.{unit}", round(seconds / length))
        return self("span.moments")


@cache
def load_texts(language: str, *packages: str) -> Mapping[str, str]:
    """Return all texts of some packages in a language, by name."""
    found: dict[str, str] = {}
    for package in packages:
        source = files(package).joinpath("languages", f"{language}.toml")
        found |= _flatten("", tomllib.loads(source.read_text(encoding="utf-8")))
    return found


def _flatten(before: str, table: Mapping[str, object]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in table.items():
        found |= _flatten(f"{before}{name}.", value) if isinstance(value, Mapping) else {before + name: str(value)}
    return found
