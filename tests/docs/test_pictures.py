"""Pictures of the docs: drawn by scripts, as they would be drawn now, and harmless."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from scripts import recording
from scripts.pictures import PICTURES

IMAGES = Path(__file__).parents[2] / "docs" / "images"
DRAWN = [IMAGES / f"{name}.svg" for name in [*PICTURES, "recording"]]


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_fresh(name: str) -> None:
    """Each picture of a concept is what `make docs` would draw."""
    assert (IMAGES / f"{name}.svg").read_text() == PICTURES[name]().svg(), "stale: run `make docs`"


def test_the_recording_is_what_the_commands_print() -> None:
    """The terminal of the README shows what the commands print today: they are run."""
    session = recording.recorded()
    assert "4 of 5 resources came back" in session[1][1]
    assert (IMAGES / "recording.svg").read_text() == recording.drawn(session), "stale: run `make docs`"


@pytest.mark.parametrize("file", DRAWN, ids=lambda file: file.name)
def test_a_picture_stands_alone(file: Path) -> None:
    """It is small, well-formed, has a title, runs nothing and loads nothing from elsewhere."""
    text = file.read_text()
    assert len(text) < 20_000
    assert "<script" not in text
    assert not re.search(r"(?:href|src)=|url\((?!#)", re.sub(r">[^<]*<", "><", text))
    root = ET.fromstring(text)  # noqa: S314  our own
    titles = [each.text for each in root.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == 1
    assert titles[0]


@pytest.mark.parametrize("file", DRAWN, ids=lambda file: file.name)
def test_words_stay_inside(file: Path) -> None:
    """No line of words is so long that it would leave the picture, at the width that its letters have at most."""
    root = ET.fromstring(file.read_text())  # noqa: S314  our own
    width = float(root.get("width", "0"))
    for each in root.iter("{http://www.w3.org/2000/svg}text"):
        words = "".join(each.itertext())
        long = len(words) * (7.9 if file.name == "recording.svg" or "code" in each.get("class", "") else 7.2)
        begin = float(each.get("x", "0")) - {"middle": long / 2, "end": long}.get(each.get("text-anchor", ""), 0)
        assert begin >= 0, words
        assert begin + long <= width + 8, words
