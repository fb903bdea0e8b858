"""How far a recovered site is from the original, in numbers: the difference vector, and what of it is to be minded."""

import math
from dataclasses import dataclass, replace

from unlost.errors import UsageError


@dataclass(frozen=True, slots=True)
class ResourceCounts:
    """How many resources came back as they were, came back changed, did not come back, and were not in the original."""

    identical: int = 0
    changed: int = 0
    missing: int = 0
    added: int = 0

    @property
    def original(self) -> int:
        """How many the original has."""
        return self.identical + self.changed + self.missing

    @property
    def back(self) -> int:
        """How many of the original's came back, changed or not."""
        return self.identical + self.changed

    @property
    def recovered(self) -> int:
        """How many the recovered site has, added ones too."""
        return self.identical + self.changed + self.added


@dataclass(frozen=True, slots=True)
class Penalties:
    """How much each kind of difference is minded: 0 is not at all, 1 is fully. Raises UsageError for other numbers."""

    changed: float = 1.0
    missing: float = 1.0
    added: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what is not between 0 and 1, `nan` among it."""
        for weight in (self.changed, self.missing, self.added):
            if not 0.0 <= weight <= 1.0:
                raise UsageError(f"a penalty of {weight:g}: expected a number from 0 to 1")

    @classmethod
    def parse(cls, text: str) -> "Penalties":
        """Return the penalties that a text such as `0.5,1,0` has: for changed, missing, added. Raises UsageError.

        >>> Penalties.parse("0.5, 1, 0")
        Penalties(changed=0.5, missing=1.0, added=0.0)
        """
        try:
            changed, missing, added = (float(part) for part in text.split(","))
        except ValueError:
            raise UsageError(f"`{text[:40]}`: expected penalties for changed,missing,added such as 0.5,1,0") from None
        return cls(changed, missing, added)


@dataclass(frozen=True, slots=True)
class SiteDifference:
    """The difference vector: shares of the original's resources that are changed and missing, of the recovered added.

    Each is between 0 and 1. A perfect recovery has (0, 0, 0), a site that is lost (0, 1, 0).
    """

    changed: float
    missing: float
    added: float

    @classmethod
    def of(cls, counts: ResourceCounts, penalties: Penalties = Penalties()) -> "SiteDifference":  # noqa: B008  frozen
        """Return the vector of these counts, weighed as a whole; a share of nothing is 0.

        >>> Difference.of(Counts(identical=2, changed=2, missing=2, added=1))
        Difference(changed=0.333..., missing=0.333..., added=0.2)
        """
        return cls(
            _share(counts.changed, counts.original) * penalties.changed,
            _share(counts.missing, counts.original) * penalties.missing,
            _share(counts.added, counts.recovered) * penalties.added,
        )

    @property
    def success(self) -> float:
        """The sum, from 0 to 2: **the lower, the better**."""
        return self.changed + self.missing + self.added


def _share(count: float, of: int) -> float:
    return count / of if of else 0.0


def weigh_difference(
    changed: list[float], missing: list[float], added: list[float], counts: ResourceCounts
) -> SiteDifference:
    """Return the difference vector of resources that are weighed one by one: a penalty for each that is not identical.

    changed, missing, added: the penalties, in any order, as many as there are such resources. counts: of all.

    >>> weighed([0.5, 1.0], [1.0], [], Counts(identical=1, changed=2, missing=1)).success
    0.625
    """
    # The sum of many weights is made exactly, so that their order changes nothing.
    return SiteDifference(
        _share(math.fsum(changed), counts.original),
        _share(math.fsum(missing), counts.original),
        _share(math.fsum(added), counts.recovered),
    )


@dataclass(frozen=True, slots=True)
class SuccessLevel:
    """One of the five general levels of success, the strictest first.

    name: `s1` to `s5`. penalties: of the level. difference: what they leave of the vector; its sum is the success.
    """

    name: str
    penalties: Penalties
    difference: SiteDifference

    @property
    def success(self) -> float:
        """From 0 to 2, for all but the first to 1: the lower, the better."""
        return self.difference.success


ALL_PENALTIES = Penalties(1, 1, 1)
IGNORE_ADDED = Penalties(1, 1, 0)
ONLY_MISSING = Penalties(0, 1, 0)


def success_levels(counts: ResourceCounts, similar: int, held: int) -> tuple[SuccessLevel, ...]:
    """Return the five levels; none of them is higher than the one before.

    similar: how many of the changed ones have almost the same text; from the third level on they are as good as
        identical. held: how many of the missing ones an archive is known to hold; on the fifth they are as good as
        recovered.

    >>> [round(level.success, 3) for level in levels(Counts(2, 2, 2, 1), similar=1, held=1)]
    [0.867, 0.667, 0.5, 0.333, 0.167]
    """
    relaxed = replace(counts, identical=counts.identical + similar, changed=counts.changed - similar)
    had = replace(counts, identical=counts.identical + held, missing=counts.missing - held)
    rows = [("s1", ALL_PENALTIES, counts), ("s2", IGNORE_ADDED, counts), ("s3", IGNORE_ADDED, relaxed)]
    rows += [("s4", ONLY_MISSING, counts), ("s5", ONLY_MISSING, had)]
    return tuple(SuccessLevel(name, penalties, SiteDifference.of(of, penalties)) for name, penalties, of in rows)
