"""A figure of unlost and of a peer, and which is better."""

from dataclasses import asdict, dataclass
from typing import Any

MIN_RATIO = 1.0


@dataclass(frozen=True)
class Row:
    """A figure of both tools for the same work in the same unit. The field names are keys of `peers.json`.

    Attributes:
        work: Description of the work.
        peer: Name of the other tool.
        unit: Unit of both figures.
        ours: Figure of unlost.
        theirs: Figure of the peer.
        more_is_better: Whether the greater figure is better.
        options: How the tools were run, if it matters.
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
        """Ratio by which unlost is better; infinite if the peer has nothing, and 1 if both are equal."""
        better, worse = (self.ours, self.theirs) if self.more_is_better else (self.theirs, self.ours)
        if better == worse:
            return 1.0
        return better / worse if worse else float("inf")

    @property
    def leads(self) -> bool:
        """Whether unlost is at least as good."""
        return self.ratio >= MIN_RATIO

    def line(self) -> str:
        """Return a row of a Markdown table."""
        ratio = "none of theirs" if self.ratio == float("inf") and self.more_is_better else f"{self.ratio:.3g}"
        ratio = "none of ours" if self.ratio == float("inf") and not self.more_is_better else ratio
        lead = "unlost" if self.ratio > MIN_RATIO else "equal" if self.leads else f"**{self.peer}**"
        cells = (self.work, self.peer, self.unit, _format_figure(self.ours), _format_figure(self.theirs), ratio, lead)
        return f"| {' | '.join(cells)} |"

    def to_json(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return {**asdict(self), "leads": self.leads}


TABLE_HEADER = ("| work | peer | measured | unlost | peer | times as good | leads |", "|---|---|---|---|---|---|---|")


def _format_figure(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 or figure == int(figure) else f"{figure:.3g}"
