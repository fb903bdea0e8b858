"""Tests of the reference of the HTTP API."""

import re
from pathlib import Path

from scripts import http_reference

from unlost.aggregate import ENDPOINT_PATTERNS
from unlost.web.routes import _PLAIN_PATHS

PAGE = Path(__file__).parents[2] / "docs" / "http.md"


def test_http_reference_is_up_to_date() -> None:
    """docs/http.md is what `make docs` writes."""
    assert PAGE.read_text() == http_reference.build_page(), "stale: run `make docs`"


def test_http_reference_has_all_endpoints() -> None:
    """Every route of the service is described or listed as web UI."""
    listed = set(re.findall(r"`(?:GET|POST|DELETE) (/[^`]*)`", PAGE.read_text()))
    assert set(_PLAIN_PATHS) <= listed
    for endpoint in ENDPOINT_PATTERNS:
        assert any(path.startswith(f"/{endpoint}/") for path in listed), endpoint


def test_internal_links_resolve() -> None:
    """Each link to a section or schema has a heading."""
    text = PAGE.read_text()
    headings = {http_reference.anchor(heading) for heading in re.findall(r"^## (.+)$", text, re.MULTILINE)}
    links = set(re.findall(r"\]\(#([^)]+)\)", text))
    assert links
    assert links <= headings
