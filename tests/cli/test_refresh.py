"""`unlost refresh`: output, files and invalid arguments."""

import json
from pathlib import Path

import pytest

from tests.cli.run import unlost
from unlost.refresh import Visit, read_policy, serialize_visit

STUDY = "165594/84440 246/16909 430623/1558517 74/469465 274/2386937 1432/63910 0/0 0/0 900/2713"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the log of a simulated web."""
    path = tmp_path_factory.mktemp("refresh") / "log.ndjson"
    done = unlost("refresh", "simulate", "--mixture", "liars", "--hosts", "400", "--visits", "10", "--write", str(path))
    assert (done.returncode, done.stderr) == (0, b"")
    return path


def test_matrix_of_the_study_gives_its_results() -> None:
    """With the schemes that dominate the obvious ones, as JSON."""
    done = unlost("refresh", "learn", "--matrix", STUDY, "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert [one["name"] for one in found["schemes"]][-2:] == ["Scheme 1 variant", "Scheme 4 variant"]
    assert found["chosen"]["missed"] == 348
    assert [one["dominated_by"] for one in found["obvious"]][1] == ["Scheme 1 variant"]


def test_learn_writes_a_scheme_and_a_plot(log: Path, tmp_path: Path) -> None:
    """And prints tables."""
    scheme, drawing = tmp_path / "scheme", tmp_path / "plot.svg"
    done = unlost("refresh", "learn", str(log), "--reliability", "0.98", "-o", str(scheme), "--plot", str(drawing))
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    assert "With all indicators and by host: reliability" in text
    assert "Hosts that say `same` when pages change, out of habit" in text
    assert read_policy(scheme).estimate is not None
    assert drawing.read_text().startswith("<svg")
    assert ">learned</text>" in drawing.read_text()


def test_learn_as_json_has_intervals_and_schedule(log: Path) -> None:
    """By host, with unreliable hosts."""
    done = unlost("refresh", "learn", str(log), "--reliability", "0.98", "--schedule", "--json")
    found = json.loads(done.stdout)
    for one in found["obvious"]:
        assert one["by_host"][0] <= one["wilson"][0] < one["reliability"] < one["wilson"][1] <= one["by_host"][1]
        assert one["usefulness_wilson"][0] < one["usefulness"] < one["usefulness_wilson"][1]
    assert found["liars"]
    assert found["learned"]["interval"][0] >= 0.98
    assert {one["server"] for one in found["tags_by_server"]} >= {"honest", "date-frozen"}
    assert len(found["schedule"]) == found["tally"]["hosts"]
    assert found["visits"] == found["tally"]["successful"]


def test_few_visits_give_no_scheme(tmp_path: Path) -> None:
    """The exit code is 1."""
    log = tmp_path / "log"
    log.write_bytes(b"".join(serialize_visit(Visit("http://a.example/", "x", time=time)) for time in range(10)))
    done = unlost("refresh", "learn", str(log))
    assert done.returncode == 1
    assert b"download everything" in done.stdout


def test_log_without_visits_is_rejected(tmp_path: Path) -> None:
    """The message says what was expected."""
    log = tmp_path / "empty.ndjson"
    log.touch()
    done = unlost("refresh", "learn", str(log))
    assert (done.returncode, done.stdout) == (3, b"")
    assert f"{log}: no visit in it: expected harvest logs (NDJSON or Parquet) or WARCs" in done.stderr.decode()


def test_bad_lines_are_reported(log: Path, tmp_path: Path) -> None:
    """The rest is used, and the exit code is 5."""
    bad = tmp_path / "bad"
    bad.write_bytes(log.read_bytes() + b"{\n")
    done = unlost("refresh", "learn", str(bad), "--reliability", "0.98")
    assert done.returncode == 5
    assert b"once a piece of JSON that is none, first:" in done.stderr


@pytest.mark.parametrize("arguments", [
    ["learn"], ["learn", __file__, "--matrix", STUDY], ["learn", "--matrix", "1/2"],
    ["learn", "--matrix", STUDY, "-o", "x"], ["simulate", "--mixture", "nothing"], ["simulate", "--write", "x"],
])  # fmt: skip
def test_invalid_arguments_are_rejected(arguments: list[str]) -> None:
    """With exit code 2 and a message."""
    done = unlost("refresh", *arguments)
    assert done.returncode == 2
    assert done.stderr


def test_missing_file_is_reported() -> None:
    """First."""
    done = unlost("refresh", "learn", "/nonexistent/log")
    assert done.returncode == 3
    assert b"/nonexistent/log" in done.stderr


def test_simulate_prints_scores() -> None:
    """As text and as JSON."""
    small = ["refresh", "simulate", "--mixture", "honest", "--hosts", "30", "--visits", "4"]
    done = unlost(*small, "--json")
    scores = {score["way"]: score for score in map(json.loads, done.stdout.splitlines())}
    assert scores["always"]["usefulness"] == 0
    assert scores["oracle"]["missed"] == scores["oracle"]["unnecessary"] == 0
    assert b"oracle" in unlost(*small).stdout
    assert b"inode-tags" in unlost("refresh", "simulate", "--list").stdout
