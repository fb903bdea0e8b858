"""One figure of ours beside one of a peer's, and which is better."""

from dataclasses import asdict, dataclass
from typing import Any

LEAST_LEAD = 1.0


@dataclass(frozen=True)
class Row:
    """The same work, measured in the same unit.

    peer: whose figure `theirs` is. options: how each was run, where that matters. more_is_better: of the unit.
    """

    work: str
    peer: str
    unit: str
    ours: float
    theirs: float
    more_is_better: bool = False
    options: str = ""

    @property
    def ratio(self) -> float:
        """How many times as good ours is; infinite if theirs is nothing at all, and 1 if both are the same."""
        better, worse = (self.ours, self.theirs) if self.more_is_better else (self.theirs, self.ours)
        if better == worse:
            return 1.0
        return better / worse if worse else float("inf")

    @property
    def leads(self) -> bool:
        """Whether ours is at least as good."""
        return self.ratio >= LEAST_LEAD

    def line(self) -> str:
        """Return it as a line of a table in Markdown."""
        ratio = "none of theirs" if self.ratio == float("inf") and self.more_is_better else f"{self.ratio:.3g}"
        ratio = "none of ours" if self.ratio == float("inf") and not self.more_is_better else ratio
        lead = "unlost" if self.ratio > LEAST_LEAD else "equal" if self.leads else f"**{self.peer}**"
        cells = (self.work, self.peer, self.unit, _shown(self.ours), _shown(self.theirs), ratio, lead)
        return f"| {' | '.join(cells)} |"

    def plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {**asdict(self), "leads": self.leads}


HEAD = ("| work | peer | measured | unlost | peer | times as good | leads |", "|---|---|---|---|---|---|---|")


def _shown(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 or figure == int(figure) else f"{figure:.3g}"
