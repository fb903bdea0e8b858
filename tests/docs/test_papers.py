"""Tests that docs/papers.md quotes the figures of the reports that it links to."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "papers.md"


def _measured_cells() -> Iterator[str]:
    """Yield the last cells of the tables that have a column `measured here`."""
    in_table = False
    for line in PAGE.read_text().splitlines():
        cells = re.split(r"(?<!\\)\|", line.strip("|"))
        if cells[-1].strip() == "measured here":
            in_table = True
        elif not line.startswith("|"):
            in_table = False
        elif in_table and "**" in cells[-1]:
            yield cells[-1].strip()


CELLS = list(_measured_cells())


def test_page_has_measured_figures() -> None:
    """All four works have some."""
    assert len(CELLS) >= 20


@pytest.mark.parametrize("cell", CELLS)
def test_measured_figures_are_in_the_linked_report(cell: str) -> None:
    """Each bold figure occurs in a page that the cell links to."""
    targets = re.findall(r"\]\(([^)#]+)", cell)
    assert targets, "no source"
    sources = "\n".join((PAGE.parent / target).read_text() for target in targets)
    for bold in re.findall(r"\*\*([^*]+)\*\*", cell):
        for figure in re.findall(r"\d[\d,.]*\d|\d", bold):
            assert re.search(rf"(?<![\d.,]){re.escape(figure)}(?![\d]|[.,]\d)", sources), figure
