"""What is claimed was measured: the page has the figures of bench/results, and says which goals are not held."""

import re
from pathlib import Path

import pytest
from scripts import claims

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_last_figures() -> None:
    """docs/claims.md is what `make docs` would write from the reports."""
    assert (ROOT / "docs" / "claims.md").read_text() == claims.page(), "stale: run `make docs`"


def test_the_readme_has_the_last_figures() -> None:
    """The claims of README.md are what `make docs` would write, and there are some."""
    readme = (ROOT / "README.md").read_text()
    assert readme == claims.in_readme(readme), "stale: run `make docs`"
    assert 3 <= readme.count("([measured](bench/results/") <= 6


def test_every_gate_of_every_report_is_read() -> None:
    """No line of a report that judges something is passed over, and each is shown on the page."""
    judged = sum(file.read_text().count("(must be ") for file in claims.RESULTS.glob("*.md"))
    found = claims.gates()
    assert judged == len(found)
    page = (ROOT / "docs" / "claims.md").read_text()
    for gate in found.values():
        assert f"| {gate.what} | {gate.value} |" in page


@pytest.mark.parametrize("claim", claims.claims(), ids=lambda claim: f"{claim.report}: {claim.what}")
def test_every_claim_is_about_a_gate(claim: claims.Claim) -> None:
    """A claim names a gate or figures of a report, and its other numbers stand in the same report."""
    if claim.figures:
        assert "**" in claims.quoted(claim)
    else:
        assert (claim.report, claim.what) in claims.gates(), "no such gate: see bench/results"
    report = (claims.RESULTS / f"{claim.report}.md").read_text()
    words = re.sub(r"`[^`]*`|\]\([^)]*\)", "", claim.sentence)
    for number in re.findall(r"\d[\d,]*", words.replace("soft 404s", "").replace("SHA-1", "").replace("Scheme 1", "")):
        assert re.search(rf"(?<![\d,.]){number}(?![\d,])", report), f"{number} is not in {claim.report}.md"


def test_the_readme_quotes_no_figure_of_pages_that_rules_were_tuned_on() -> None:
    """Page quality in README.md is the dated blind measurement."""
    short = [claim for claim in claims.claims() if claim.short]
    assert not [claim for claim in short if claim.report == "verdicts" or "tuned on, {}" in claim.sentence]
    [quality] = [claim for claim in short if claim.figures]
    assert quality.report == "page_quality-2026-11-18"
    assert all(figure in claims.quoted(quality) for figure in ("**1.1 %**", "**40.1 %**", "2026-11-18"))
    assert "98.3" not in (ROOT / "README.md").read_text()


def test_every_command_can_be_run() -> None:
    """What is said to measure a claim is a module of bench."""
    for gate in claims.gates().values():
        name = re.fullmatch(r"(?:[A-Z_]+=\w+ )?make bench-(\w+)", gate.command)
        assert name is not None
        module = ROOT / "bench" / name[1]
        assert module.with_suffix(".py").exists() or (module / "__main__.py").exists()


def test_a_missed_goal_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report in which a gate was missed changes the page, and the gate is named at its top."""
    for file in claims.RESULTS.glob("*.md"):
        (tmp_path / file.name).write_text(file.read_text())
    before = claims.page()
    report = tmp_path / "uri.md"
    report.write_text(re.sub(r"`surt`: [\d.]+\*\* (.*): held", r"`surt`: 3.21** \1: MISSED", report.read_text()))
    monkeypatch.setattr(claims, "RESULTS", tmp_path)
    after = claims.page()
    assert after != before
    assert "times faster than `surt` | 3.21 |" in after.partition("## You lost a website")[0]
    assert "**3.21** times as fast" in after
