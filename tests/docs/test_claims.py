"""Tests of claims: figures are those of bench/results, and missed goals are marked."""

import re
from pathlib import Path

import pytest
from scripts import claims

ROOT = Path(__file__).parents[2]


def test_claims_page_is_up_to_date() -> None:
    """docs/claims.md is what `make docs` writes from the reports."""
    assert (ROOT / "docs" / "claims.md").read_text() == claims.build_page(), "stale: run `make docs`"


def test_readme_claims_are_up_to_date() -> None:
    """The claims of README.md are what `make docs` writes, and there are some."""
    readme = (ROOT / "README.md").read_text()
    assert readme == claims.update_readme(readme), "stale: run `make docs`"
    assert 3 <= readme.count("([measured](bench/results/") <= 6


def test_all_gates_of_all_reports_are_on_the_page() -> None:
    """Every gate of a report is parsed and shown on the page."""
    judged = sum(file.read_text().count("(must be ") for file in claims.RESULTS.glob("*.md"))
    found = claims.read_gates()
    assert judged == len(found)
    page = (ROOT / "docs" / "claims.md").read_text()
    for gate in found.values():
        assert f"| {gate.what} | {gate.value} |" in page


@pytest.mark.parametrize("claim", claims.read_claims(), ids=lambda claim: f"{claim.report}: {claim.what}")
def test_claim_refers_to_a_measured_gate(claim: claims.Claim) -> None:
    """A claim names a gate or figures of a report, and its other numbers are in the same report."""
    if claim.figures:
        assert "**" in claims.format_figures(claim)
    else:
        assert (claim.report, claim.what) in claims.read_gates(), "no such gate: see bench/results"
    report = (claims.RESULTS / f"{claim.report}.md").read_text()
    words = re.sub(r"`[^`]*`|\]\([^)]*\)", "", claim.sentence)
    for number in re.findall(r"\d[\d,]*", words.replace("soft 404s", "").replace("SHA-1", "").replace("Scheme 1", "")):
        assert re.search(rf"(?<![\d,.]){number}(?![\d,])", report), f"{number} is not in {claim.report}.md"


def test_readme_quotes_page_quality_of_unseen_pages() -> None:
    """Page quality in README.md is the dated blind measurement."""
    short = [claim for claim in claims.read_claims() if claim.short]
    assert not [claim for claim in short if claim.report == "verdicts" or "tuned on, {}" in claim.sentence]
    [quality] = [claim for claim in short if claim.figures]
    assert quality.report == "page_quality-2026-11-18"
    assert all(figure in claims.format_figures(quality) for figure in ("**1.1 %**", "**40.1 %**", "2026-11-18"))
    assert "98.3" not in (ROOT / "README.md").read_text()


def test_commands_of_claims_exist() -> None:
    """The command of each gate is a module of bench."""
    for gate in claims.read_gates().values():
        name = re.fullmatch(r"(?:[A-Z_]+=\w+ )?make bench-(\w+)", gate.command)
        assert name is not None
        module = ROOT / "bench" / name[1]
        assert module.with_suffix(".py").exists() or (module / "__main__.py").exists()


def test_missed_goal_is_marked_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missed gate is named at the top of the page."""
    for file in claims.RESULTS.glob("*.md"):
        (tmp_path / file.name).write_text(file.read_text())
    before = claims.build_page()
    report = tmp_path / "uri.md"
    report.write_text(re.sub(r"`surt`: [\d.]+\*\* (.*): held", r"`surt`: 3.21** \1: MISSED", report.read_text()))
    monkeypatch.setattr(claims, "RESULTS", tmp_path)
    after = claims.build_page()
    assert after != before
    assert "times faster than `surt` | 3.21 |" in after.partition("## You lost a website")[0]
    assert "**3.21** times as fast" in after
