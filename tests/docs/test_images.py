"""Tests of the images of the documentation: up to date and self-contained."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from scripts import terminal_recording
from scripts.diagrams import DIAGRAMS

IMAGES = Path(__file__).parents[2] / "docs" / "images"
DRAWN = [IMAGES / f"{name}.svg" for name in [*DIAGRAMS, "recording"]]


@pytest.mark.parametrize("name", DIAGRAMS)
def test_diagram_is_up_to_date(name: str) -> None:
    """Each diagram is what `make docs` draws."""
    assert (IMAGES / f"{name}.svg").read_text() == DIAGRAMS[name]().svg(), "stale: run `make docs`"


def test_recording_is_current_command_output() -> None:
    """The commands of the recording are run, and print what it shows."""
    session = terminal_recording.record_session()
    assert "4 of 5 resources recovered" in session[1][1]
    assert (IMAGES / "recording.svg").read_text() == terminal_recording.render_svg(session), "stale: run `make docs`"


@pytest.mark.parametrize("file", DRAWN, ids=lambda file: file.name)
def test_image_is_self_contained(file: Path) -> None:
    """It is small and well-formed, has a title, and loads and runs nothing."""
    text = file.read_text()
    assert len(text) < 20_000
    assert "<script" not in text
    assert not re.search(r"(?:href|src)=|url\((?!#)", re.sub(r">[^<]*<", "><", text))
    root = ET.fromstring(text)  # noqa: S314  our own
    titles = [each.text for each in root.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == 1
    assert titles[0]


@pytest.mark.parametrize("file", DRAWN, ids=lambda file: file.name)
def test_text_fits_the_image(file: Path) -> None:
    """No line of text is wider than the image."""
    root = ET.fromstring(file.read_text())  # noqa: S314  our own
    width = float(root.get("width", "0"))
    for each in root.iter("{http://www.w3.org/2000/svg}text"):
        words = "".join(each.itertext())
        long = len(words) * (7.9 if file.name == "recording.svg" or "code" in each.get("class", "") else 7.2)
        begin = float(each.get("x", "0")) - {"middle": long / 2, "end": long}.get(each.get("text-anchor", ""), 0)
        assert begin >= 0, words
        assert begin + long <= width + 8, words
