"""Python model of frequencies and their sums: `[m][+-~][/[r][+-~]]`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

MAX_COUNT = 10**18 - 1


@dataclass(frozen=True)
class Count:
    """A number that may be more, may be less, or both (about). An unknown number is 0 or more, and is not written."""

    value: int = 0
    more: bool = False
    less: bool = False
    known: bool = True

    @classmethod
    def parse(cls, text: str) -> "Count":
        """Parse a number with its bound."""
        digits, bound = re.fullmatch("([0-9]{0,18})([+~-]?)", text, re.ASCII).groups()  # type: ignore[union-attr]
        return cls(int(digits), bound in "+~" and bound != "", bound in "-~" and bound != "") if digits else UNKNOWN

    def __str__(self) -> str:
        """Return its text: nothing if it is unknown."""
        bound = {(False, False): "", (True, False): "+", (False, True): "-", (True, True): "~"}
        return f"{self.value}{bound[self.more, self.less]}" if self.known else ""

    @property
    def is_none(self) -> bool:
        """Return whether the count is certainly zero."""
        return self.value == 0 and not self.more

    def plus(self, other: "Count", *, overlapping: bool = False) -> "Count":
        """Return the sum: numbers are added, bounds are joined. A sum of overlapping counts may be less."""
        value = self.value + other.value
        if value > MAX_COUNT:
            raise OverflowError(value)
        shared = overlapping and self.value > 0 and other.value > 0
        less = self.less or other.less or shared
        return Count(value, self.more or other.more, less, self.known or other.known)


UNKNOWN = Count(0, more=True, known=False)


@dataclass(frozen=True)
class Frequency:
    """The number of mementos (URI-Ms) of a number of pages (URI-Rs)."""

    mementos: Count = UNKNOWN
    resources: Count = UNKNOWN

    @classmethod
    def parse(cls, text: str) -> "Frequency":
        """Read what files write."""
        mementos, _, resources = text.partition("/")
        return cls(Count.parse(mementos), Count.parse(resources))

    def __str__(self) -> str:
        """Return its shortest text."""
        pages = f"/{self.resources}" if self.resources.known else ""
        return f"{self.mementos}{pages}" or "/"

    @property
    def is_held(self) -> bool:
        """Return whether something is or may be held."""
        return not self.mementos.is_none

    @property
    def is_exclusion(self) -> bool:
        """Return whether nothing is held or unknown."""
        return not self.is_held and self.resources.value == 0

    def plus(self, other: "Frequency", *, overlapping: bool = False) -> "Frequency":
        """Return the sum; exclusions add nothing to it. Copies never overlap, pages may."""
        if self.is_exclusion and other.is_exclusion and self != other:
            return Frequency.parse("0")
        if self.is_exclusion:
            return other
        if other.is_exclusion:
            return self
        mementos = self.mementos.plus(other.mementos)
        return Frequency(mementos, self.resources.plus(other.resources, overlapping=overlapping))


def total(frequencies: Iterable[Frequency], *, overlapping: bool = False) -> Frequency:
    """Return the sum of at least one frequency."""
    return reduce(lambda one, other: one.plus(other, overlapping=overlapping), frequencies)
