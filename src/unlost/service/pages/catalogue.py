"""What pages and letters say, by language: all of it stands in one file for each, and nowhere else."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files

from unlost.service.jobs.order import LANGUAGES

NOTHING = "\N{EN DASH}"
"""What stands where there is nothing to say."""
LANGUAGE_COOKIE = "unlost_language"
"""Where the language is kept that somebody chose."""

_UNITS = ("B", "kB", "MB", "GB", "TB")


@dataclass(frozen=True, slots=True)
class Strings:
    """The texts of one language, by name: `part.name`, as its file has them.

    >>> Strings.of("de")("count.files", 1234)
    '1.234 Dateien'
    >>> Strings.of("en").size(2_500_000)
    '2.5 MB'
    """

    language: str
    texts: Mapping[str, str]

    @classmethod
    def of(cls, language: str) -> "Strings":
        """Return those of a language of `LANGUAGES`; of the first of them for any other."""
        known = language if language in LANGUAGES else LANGUAGES[0]
        return cls(known, texts_of(known))

    def __call__(self, name: str, count: int | None = None, /, **values: object) -> str:
        """Return a text with values in it. count: chooses between `.one` and `.other`, and is `{n}` in it."""
        if count is not None:
            name = f"{name}.one" if count == 1 and f"{name}.one" in self.texts else f"{name}.other"
            values["n"] = self.number(count)
        text = self.texts[name]
        # Values are never read as a pattern, whatever is in them.
        return text.format_map(values) if values else text

    def has(self, name: str) -> bool:
        """Return whether there is such a text."""
        return name in self.texts

    def number(self, value: float, digits: int = 0) -> str:
        """Return a number as people write it."""
        signs = {ord(","): self.texts["number.group"], ord("."): self.texts["number.point"]}
        return f"{value:,.{digits}f}".translate(signs)

    def share(self, value: float | None) -> str:
        """Return a share from 0 to 1 in per cent; what there is none of is a dash."""
        return NOTHING if value is None else f"{self.number(100 * value)} %"

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
        if seconds is None:
            return NOTHING
        date = datetime.fromtimestamp(seconds, UTC)
        return self("date.day", day=date.day, month=self.texts[f"date.month.{date.month}"], year=date.year)

    def moment(self, seconds: float | None) -> str:
        """Return a time to the minute, UTC."""
        if seconds is None:
            return NOTHING
        return self("date.moment", day=self.day(seconds), time=f"{datetime.fromtimestamp(seconds, UTC):%H:%M}")

    def digits(self, date: str | None) -> str:
        """Return the day of a date of 14 digits."""
        if not date:
            return NOTHING
        month = self.texts[f"date.month.{int(date[4:6])}"]
        return self("date.day", day=int(date[6:8]), month=month, year=date[:4])

    def span(self, seconds: float) -> str:
        """Return a length of time, in the unit that people would say it in."""
        for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
            if seconds >= 1.5 * length or (unit == "minutes" and seconds >= length):
                return self(f"span.{unit}", round(seconds / length))
        return self("span.moments")


@cache
def texts_of(language: str) -> Mapping[str, str]:
    """Return all texts of a language, by name."""
    source = files("unlost.service").joinpath("pages", "languages", f"{language}.toml")
    return dict(_flat("", tomllib.loads(source.read_text(encoding="utf-8"))))


def _flat(before: str, table: Mapping[str, object]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, value in table.items():
        if isinstance(value, Mapping):
            found += _flat(f"{before}{name}.", value)
        else:
            found.append((before + name, str(value)))
    return found


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
