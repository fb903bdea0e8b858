"""Charts."""

import itertools
import re

from unlost.report import ChartAxis, ChartSeries, line_chart


def places(svg: str) -> list[tuple[int, int, str]]:
    """Return where the names of the legend stand, and these."""
    found = re.findall(r'<text x="(\d+)" y="(\d+)"[^>]*>([a-z ]+)</text>', svg)
    return [(int(left), int(top), name) for left, top, name in found]


def test_names_of_a_legend_do_not_cover_each_other() -> None:
    """Short ones stand three beside each other, long ones two, and the drawing is as high as they need."""
    points = [(0.0, 1.0), (1.0, 2.0)]
    for names in (["a", "b", "c"], ["a", "a name that is rather a long one", "c"]):
        svg = line_chart("t", [ChartSeries(name, points) for name in names], ChartAxis(""), ChartAxis(""))
        shown = [place for place in places(svg) if place[2] in names]
        assert [name for _, _, name in shown] == names
        for (left, top, name), (right, below, _) in itertools.pairwise(shown):
            assert below > top or right - left >= 7 * len(name), svg
        height = re.search(r'viewBox="0 0 \d+ (\d+)"', svg)
        assert height is not None
        assert int(height[1]) >= max(top for _, top, _ in shown)
