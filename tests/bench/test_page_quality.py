"""Tests of the page quality benchmark: intervals, labels, and protection of blind reports."""

import base64
import gzip
import json
import sys
from pathlib import Path

import pytest
from bench import page_quality


def _write_pages(path: Path) -> None:
    pages = [
        ("good", "b/good a.html", "<title>The old mill</title><p>The wheel of the old mill was built in 1804.</p>"),
        ("soft-404", "c/bad 404.html", "<title>Error 404</title><h1>Page not found</h1>"),
    ]
    with gzip.open(path, "wt", encoding="utf-8") as file:
        for number, (label, origin, body) in enumerate(pages):
            row = {"id": f"{number}", "label": label, "genre": "test", "lang": "en-GB", "origin": origin}
            row |= {"uri": f"http://a.example/{number}.html", "body_base64": base64.b64encode(body.encode()).decode()}
            file.write(json.dumps(row) + "\n")


def test_wilson_interval_contains_the_proportion() -> None:
    """The interval agrees with published values, stays within 0 and 1, and is [0, 1] without pages."""
    assert [round(bound, 4) for bound in page_quality.wilson_interval(5, 10)] == [0.2366, 0.7634]
    assert [round(bound, 3) for bound in page_quality.wilson_interval(0, 100)] == [0.0, 0.037]
    assert page_quality.wilson_interval(100, 100)[1] == 1
    assert page_quality.wilson_interval(0, 0) == (0, 1)


def test_pages_are_classified_with_their_labels(tmp_path: Path) -> None:
    """A row yields repository, language without region, and the verdict of the classifier."""
    _write_pages(tmp_path / "pages.jsonl.gz")
    good, bad = page_quality.classify_pages(tmp_path / "pages.jsonl.gz")
    assert (good.repository, good.lang, good.verdict) == ("b/good", "en", None)
    assert bad.verdict is not None
    assert bad.verdict.kind == "soft-404"


def test_a_blind_report_is_never_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second blind run on the same day fails and leaves the report unchanged."""
    monkeypatch.setattr(page_quality, "PAGES", tmp_path / "pages.jsonl.gz")
    monkeypatch.setattr(page_quality, "RESULTS", tmp_path)
    _write_pages(page_quality.PAGES)
    monkeypatch.setattr(sys, "argv", ["page_quality", "--blind"])
    report = tmp_path / f"page_quality-{page_quality.today()}.md"
    report.write_text("measured before")
    with pytest.raises(SystemExit, match="never repeated"):
        page_quality.main()
    assert report.read_text() == "measured before"


def test_missing_pages_are_skipped_with_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the data folder, the benchmark prints that it is skipped and writes nothing."""
    monkeypatch.setattr(page_quality, "PAGES", tmp_path / "pages.jsonl.gz")
    monkeypatch.setattr(page_quality, "RESULTS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["page_quality"])
    page_quality.main()
    assert "skipped" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
