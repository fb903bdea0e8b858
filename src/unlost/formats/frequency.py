"""How much is held under a key of a MementoMap: so many copies, of so many pages."""

import re
from dataclasses import dataclass
from typing import Literal, Self, cast

from unlost.errors import InputError

FrequencyBound = Literal["", "+", "-", "~"]
"""How sure a number is: exact, at least, at most, about."""

# 18 digits fit 64 bits, and are more than all archives together hold.
_FREQUENCY = re.compile(r"([0-9]{1,18})?([+~-])?(?:/([0-9]{1,18})?([+~-])?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Frequency:
    """A frequency: `[m][+-~][/[r][+-~]]`. What is not known is None, and then its bound is exact.

    mementos: how many copies (URI-Ms) are held. 0 says that none is, even where something wider says otherwise.
    resources: of how many pages (URI-Rs). `0/20` means 20 pages that are known but cannot be shown.
    """

    mementos: int | None = None
    mementos_bound: FrequencyBound = ""
    resources: int | None = None
    resources_bound: FrequencyBound = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the frequency that a text stands for. A bound without a number says nothing, and is dropped.

        Raises InputError.

        >>> Frequency.parse("2500~/900")
        Frequency(mementos=2500, mementos_bound='~', resources=900, resources_bound='')
        >>> Frequency.parse("/")
        Frequency(mementos=None, mementos_bound='', resources=None, resources_bound='')
        """
        found = _FREQUENCY.fullmatch(text)
        if not found or not text:
            raise InputError(f"expected a frequency such as 300+/20-, found `{text[:40]!a}`")
        mementos, mementos_bound, resources, resources_bound = found.groups()
        return cls(
            int(mementos) if mementos else None,
            cast("FrequencyBound", mementos_bound or "") if mementos else "",
            int(resources) if resources else None,
            cast("FrequencyBound", resources_bound or "") if resources else "",
        )

    def __str__(self) -> str:
        """Return its shortest text: `Frequency.parse(str(f)) == f`.

        >>> str(Frequency(300, "+", 20, "-")), str(Frequency(7)), str(Frequency(None, "", 5)), str(Frequency())
        ('300+/20-', '7', '/5', '/')
        """
        copies = "" if self.mementos is None else f"{self.mementos}{self.mementos_bound}"
        pages = "" if self.resources is None else f"/{self.resources}{self.resources_bound}"
        return copies + pages or "/"

    @property
    def is_exclusion(self) -> bool:
        """Whether it says for sure that nothing is held or known.

        >>> [Frequency.parse(text).is_exclusion for text in ("0", "0-", "0/0", "0+", "0~", "0/20", "/", "1")]
        [True, True, True, False, False, False, False, False]
        """
        return self.mementos == 0 and self.mementos_bound in ("", "-") and not self.resources
