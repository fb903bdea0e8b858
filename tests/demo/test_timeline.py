"""Tests of the timeline of crawl visits."""

import re
from math import isclose

from unlost.demo import CrawlVisit, crawl_visits, render_crawl_timeline

EARLY, LATE, END = "20080210000000", "20140901000000", "20131231000000"


def test_crawl_visits_count_held_taken_and_rejected_captures() -> None:
    """Visits are grouped by archive and day, the earliest first."""
    held = [("b", LATE), ("a", EARLY), ("a", EARLY), ("a", EARLY)]
    assert crawl_visits(held, [("a", EARLY), ("a", EARLY)], [("b", LATE)]) == [
        CrawlVisit("a", EARLY, 3, 2, 0),
        CrawlVisit("b", LATE, 1, 0, 1),
    ]


def test_inner_disc_is_proportional_to_taken_captures() -> None:
    """Areas are proportional; rejected captures have a ring, and unused visits no inner disc."""
    svg = render_crawl_timeline([CrawlVisit("a", EARLY, 8, 4, 0), CrawlVisit("a", LATE, 1, 0, 1)], {"a": "A"}, END)
    radii = {name: [float(r) for r in re.findall(rf'class="{name}"[^/]* r="([\d.]+)"', svg)]
             for name in ("held", "taken", "rejected")}  # fmt: skip
    assert [len(each) for each in radii.values()] == [2, 1, 1]
    assert isclose(radii["taken"][0] ** 2 * 2, radii["held"][0] ** 2, rel_tol=0.02)


def test_timeline_orders_visits_and_escapes_names() -> None:
    """Visits are ordered by date, and names are escaped."""
    svg = render_crawl_timeline([CrawlVisit("a", EARLY, 1, 1, 0), CrawlVisit("a", LATE, 1, 1, 0)], {"a": "<b>"}, END)
    early, _, late, _ = (float(x) for x in re.findall(r'cx="([\d.]+)"', svg))
    end = float(re.findall(r'class="end" d="M([\d.]+)', svg)[0])
    assert early < end < late
    assert "<b>" not in svg
    assert svg.count("&lt;b&gt;") == 5, "the name of the row, two titles, twice in the description"
