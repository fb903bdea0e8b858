"""Tests of the study: its page, findings, gates and missing data."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from study import CHAPTERS, chapter, page

ROOT = Path(__file__).parents[2]


def test_study_page_is_up_to_date() -> None:
    """docs/study.md is what `make study` writes from the results of all chapters."""
    assert page.PAGE.read_text() == page.build_page()
    assert "Not run yet" not in page.PAGE.read_text()
    for name in CHAPTERS:
        stored = json.loads((chapter.RESULTS / f"{name}.json").read_text())
        assert stored["figures"]
        assert f"`{stored['command']}`" in page.PAGE.read_text()


def test_missed_gate_fails_and_refuted_finding_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are written with their figures."""
    monkeypatch.setattr(chapter, "RESULTS", tmp_path)
    good = chapter.Chapter("good", "Good")
    good.add_figure("a", [1, 2])
    good.add_finding("twice as much", "1.5 times", holds=False)
    good.gate("points", 15.0, at_least=15)
    good.finish()
    stored = json.loads((tmp_path / "good.json").read_text())
    assert stored["findings"] == [{"claim": "twice as much", "found": "1.5 times", "holds": False}]
    assert stored["figures"]["a"] == [1, 2]
    assert "| twice as much | 1.5 times | **no** |" in (tmp_path / "good.md").read_text()
    bad = chapter.Chapter("bad", "Bad")
    bad.gate("denied", 1, at_most=0)
    with pytest.raises(SystemExit, match="a gate was missed: denied"):
        bad.finish()
    assert (tmp_path / "bad.md").exists()


def test_missing_data_is_reported(tmp_path: Path) -> None:
    """The exit code is 3, the message names the files and their folder, and nothing is written."""
    done = subprocess.run(
        [sys.executable, "-m", "study.ageing"],
        cwd=ROOT,
        env=os.environ | {"UNLOST_DATA": str(tmp_path)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 3
    assert b"reddit2013-links.tsv.gz not found: expected the public lists" in done.stderr
    assert done.stdout == b""
