"""The reconstruction diagram: areas measured in the SVG."""

import re
from math import atan2, cos, hypot, pi, sin
from xml.etree import ElementTree as ET

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from unlost.comparison import ResourceCounts, reconstruction_diagram

SVG = "{http://www.w3.org/2000/svg}"
COUNT = st.one_of(st.just(0), st.integers(1, 50), st.integers(1, 100_000))
COUNTS = st.builds(ResourceCounts, COUNT, COUNT, COUNT, COUNT)
STEPS = 500


def draw(counts: ResourceCounts) -> ET.Element:
    """Return the diagram as a tree."""
    return ET.fromstring(reconstruction_diagram(counts))  # noqa: S314  our own


def areas(picture: ET.Element) -> dict[str, float]:
    """Return the area of each shape by class."""
    found = {}
    for shape in picture.iter():
        if shape.tag == f"{SVG}path":
            found[shape.attrib["class"]] = area(shape.attrib["d"])
        elif shape.tag == f"{SVG}circle":
            found[shape.attrib["class"]] = pi * float(shape.attrib["r"]) ** 2
    return found


def area(path: str) -> float:
    """Return the area of a path, with arcs as polygons; the second subpath is a hole in the first."""
    sizes = []
    for subpath in path.split("Z"):
        corners: list[tuple[float, float]] = []
        for letter, text in re.findall("([MAL])([^MALZ]*)", subpath):
            numbers = [float(number) for number in text.split()]
            end = (numbers[-2], numbers[-1])
            corners += arc(corners[-1], end, numbers) if letter == "A" else [end]
        pairs = zip(corners, corners[1:] + corners[:1], strict=True)
        sizes.append(abs(sum(a[0] * b[1] - b[0] * a[1] for a, b in pairs)) / 2)
    return sizes[0] - sum(sizes[1:])


def arc(begin: tuple[float, float], end: tuple[float, float], numbers: list[float]) -> list[tuple[float, float]]:
    """Return points of an arc around the centre."""
    radius, _, _, is_long, is_clockwise, _, _ = numbers
    assert hypot(*begin) == pytest.approx(radius, abs=1e-3)
    assert hypot(*end) == pytest.approx(radius, abs=1e-3)
    first, last = atan2(begin[1], begin[0]), atan2(end[1], end[0])
    sweep = (last - first) % (2 * pi) if is_clockwise else -((first - last) % (2 * pi))
    if abs(abs(sweep) - pi) > 1e-3:
        assert is_long == (abs(sweep) > pi), "the flag says which of two arcs is meant"
    points = [(radius * cos(first + sweep * i / STEPS), radius * sin(first + sweep * i / STEPS)) for i in range(STEPS)]
    return [*points[1:], end]


@given(COUNTS)
@example(ResourceCounts(1, 54051, 1, 0))
def test_areas_are_proportional_to_counts(counts: ResourceCounts) -> None:
    """Of every shape, the hole and the ring."""
    all_of = counts.original + counts.added
    assume(all_of)
    found = areas(draw(counts))
    for name in ("identical", "changed", "missing", "added"):
        number = getattr(counts, name)
        assert (name in found) is (number > 0)
        if number:
            # Coordinates have four decimals.
            assert found[name] / (pi * 100**2) == pytest.approx(number / all_of, rel=0.01, abs=2e-6)


def test_measurement_detects_wrong_areas() -> None:
    """With radii in place of areas."""
    lying = reconstruction_diagram(ResourceCounts(identical=50, missing=50)).replace("70.7107", "50")
    found = areas(ET.fromstring(lying))  # noqa: S314
    assert found["missing"] / (pi * 100**2) != pytest.approx(0.5, rel=0.01)


@pytest.mark.parametrize(
    ("counts", "shapes"),
    [
        (ResourceCounts(), ["missing"]),
        (ResourceCounts(identical=3), ["identical"]),
        (ResourceCounts(changed=3), ["changed"]),
        (ResourceCounts(missing=3), ["missing"]),
        (ResourceCounts(added=3), ["added"]),
        (ResourceCounts(identical=3, changed=1), ["identical", "changed"]),
        (ResourceCounts(changed=1, missing=1), ["changed", "missing"]),
        (ResourceCounts(missing=1, added=1), ["added", "missing"]),
        (ResourceCounts(1, 1, 1, 1), ["added", "identical", "changed", "missing"]),
        (ResourceCounts(identical=1_000_000, changed=1), ["identical", "changed"]),
    ],
)
def test_only_nonempty_parts_are_drawn(counts: ResourceCounts, shapes: list[str]) -> None:
    """Without invalid numbers."""
    text = reconstruction_diagram(counts)
    assert [shape.attrib["class"] for shape in draw(counts).iter() if "class" in shape.attrib] == shapes
    assert "nan" not in text
    assert "-0 " not in text
    assert not re.search(r"\de-", text)


def test_diagram_has_a_text_alternative() -> None:
    """A title, and a description with all counts."""
    picture = draw(ResourceCounts(1, 2000, 3, 4))
    assert picture.attrib["role"] == "img"
    labels = {element.attrib["id"]: element.text for element in picture if "id" in element.attrib}
    assert picture.attrib["aria-labelledby"].split() == list(labels)
    text = " ".join(str(label) for label in labels.values())
    assert "Identical 1, changed 2,000, missing 3 (hole), added 4 (outer ring)" in text
    assert "Areas are proportional" in text


def test_diagram_is_deterministic() -> None:
    """Equal counts give equal bytes."""
    assert reconstruction_diagram(ResourceCounts(5, 4, 3, 2)) == reconstruction_diagram(ResourceCounts(5, 4, 3, 2))
