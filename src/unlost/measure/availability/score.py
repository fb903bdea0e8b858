"""The share of a site that would come back, and between which limits it lies if only a part was asked for."""

from dataclasses import dataclass

from unlost.measure.intervals import wilson_interval


@dataclass(frozen=True, slots=True)
class AvailabilityScore:
    """How much of what is on the web would come back.

    live: how many resources are on the web. held: how many of them are known to be in an archive.
    absent: of how many all archives said that they have nothing. drawn, hits: of those that no list has, how many were
        asked for and answered about, and how many of these some archive has.
    """

    live: int
    held: int
    absent: int
    sampled: int
    hits: int

    @property
    def unknown(self) -> int:
        """Of how many nobody can tell."""
        return self.live - self.held - self.absent

    @property
    def share(self) -> float | None:
        """The share, estimated if something is unknown; None of nothing, or if nothing is known at all.

        >>> Score(live=100, held=60, absent=10, drawn=20, hits=10).share
        0.75
        """
        if not self.live:
            return None
        if not self.unknown:
            return self.held / self.live
        if not self.sampled:
            return None
        return (self._listed + self._population * self.hits / self.sampled) / self.live

    @property
    def interval(self) -> tuple[float, float] | None:
        """Between which shares it lies, with a probability of 95 %; one point if nothing is unknown. None of nothing.

        >>> Score(live=4, held=3, absent=1, drawn=2, hits=1).interval
        (0.75, 0.75)
        >>> [round(end, 2) for end in Score(live=100, held=60, absent=10, drawn=20, hits=10).interval]
        [0.67, 0.83]
        """
        if not self.live:
            return None
        if not self.unknown:
            return self.held / self.live, self.held / self.live
        low, high = wilson_interval(self.hits, self.sampled, self._population)
        return (self._listed + low * self._population) / self.live, (self._listed + high * self._population) / self.live

    @property
    def _listed(self) -> int:
        """How many are known to be held without having been drawn."""
        return self.held - self.hits

    @property
    def _population(self) -> int:
        """How many there are from which were drawn: also those of which nobody can tell after all."""
        return self.sampled + self.unknown
