"""docs/peers.md says what was measured, and why, wherever a peer is ahead."""

import json
from pathlib import Path

from bench.measure import RESULTS
from bench.peers.page import format_page, format_report, reasons_missing

DOCS = Path(__file__).parents[3] / "docs" / "peers.md"
RESULTS_KEPT = json.loads((RESULTS / "peers.json").read_text())


def test_the_page_is_fresh() -> None:
    """It has the kept results: run `python -m bench.peers.page > docs/peers.md`."""
    assert DOCS.read_text() == format_page(RESULTS_KEPT)
    assert (RESULTS / "peers.md").read_text() == format_report(RESULTS_KEPT)


def test_every_row_that_a_peer_leads_has_a_reason() -> None:
    """We lead, or the page says why not."""
    assert reasons_missing(RESULTS_KEPT) == []


def test_a_row_without_a_reason_is_noticed() -> None:
    """A row that somebody else leads for no reason known is named."""
    row = {"work": "new work", "peer": "surt", "unit": "seconds", "ours": 2, "theirs": 1}
    assert reasons_missing({"indexes": [row], "asking": [], "recovering": []}) == ["new work, seconds, surt"]
