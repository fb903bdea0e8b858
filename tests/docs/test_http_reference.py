"""The reference of the HTTP API says what the service answers."""

import re
from pathlib import Path

from scripts import http_reference

from unlost.aggregate import ENDPOINT_PATTERNS
from unlost.web.routes import _PLAIN_PATHS

PAGE = Path(__file__).parents[2] / "docs" / "http.md"


def test_it_is_fresh() -> None:
    """docs/http.md is what `make docs` would write."""
    assert PAGE.read_text() == http_reference.reference(), "stale: run `make docs`"


def test_every_endpoint_is_there() -> None:
    """Whatever the service has a route for is described, or listed as being for people."""
    listed = set(re.findall(r"`(?:GET|POST|DELETE) (/[^`]*)`", PAGE.read_text()))
    assert set(_PLAIN_PATHS) <= listed
    for endpoint in ENDPOINT_PATTERNS:
        assert any(path.startswith(f"/{endpoint}/") for path in listed), endpoint


def test_links_within_the_page_lead_somewhere() -> None:
    """Each endpoint of the list at the top leads to its section, and each shape to its own."""
    text = PAGE.read_text()
    headings = {http_reference.anchor(heading) for heading in re.findall(r"^## (.+)$", text, re.MULTILINE)}
    links = set(re.findall(r"\]\(#([^)]+)\)", text))
    assert links
    assert links <= headings
