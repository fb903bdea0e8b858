"""Translations: one TOML file per package and language, and language negotiation."""

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
    """Return the requested language, or else the one chosen before, or else the best of `Accept-Language`.

    Args:
        requested: The language requested explicitly.
        previous: The language chosen before.
        accepted: An `Accept-Language` header; of equal weights, the first language wins.

    >>> negotiate_language(None, None, "fr, en;q=0.5, de-AT;q=0.8"), negotiate_language("en", "de", "de")
    ('de', 'en')
    """
    for each in (requested, previous):
        if each in LANGUAGES:
            return each
    best, best_weight = LANGUAGES[0], 0.0
    for part in accepted[:500].split(","):
        tag, _, parameters = part.partition(";")
        name, weight = tag.strip().lower().partition("-")[0], _parse_quality(parameters)
        if name in LANGUAGES and weight > best_weight:
            best, best_weight = name, weight
    return best


def _parse_quality(text: str) -> float:
    """Return the quality value of a language range, from 0 to 1."""
    match = _QUALITY.fullmatch(text.strip())
    return float(match[1]) if match else 1.0


EMPTY = "\N{EN DASH}"
"""Shown in place of a missing value."""
_COMMON = "unlost.report"  # texts for numbers, dates and durations
_UNITS = ("B", "kB", "MB", "GB", "TB")


@dataclass(frozen=True, slots=True)
class Translations:
    """The texts of one language by name, which is `part.name` as in the files.

    >>> german = Translations.load("de", "unlost.report.recovery")
    >>> german("report.missing", 1234), Translations.load("en").size(2_500_000)
    ('1.234 fehlen.', '2.5 MB')
    """

    language: str
    texts: Mapping[str, str]

    @classmethod
    def load(cls, language: str, *packages: str) -> "Translations":
        """Load the texts of some packages. A language that is not supported is replaced by the default."""
        known = language if language in LANGUAGES else LANGUAGES[0]
        return cls(known, load_texts(known, _COMMON, *packages))

    def __call__(self, name: str, count: int | None = None, /, **values: object) -> str:
        """Return a text with values inserted.

        Args:
            name: Name of the text.
            count: Selects `.one` or `.other`, and is inserted as `{n}`.
            values: The other values to insert.
        """
        text = self._select(name, count, values)
        # format_map() does not parse the values, so that braces in untrusted text have no effect.
        return text.format_map(values) if values else text

    def marked(self, name: str, count: int | None = None, /, **values: object) -> Markup:
        """Return a text as markup. Values are escaped unless they are markup themselves.

        >>> Translations.load("en", "unlost.report.recovery").marked("report.title", site=Markup("<b>it</b>"))
        Markup('Recovery report of <b>it</b>')
        """
        return escape(self._select(name, count, values)).format_map(values)

    def _select(self, name: str, count: int | None, values: dict[str, object]) -> str:
        if count is not None:
            name = f"{name}.one" if count == 1 and f"{name}.one" in self.texts else f"{name}.other"
            values["n"] = self.number(count)
        return self.texts[name]

    def has(self, name: str) -> bool:
        """Return whether a text exists."""
        return name in self.texts

    def word(self, part: str, key: str) -> str:
        """Return the text for a code in JSON output, or the code itself if there is none.

        >>> english = Translations.load("en", "unlost.report.recovery")
        >>> english.word("reason", "not-held"), Translations.load("en").word("reason", "x")
        ('not archived', 'x')
        """
        return self.texts.get(f"{part}.{key.replace('-', '_').replace(' ', '_')}", key)

    def number(self, value: float, digits: int = 0) -> str:
        """Return a number with the separators of the language."""
        signs = {ord(","): self.texts["number.group"], ord("."): self.texts["number.point"]}
        return f"{value:,.{digits}f}".translate(signs)

    def share(self, value: float | None) -> str:
        """Return a share from 0 to 1 in per cent, which is 0 or 100 only if exact; a dash for None."""
        return EMPTY if value is None else format_share(value)

    def size(self, count: int) -> str:
        """Return a size in bytes with a decimal unit."""
        value, unit = float(count), _UNITS[0]
        for unit in _UNITS:
            if value < 1_000 or unit == _UNITS[-1]:
                break
            value /= 1_000
        return f"{self.number(value, 1 if unit != 'B' and value < 100 else 0)} {unit}"

    def day(self, seconds: float | None) -> str:
        """Return the date of a timestamp in UTC; a dash for None."""
        return EMPTY if seconds is None else self._day(datetime.fromtimestamp(seconds, UTC))

    def moment(self, seconds: float | None) -> str:
        """Return date and time of a timestamp in UTC; a dash for None."""
        if seconds is None:
            return EMPTY
        return self("date.moment", day=self.day(seconds), time=f"{datetime.fromtimestamp(seconds, UTC):%H:%M}")

    def digits(self, date: str | None) -> str:
        """Return the date of 14 digits; an invalid one is returned unchanged.

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
        """Return a duration in a suitable unit."""
        for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
            if seconds >= 1.5 * length or (unit == "minutes" and seconds >= length):
                return self(f"span.{unit}", round(seconds / length))
        return self("span.moments")


@cache
def load_texts(language: str, *packages: str) -> Mapping[str, str]:
    """Return the texts of some packages in a language by name."""
    texts: dict[str, str] = {}
    for package in packages:
        source = files(package).joinpath("languages", f"{language}.toml")
        texts |= _flatten("", tomllib.loads(source.read_text(encoding="utf-8")))
    return texts


def _flatten(prefix: str, table: Mapping[str, object]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for name, value in table.items():
        texts |= _flatten(f"{prefix}{name}.", value) if isinstance(value, Mapping) else {prefix + name: str(value)}
    return texts
