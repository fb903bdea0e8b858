"""Tests of rows of the comparison."""

import pytest
from bench.peers.row import Row


@pytest.mark.parametrize(
    ("ours", "theirs", "more", "ratio", "leads"),
    [
        (1, 10, False, 10, True),
        (10, 1, False, 0.1, False),
        (10, 5, True, 2, True),
        (5, 10, True, 0.5, False),
        (0, 0, False, 1, True),
        (0, 3, False, float("inf"), True),
        (3, 0, False, 0, False),
        (3, 0, True, float("inf"), True),
    ],
)
def test_ratio_and_leading_tool(ours: float, theirs: float, more: bool, ratio: float, leads: bool) -> None:
    """For both directions of the unit, and for figures of zero."""
    row = Row("work", "peer", "unit", ours, theirs, more_is_better=more)
    assert row.ratio == pytest.approx(ratio)
    assert row.leads is leads
    assert row.to_json()["leads"] is leads
    assert row.line().split(" | ")[-1].strip(" |") == ("equal" if ratio == 1 else "unlost" if leads else "**peer**")
