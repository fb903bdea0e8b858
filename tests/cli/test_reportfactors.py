"""`unlost report --factors`, as its users run it."""

import json
from pathlib import Path

from tests.cli.run import unlost
from tests.cli.test_report import MADE
from tests.report.recovery.states import make_state


def test_factors_of_a_recovery_are_told_and_what_is_absent_is_said(tmp_path: Path) -> None:
    """Counts are those of the report; factors that nobody knows are absent, with where they are had from."""
    folder = make_state(tmp_path / "lost.example.recovery", MADE)
    *_, summary = unlost("report", str(folder), "--json").stdout.splitlines()
    resources = json.loads(summary)["resources"]
    done = unlost("report", "--factors", str(folder), "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert (found["recovered"], found["resources"]) == (
        resources["recovered"], resources["recovered"] + resources["missing"]
    )  # fmt: skip
    assert "--ranks" in found["left_out"]["rank"]
    assert "--original" in found["left_out"]["resource size"]
    groups = {each["name"]: sum(group["of"] for group in each["groups"]) for each in found["factors"]}
    assert groups["hops"] == groups["type"] == groups["path depth"] == found["resources"]
    assert groups["rank"] == 0


def test_ranks_are_read_in_either_order_and_by_domain(tmp_path: Path) -> None:
    """A host has the number of its domain; lines that are none are counted, and said."""
    folder = make_state(tmp_path / "lost.example.recovery", MADE)
    (tmp_path / "ranks.csv").write_text("rank,host\n100,lost.example\nno number here\n")
    done = unlost("report", "--factors", str(folder), "--json", "--ranks", str(tmp_path / "ranks.csv"))
    found = json.loads(done.stdout)
    known = {each["name"]: each["known"] for each in found["factors"]}
    assert known["rank"] > 0
    assert (done.returncode, b"no-number" in done.stderr) == (5, True)


def test_mixtures_are_refused(tmp_path: Path) -> None:
    """Several recoveries need --factors, one recovery is named once, and --ranks is for --factors."""
    folder = str(make_state(tmp_path / "lost.example.recovery", MADE))
    assert unlost("report", folder, folder).returncode == 2
    assert unlost("report", folder, "--ranks", __file__).returncode == 2
    assert unlost("report", "--factors", folder, folder).returncode == 3
    assert unlost("report", "--factors", folder, "--tsv").returncode == 2
