"""How a host treats validators and HEAD, as it was measured: counts, and what follows from them."""

from dataclasses import asdict, dataclass, fields, replace
from typing import Self

MIN_SAMPLES = 3
"""Answers to conditions before they are believed: one may be chance, a host of two back ends takes turns."""

_CONTRADICTION_WEIGHT = (
    20  # one contradiction weighs as much as so many answers that were right: 5 %, as much as is audited at most
)


@dataclass(frozen=True, slots=True)
class HostBehaviour:
    """What a host did so far.

    spared: 304 where the scheme skips, too. sent: the page where the scheme downloads, too.
    needless: the page where the scheme would have skipped it. against: 304 where the scheme, or an audit, found a
        change.
    head_alike, head_unlike: HEAD with and without the headers that GET then had.
    unasked: 304 to a request without a condition.
    """

    spared: int = 0
    sent: int = 0
    needless: int = 0
    against: int = 0
    head_alike: int = 0
    head_unlike: int = 0
    unasked: int = 0

    @classmethod
    def from_json(cls, values: object) -> Self:
        """Return what was written by `values`; whatever is no count is 0."""
        known = values if isinstance(values, dict) else {}
        counts = {each.name: known.get(each.name) for each in fields(cls)}
        return cls(**{name: count for name, count in counts.items() if type(count) is int and 0 <= count < 2**60})

    @property
    def to_json(self) -> dict[str, int]:
        """Its counts by name, those that are not 0."""
        return {name: count for name, count in asdict(self).items() if count}

    def increment(self, name: str) -> Self:
        """Return the same with one more of a count."""
        return replace(self, **{name: getattr(self, name) + 1})

    @property
    def matches_scheme(self) -> bool:
        """Whether a condition does on this host what the scheme would do: only then 304 may take its place.

        >>> Treatment(spared=3, sent=1).equals_scheme, Treatment(spared=3).equals_scheme
        (True, False)
        >>> Treatment(spared=9, sent=1, against=1).equals_scheme, Treatment(spared=3, sent=1, needless=4).equals_scheme
        (False, False)
        """
        is_measured = self.spared >= MIN_SAMPLES and self.sent >= 1
        return (
            is_measured
            and self.spared > self.needless
            and self.against * _CONTRADICTION_WEIGHT <= self.spared + self.sent
        )

    @property
    def needs_skip_probe(self) -> bool:
        """Whether to send a condition where the scheme skips, to see whether 304 comes."""
        return self.spared + self.needless < MIN_SAMPLES and not self.against

    @property
    def needs_download_probe(self) -> bool:
        """Whether to send a condition where the scheme downloads, to see whether the page comes."""
        return self.sent < MIN_SAMPLES and not self.against

    @property
    def head_differs(self) -> bool:
        """Whether HEAD does not show what GET has: one that did is believed until another did not.

        >>> Treatment(head_alike=9, head_unlike=1).head_differs, Treatment().head_differs
        (True, False)
        """
        return self.head_unlike > 0
