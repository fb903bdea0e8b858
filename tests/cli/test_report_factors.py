"""`unlost report --factors`."""

import json
from pathlib import Path

from tests.cli.run import unlost
from tests.cli.test_report import MADE
from tests.report.recovery.states import make_state


def test_factors_have_counts_of_the_report(tmp_path: Path) -> None:
    """Unknown factors are absent, with the option that provides them."""
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


def test_ranks_are_read_by_domain(tmp_path: Path) -> None:
    """In either column order; invalid lines are counted."""
    folder = make_state(tmp_path / "lost.example.recovery", MADE)
    (tmp_path / "ranks.csv").write_text("rank,host\n100,lost.example\nno number here\n")
    done = unlost("report", "--factors", str(folder), "--json", "--ranks", str(tmp_path / "ranks.csv"))
    found = json.loads(done.stdout)
    known = {each["name"]: each["known"] for each in found["factors"]}
    assert known["rank"] > 0
    assert (done.returncode, b"no-number" in done.stderr) == (5, True)


def test_invalid_combinations_are_rejected(tmp_path: Path) -> None:
    """Several recoveries need `--factors`, and `--ranks` needs it too."""
    folder = str(make_state(tmp_path / "lost.example.recovery", MADE))
    assert unlost("report", folder, folder).returncode == 2
    assert unlost("report", folder, "--ranks", __file__).returncode == 2
    assert unlost("report", "--factors", folder, folder).returncode == 3
    assert unlost("report", "--factors", folder, "--tsv").returncode == 2
