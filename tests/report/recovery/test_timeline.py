"""Tests of the timeline."""

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.report.recovery import TimelineBar, describe_timeline, render_timeline, report_strings, timeline_bars

ENGLISH = report_strings("en")
SVG = "{http://www.w3.org/2000/svg}"
MONTHS = st.dictionaries(
    st.builds(lambda year, month: f"{year:04}{month:02}", st.integers(0, 9999), st.integers(0, 99)),
    st.integers(1, 10**6),
    max_size=30,
)


@given(MONTHS)
def test_every_capture_is_in_one_of_at_most_60_bars(months: dict[str, int]) -> None:
    """Bars are ordered and cover all captures, whatever their dates."""
    found = timeline_bars(months)
    assert sum(bar.count for bar in found) == sum(months.values())
    assert len(found) <= 60
    labels = [bar.label for bar in found]
    assert labels == sorted(set(labels))
    if found:
        assert found[0].count
        assert found[-1].count


def test_single_date_yields_one_bar() -> None:
    """It has the full height and the label of its month."""
    found = timeline_bars({"201104": 1})
    assert found == [TimelineBar("2011-04", 1)]
    (shape,) = _shapes(found)
    assert (float(shape["y"]), float(shape["height"])) == (0, 100)
    assert describe_timeline(found, ENGLISH) == "1 capture, from 2011-04."


@pytest.mark.parametrize(
    ("first", "last", "count", "label"),
    [
        ("201101", "201312", 36, "2011-01"),
        ("201101", "201401", 4, "2011"),
        ("199601", "202612", 31, "1996"),
        ("190001", "202612", 26, "1900 to 1904"),
        ("000101", "999912", 50, "0000 to 0199"),
    ],
)
def test_bar_length_depends_on_time_span(first: str, last: str, count: int, label: str) -> None:
    """Up to three years are months; longer spans are years or several years."""
    found = timeline_bars({first: 1, last: 2})
    assert (len(found), found[0].label) == (count, label)


def test_bar_heights_are_proportional() -> None:
    """A small bar is still visible."""
    found = timeline_bars({"200001": 10_000, "200101": 5_000, "200501": 1})
    heights = {shape["title"]: float(shape["height"]) for shape in _shapes(found)}
    assert heights["2000: 10,000"] == 100
    assert heights["2001: 5,000"] == 50
    assert 1 <= heights["2005: 1"] <= 2
    assert len(heights) == 3, "a year without copies has no bar"


def test_timeline_without_captures_is_empty() -> None:
    """There are no bars, and the image says so."""
    assert timeline_bars({}) == []
    assert "No captures." in render_timeline([], ENGLISH)


def _shapes(found: list[TimelineBar]) -> list[dict[str, str]]:
    picture = ET.fromstring(render_timeline(found, ENGLISH))  # noqa: S314  our own
    width = int(re.split(" ", picture.attrib["viewBox"])[2])
    shapes = []
    for shape in picture.iter(f"{SVG}rect"):
        title = shape.find(f"{SVG}title")
        assert title is not None
        assert 0 <= float(shape.attrib["x"]) < float(shape.attrib["x"]) + float(shape.attrib["width"]) <= width
        assert float(shape.attrib["y"]) + float(shape.attrib["height"]) == pytest.approx(100)
        shapes.append({**shape.attrib, "title": title.text or ""})
    return shapes
