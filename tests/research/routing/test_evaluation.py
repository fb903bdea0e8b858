"""Evaluation of maps and filters, compared with counts by hand."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from unlost.errors import InputError
from unlost.mementomap import MapBudget, lookup_keys_in_filter
from unlost.research import evaluate_index, list_configurations, routing_evaluation
from unlost.statistics import Proportion

ARCHIVED = [f"http://a.com/x/{n}" for n in range(30)] + ["http://b.com/", "http://c.org/page"]
QUERIES = [*ARCHIVED[:4], ARCHIVED[0], "http://a.com/x/no", "http://a.com/no", "http://b.com/no", "http://unknown.net/"]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Write an index, as a URL list, and queries."""
    index, queries = tmp_path / "held.txt", tmp_path / "asked.txt"
    index.write_text("".join(f"{url}\n" for url in ARCHIVED))
    queries.write_text("".join(f"{url}\n" for url in QUERIES) + "http:// /\n")
    return index, queries


def test_evaluation_has_known_values(files: tuple[Path, Path]) -> None:
    """Keys, lines, predicted, present; repeated queries count repeatedly; invalid ones are counted separately."""
    index, queries = files
    configurations = list_configurations([(4, 0), (float("inf"), float("inf"))], [], [MapBudget(3, "lines")])
    found = evaluate_index([index], [queries], configurations)
    by_name = {result.configuration.name: result for result in found.results}
    exact = by_name["all keys"]
    assert (exact.keys, exact.size.lines, exact.query_count, exact.held) == (32, 32, 9, 5)
    assert (exact.predicted, exact.present, exact.cost) == (5, 5, 1.0)
    assert (exact.precision.value, exact.accuracy.value, exact.recall.value) == (1.0, 1.0, 1.0)
    rolled = by_name["weights 4,0"]
    # `com,a)/*`, `com,b)/`, `org,c)/*`
    assert (rolled.size.lines, rolled.predicted, rolled.present) == (3, 7, 5)
    assert rolled.precision == Proportion(5, 7)
    assert rolled.accuracy == Proportion(7, 9)
    assert rolled.recall == Proportion(5, 5)
    assert by_name["weights inf,inf"].size.lines == 32
    budget = by_name["budget 3 lines"]
    assert (budget.size.lines, budget.predicted) == (3, 6)  # `com,a)/x/*`: not `/no`
    assert budget.size.compressed < exact.size.compressed < exact.size.bytes
    assert found.query_report.problems.total == 1
    assert found.false_negatives == []


def test_wilson_intervals_of_proportions() -> None:
    """As in tables; 0 to 1 without observations."""
    assert [round(bound, 4) for bound in Proportion(0, 10).interval()] == [0.0, 0.2775]
    assert [round(bound, 4) for bound in Proportion(10, 10).interval()] == [0.7225, 1.0]
    assert Proportion(0, 0).interval() == (0.0, 1.0)
    assert Proportion(0, 0).value is None


def test_filters_combined_with_maps(files: tuple[Path, Path]) -> None:
    """A page must be in both; the bytes of both count; budgets are divided."""
    configurations = list_configurations(bits=[16], budgets=[MapBudget(2000, "bytes")], with_filter=True)
    found = {one.configuration.name: one for one in evaluate_index([files[0]], [files[1]], configurations).results}
    assert (found["hosts + 16 bits"].predicted, found["hosts + 16 bits"].accuracy.value) == (5, 1.0)
    assert found["hosts + 16 bits"].size.lines == 3
    divided = found["budget 2000 bytes + filter"]
    assert divided.size.bits > 0
    assert divided.size.compressed <= 2000


def test_false_negative_of_a_filter_is_reported(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """With its key."""

    def forgetful(file: Path, keys: Sequence[str]) -> list[bool]:
        return [had and key != "com,a)/x/1" for key, had in zip(keys, lookup_keys_in_filter(file, keys), strict=True)]

    monkeypatch.setattr(routing_evaluation, "lookup_keys_in_filter", forgetful)
    assert evaluate_index([files[0]], [files[1]], list_configurations(bits=[8])).false_negatives == [
        ("hosts + 8 bits", "com,a)/x/1")
    ]


def test_map_without_wildcards_is_an_index(tmp_path: Path, files: tuple[Path, Path]) -> None:
    """With wildcards, its pages are unknown."""
    rows = tmp_path / "a.ukvs"
    rows.write_text('!fields {"keys": ["surt"], "values": ["frequency"]}\ncom,a)/x/1 3+\ncom,a)/x/2 / {"a": 1}\n')
    (result,) = evaluate_index([rows], [files[1]], list_configurations()).results
    assert (result.keys, result.size.lines, result.held, result.present) == (2, 2, 2, 2)
    rows.write_text('!fields {"keys": ["surt"], "values": ["frequency"]}\ncom,a)/* 3\n')
    with pytest.raises(InputError, match=r"a\.ukvs: has wildcards"):
        evaluate_index([rows], [files[1]], list_configurations(bits=[8]))


def test_empty_input_is_rejected(tmp_path: Path, files: tuple[Path, Path]) -> None:
    """An index without keys, or no valid query."""
    empty = tmp_path / "empty.txt"
    empty.touch()
    with pytest.raises(InputError, match="no question"):
        evaluate_index([files[0]], [empty], list_configurations())
    with pytest.raises(InputError, match="nothing in it"):
        evaluate_index([empty], [files[1]], list_configurations())
