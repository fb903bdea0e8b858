"""The difference vector of two sites, penalties, penalty rules, and the five levels of success."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fnmatch import translate

from unlost.errors import UsageError


@dataclass(frozen=True, slots=True)
class ResourceCounts:
    """Number of resources by outcome.

    Attributes:
        identical: Recovered unchanged.
        changed: Recovered with changes.
        missing: Not recovered.
        added: Recovered, but not in the original.
    """

    identical: int = 0
    changed: int = 0
    missing: int = 0
    added: int = 0

    @property
    def original(self) -> int:
        """Number of resources in the original."""
        return self.identical + self.changed + self.missing

    @property
    def back(self) -> int:
        """Number of resources that were recovered, changed or not."""
        return self.identical + self.changed

    @property
    def recovered(self) -> int:
        """Number of resources in the recovered site, including added ones."""
        return self.identical + self.changed + self.added


@dataclass(frozen=True, slots=True)
class Penalties:
    """Weight of each kind of difference, from 0 (ignored) to 1.

    Raises:
        UsageError: A weight is not in this range.
    """

    changed: float = 1.0
    missing: float = 1.0
    added: float = 1.0

    def __post_init__(self) -> None:
        """Reject weights that are not between 0 and 1, including NaN."""
        for weight in (self.changed, self.missing, self.added):
            if not 0.0 <= weight <= 1.0:
                raise UsageError(f"a penalty of {weight:g}: expected a number from 0 to 1")

    @classmethod
    def parse(cls, text: str) -> "Penalties":
        """Parse penalties for changed, missing and added resources, such as `0.5,1,0`. Raises UsageError.

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
    """The difference vector of the dissertation. A perfect recovery has (0, 0, 0), a lost site (0, 1, 0).

    Attributes:
        changed: Share of changed resources in the original, from 0 to 1.
        missing: Share of missing resources in the original.
        added: Share of added resources in the recovered site.
    """

    changed: float
    missing: float
    added: float

    @classmethod
    def of(cls, counts: ResourceCounts, penalties: Penalties = Penalties()) -> "SiteDifference":  # noqa: B008  frozen
        """Return the vector of counts, multiplied by the penalties. A share of 0 resources is 0.

        >>> SiteDifference.of(ResourceCounts(identical=2, changed=2, missing=2, added=1))
        SiteDifference(changed=0.333..., missing=0.333..., added=0.2)
        """
        return cls(
            _share(counts.changed, counts.original) * penalties.changed,
            _share(counts.missing, counts.original) * penalties.missing,
            _share(counts.added, counts.recovered) * penalties.added,
        )

    @property
    def success(self) -> float:
        """The sum of the shares, from 0 to 2: **the lower, the better**."""
        return self.changed + self.missing + self.added


def _share(count: float, of: int) -> float:
    return count / of if of else 0.0


def weigh_difference(
    changed: list[float], missing: list[float], added: list[float], counts: ResourceCounts
) -> SiteDifference:
    """Return the difference vector with one penalty for each resource that is not identical.

    Args:
        changed: Penalties of the changed resources, in any order.
        missing: Penalties of the missing resources.
        added: Penalties of the added resources.
        counts: Number of resources by outcome.

    >>> weigh_difference([0.5, 1.0], [1.0], [], ResourceCounts(identical=1, changed=2, missing=1)).success
    0.625
    """
    # fsum() is exact, so that the result does not depend on the order of the penalties.
    return SiteDifference(
        _share(math.fsum(changed), counts.original),
        _share(math.fsum(missing), counts.original),
        _share(math.fsum(added), counts.recovered),
    )


@dataclass(frozen=True, slots=True)
class SuccessLevel:
    """One of the five general levels of success.

    Attributes:
        name: `s1` (the strictest) to `s5`.
        penalties: Penalties of the level.
        difference: The difference vector with these penalties.
    """

    name: str
    penalties: Penalties
    difference: SiteDifference

    @property
    def success(self) -> float:
        """The sum of the vector, from 0 to 2 on `s1` and to 1 on the others: the lower, the better."""
        return self.difference.success


ALL_PENALTIES = Penalties(1, 1, 1)
IGNORE_ADDED = Penalties(1, 1, 0)
ONLY_MISSING = Penalties(0, 1, 0)


def success_levels(counts: ResourceCounts, similar: int, held: int) -> tuple[SuccessLevel, ...]:
    """Return the five levels of success. None is higher than the previous one.

    Args:
        counts: Number of resources by outcome.
        similar: Number of changed resources with almost identical text. On `s3` they count as identical.
        held: Number of missing resources that an archive is known to hold. On `s5` they count as recovered.

    >>> [round(level.success, 3) for level in success_levels(ResourceCounts(2, 2, 2, 1), similar=1, held=1)]
    [0.867, 0.667, 0.5, 0.333, 0.167]
    """
    relaxed = replace(counts, identical=counts.identical + similar, changed=counts.changed - similar)
    available = replace(counts, identical=counts.identical + held, missing=counts.missing - held)
    rows = [("s1", ALL_PENALTIES, counts), ("s2", IGNORE_ADDED, counts), ("s3", IGNORE_ADDED, relaxed)]
    rows += [("s4", ONLY_MISSING, counts), ("s5", ONLY_MISSING, available)]
    return tuple(SuccessLevel(name, penalties, SiteDifference.of(of, penalties)) for name, penalties, of in rows)


_MAX_URL_LENGTH = 2_000  # characters that a pattern is matched against, to bound the cost of hostile URLs


@dataclass(frozen=True, slots=True)
class PenaltyRules:
    """Penalties by resource: those of the last matching rule.

    Attributes:
        default: Penalties of resources that no rule matches.
    """

    default: Penalties = field(default_factory=Penalties)
    _rules: tuple[tuple[Callable[[str, str], bool], Penalties], ...] = ()

    def with_type_rule(self, text: str) -> "PenaltyRules":
        """Add a rule for media types, such as `image/*=0.2,1,0`. Raises UsageError.

        >>> rules = PenaltyRules().with_type_rule("image/*=0.2,1,0").with_uri_rule("/thumbs/=0,0,0")
        >>> rules.penalties_for("image/png", "http://a.example/b.png").changed
        0.2
        >>> rules.penalties_for("image/png", "http://a.example/thumbs/b.png").changed
        0.0
        """
        pattern, penalties = _split_rule(text, "TYPE")
        if not re.fullmatch(r"[\w.+*?-]+/[\w.+*?-]+|\*", pattern):
            raise UsageError(f"`{pattern[:80]}`: expected a type such as text/html, image/* or *")
        expression = re.compile(translate(pattern.lower()))
        return self._with(lambda mime, _: expression.fullmatch(mime) is not None, penalties)

    def with_uri_rule(self, text: str) -> "PenaltyRules":
        r"""Add a rule for URLs that match a regular expression, such as `\.pdf$=0.5,1,0`, at any position.

        Raises UsageError.
        """
        pattern, penalties = _split_rule(text, "REGEX")
        try:
            expression = re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(f"`{pattern[:80]}` is no regular expression: {error}") from None
        return self._with(lambda _, uri: expression.search(uri[:_MAX_URL_LENGTH]) is not None, penalties)

    def penalties_for(self, mime: str, uri: str) -> Penalties:
        """Return the penalties for a resource."""
        for matches, penalties in reversed(self._rules):
            if matches(mime, uri):
                return penalties
        return self.default

    def _with(self, matches: Callable[[str, str], bool], penalties: Penalties) -> "PenaltyRules":
        return PenaltyRules(self.default, (*self._rules, (matches, penalties)))


def _split_rule(text: str, what: str) -> tuple[str, Penalties]:
    # Split at the last `=`, since an expression may contain one and penalties do not.
    pattern, mark, penalties = text.rpartition("=")
    if not mark or not pattern:
        raise UsageError(f"`{text[:80]}`: expected {what}=C,M,A")
    return pattern, Penalties.parse(penalties)
