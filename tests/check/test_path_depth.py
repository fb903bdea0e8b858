"""Path depth is the same in a comparison, in a check and in the factors of a report."""

from pathlib import Path

import pytest

from tests.check.availability.resources import NOW, availability
from tests.comparison.memory_sites import resource
from tests.comparison.test_breakdown import tables
from tests.research.factors.planted import write_state
from unlost.check import compute_check_stats
from unlost.research import FACTOR_COLUMNS, ColumnFile, ExternalFactorData, read_factor_rows
from unlost.uri import page_name


@pytest.mark.parametrize(
    ("path", "depth"),
    [("", 0), ("?q=/a/b/", 0), ("a/", 1), ("a", 1), ("a/index.html", 1), ("a/b.html", 2), ("a//b/c.png?x=/y", 3)],
)
def test_path_depth_is_the_same_in_all_commands(path: str, depth: int, tmp_path: Path) -> None:
    """Segments count; an index page is as deep as its folder; queries do not count."""
    name = page_name(f"http://site.example/{path}")
    assert list(tables([resource(name)], [])["depth"]) == [str(depth)]

    [table] = [each for each in compute_check_stats([availability(path)], NOW).tables if each.name == "depth"]
    assert [row.label for row in table.rows] == [str(depth)]

    write_state(tmp_path / "recovery", "site.example", [(1, f"http://{name}", 1, True, "20200101000000")], [], [[]])
    with ColumnFile(len(FACTOR_COLUMNS)) as rows:
        read_factor_rows([tmp_path / "recovery"], rows, ExternalFactorData())
        assert list(rows.blocks([FACTOR_COLUMNS.index("path depth")])) == [[[float(depth)]]]
