"""The difference vector of two sites, penalties, penalty rules, and the five levels of success."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fnmatch import translate

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

    >>> weigh_difference([0.5, 1.0], [1.0], [], ResourceCounts(identical=1, changed=2, missing=1)).success
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

    >>> [round(level.success, 3) for level in success_levels(ResourceCounts(2, 2, 2, 1), similar=1, held=1)]
    [0.867, 0.667, 0.5, 0.333, 0.167]
    """
    relaxed = replace(counts, identical=counts.identical + similar, changed=counts.changed - similar)
    had = replace(counts, identical=counts.identical + held, missing=counts.missing - held)
    rows = [("s1", ALL_PENALTIES, counts), ("s2", IGNORE_ADDED, counts), ("s3", IGNORE_ADDED, relaxed)]
    rows += [("s4", ONLY_MISSING, counts), ("s5", ONLY_MISSING, had)]
    return tuple(SuccessLevel(name, penalties, SiteDifference.of(of, penalties)) for name, penalties, of in rows)


_MAX_URL_LENGTH = 2_000  # characters of an address, so that a hostile one costs little: pages have no longer ones


@dataclass(frozen=True, slots=True)
class PenaltyRules:
    """Which penalties count for which resource: of the rules that match it the last, else `others`."""

    default: Penalties = field(default_factory=Penalties)
    _rules: tuple[tuple[Callable[[str, str], bool], Penalties], ...] = ()

    def with_type_rule(self, text: str) -> "PenaltyRules":
        """Return the rules with one more, such as `image/*=0.2,1,0`. Raises UsageError.

        >>> rules = PenaltyRules().by_type("image/*=0.2,1,0").by_uri("/thumbs/=0,0,0")
        >>> rules.of("image/png", "http://a.example/b.png").changed
        0.2
        >>> rules.of("image/png", "http://a.example/thumbs/b.png").changed
        0.0
        """
        pattern, penalties = _split_rule(text, "TYPE")
        if not re.fullmatch(r"[\w.+*?-]+/[\w.+*?-]+|\*", pattern):
            raise UsageError(f"`{pattern[:80]}`: expected a type such as text/html, image/* or *")
        found = re.compile(translate(pattern.lower()))
        return self._with(lambda mime, _: found.fullmatch(mime) is not None, penalties)

    def with_uri_rule(self, text: str) -> "PenaltyRules":
        r"""Return the rules with one more, such as `\.pdf$=0.5,1,0`; it is looked for anywhere in an address.

        Raises UsageError.
        """
        pattern, penalties = _split_rule(text, "REGEX")
        try:
            found = re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(f"`{pattern[:80]}` is no regular expression: {error}") from None
        return self._with(lambda _, uri: found.search(uri[:_MAX_URL_LENGTH]) is not None, penalties)

    def penalties_for(self, mime: str, uri: str) -> Penalties:
        """Return the penalties for a resource of this type at this address."""
        for matches, penalties in reversed(self._rules):
            if matches(mime, uri):
                return penalties
        return self.default

    def _with(self, matches: Callable[[str, str], bool], penalties: Penalties) -> "PenaltyRules":
        return PenaltyRules(self.default, (*self._rules, (matches, penalties)))


def _split_rule(text: str, what: str) -> tuple[str, Penalties]:
    # From the end: an expression may have any sign in it, penalties have no `=`.
    pattern, mark, penalties = text.rpartition("=")
    if not mark or not pattern:
        raise UsageError(f"`{text[:80]}`: expected {what}=C,M,A")
    return pattern, Penalties.parse(penalties)
