"""Tests of charts."""

import itertools
import re

from unlost.report import ChartAxis, ChartSeries, line_chart


def legend_positions(svg: str) -> list[tuple[int, int, str]]:
    """Return position and name of the legend entries."""
    found = re.findall(r'<text x="(\d+)" y="(\d+)"[^>]*>([a-z ]+)</text>', svg)
    return [(int(left), int(top), name) for left, top, name in found]


def test_legend_entries_do_not_overlap() -> None:
    """Short names are in three columns, long ones in two, and the height fits."""
    points = [(0.0, 1.0), (1.0, 2.0)]
    for names in (["a", "b", "c"], ["a", "a name that is rather a long one", "c"]):
        svg = line_chart("t", [ChartSeries(name, points) for name in names], ChartAxis(""), ChartAxis(""))
        entries = [place for place in legend_positions(svg) if place[2] in names]
        assert [name for _, _, name in entries] == names
        for (left, top, name), (right, below, _) in itertools.pairwise(entries):
            assert below > top or right - left >= 7 * len(name), svg
        height = re.search(r'viewBox="0 0 \d+ (\d+)"', svg)
        assert height is not None
        assert int(height[1]) >= max(top for _, top, _ in entries)
