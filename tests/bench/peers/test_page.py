"""docs/peers.md has the measured figures, and a reason wherever a peer is ahead."""

import json
from pathlib import Path

from bench.measure import RESULTS
from bench.peers.page import format_page, format_report, reasons_missing

DOCS = Path(__file__).parents[3] / "docs" / "peers.md"
RESULTS_KEPT = json.loads((RESULTS / "peers.json").read_text())


def test_page_is_up_to_date() -> None:
    """It has the stored results; to update it, run `python -m bench.peers.page > docs/peers.md`."""
    assert DOCS.read_text() == format_page(RESULTS_KEPT)
    assert (RESULTS / "peers.md").read_text() == format_report(RESULTS_KEPT)


def test_every_row_with_a_leading_peer_has_a_reason() -> None:
    """In each row unlost leads, or the page has a reason."""
    assert reasons_missing(RESULTS_KEPT) == []


def test_row_without_a_reason_is_reported() -> None:
    """A row in which a peer leads without a stated reason is reported."""
    row = {"work": "new work", "peer": "surt", "unit": "seconds", "ours": 2, "theirs": 1}
    assert reasons_missing({"indexes": [row], "asking": [], "recovering": []}) == ["new work, seconds, surt"]
