"""Report of an evaluation: page, JSON and CSV have the same values."""

import csv
import json
from pathlib import Path

from unlost.research import (
    evaluate_archives,
    list_configurations,
    pareto_optimal_results,
    render_evaluation_page,
    write_evaluation_report,
)


def test_page_json_and_csv_have_the_same_results(tmp_path: Path) -> None:
    """The Pareto front is marked; archive names are escaped."""
    index, queries = tmp_path / "held.txt", tmp_path / "asked.txt"
    index.write_text("".join(f"http://a.com/{n}\n" for n in range(30)))
    queries.write_text("http://a.com/1\nhttp://a.com/x\nhttp://b.com/\n")
    hostile = '<script>alert("x")</script>'
    found = evaluate_archives(
        {hostile: [index], "b": [index]}, [queries], list_configurations([(1, 1)], [8], policies=["DDom"])
    )
    write_evaluation_report(tmp_path / "report", found, None)
    page = (tmp_path / "report" / "report.html").read_text()
    assert "<script" not in page
    assert "src=" not in page
    assert page.count("<circle") == 2 * 4
    with (tmp_path / "report" / "results.csv").open() as file:
        table = list(csv.DictReader(file))
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    assert [row["archive"] for row in table] == [hostile] * 4 + ["b"] * 4
    for each, archive in zip(found, report["archives"], strict=True):
        assert archive["front"] == [one.configuration.name for one in pareto_optimal_results(each.results)]
        assert archive["results"] == [one.to_row() for one in each.results]
        assert all(one.configuration.name in page for one in each.results)
    assert [int(row["predicted"]) for row in table[:4]] == [one.predicted for one in found[0].results]
    assert report["upstream"][0]["broadcast"] == 6
    assert not (tmp_path / "report" / "growth.csv").exists()
    assert page == render_evaluation_page(found, None)
