"""`unlost evaluate` as a process: invalid options, exit codes and reports."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.run import UNLOST, unlost

INDEX = "docs/examples/pages.cdxj"
QUERIES = "docs/examples/asked.txt"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give what is held"),
        (["--index", INDEX, "--archive", f"a={INDEX}"], "give what is held"),
        (["--index", INDEX], "nothing to ask"),
        (["--archive", "nonsense", "--queries", QUERIES], "expected NAME=FILE"),
        (["--index", INDEX, "--queries", QUERIES, "--policies", "H1P7x"], "H1P7x"),
        (["--index", INDEX, "--queries", QUERIES, "--weights", "1"], "expected a pair of weights"),
        (["--index", INDEX, "--queries", QUERIES, "--bits", "99"], "expected bits a key"),
        (["--index", INDEX, "--queries", QUERIES, "--min-probability", "1.5"], "expected a probability"),
        (["--index", INDEX, "--queries", QUERIES, "--min-probability", "nan"], "expected a probability"),
        (["--index", INDEX, "--slices", "2", "--by", "year"], "give one of them"),
        (["--archive", f"a={INDEX}", "--archive", f"b={INDEX}", "--by", "year"], "growth is that of one archive"),
        (["--index", INDEX, "--queries", QUERIES, "-o", INDEX], "a report is a folder"),
    ],
)
def test_invalid_options_are_rejected(options: list[str], message: str) -> None:
    """With exit code 2 and what to give instead."""
    done = unlost("evaluate", *options)
    assert done.returncode == 2
    assert message in done.stderr.decode()


def test_report_has_all_configurations(tmp_path: Path) -> None:
    """Policies, weights, filters, budgets and growth: one JSON object each, and a folder with a page."""
    folder = tmp_path / "report"
    done = unlost(
        "evaluate", "--index", INDEX, "--queries", QUERIES, "--policies", "all", "--weights", "all", "--bits", "1,8",
        "--budgets", "3", "--slices", "2", "-o", str(folder), "--json",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    results = [row for row in rows if "configuration" in row]
    assert len(results) == 1 + 23 + 36 + 2 + 1
    assert all(row["recall"] == 1.0 for row in results)
    assert sum("growth" in row for row in rows) == 2 * 2 * (1 + 23 + 36)
    assert sorted(path.name for path in folder.iterdir()) == ["growth.csv", "report.html", "report.json", "results.csv"]


def test_several_archives_have_separate_tables(tmp_path: Path) -> None:
    """And one for the requests to all of them."""
    other = tmp_path / "other.txt"
    other.write_text("http://nowhere.example/\n")
    done = unlost("evaluate", "--archive", f"a={INDEX}", "--archive", f"b={other}", "--queries", QUERIES)
    assert done.returncode == 0
    text = done.stdout.decode()
    assert text.startswith("a\nconfiguration")
    assert "\nb\nconfiguration" in text
    assert "Requests to all archives" in text


def test_interruption_leaves_no_files(tmp_path: Path) -> None:
    """Ctrl-C ends it with 130, without report or temporary files."""
    pipe, report, temporary = tmp_path / "pipe", tmp_path / "report", tmp_path / "tmp"
    os.mkfifo(pipe)
    temporary.mkdir()
    process = subprocess.Popen(
        [UNLOST, "evaluate", "--index", str(pipe), "--queries", QUERIES, "-o", str(report)],
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    with pipe.open("wb", buffering=0) as writer:
        # More than a pipe holds: when all of it is written, the work is under way.
        writer.write(Path(INDEX).read_bytes() * 2000)
        process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, report.exists(), list(temporary.iterdir())) == (130, False, []), errors


@pytest.mark.parametrize(
    "arguments",
    [
        ("evaluate", "--queries", QUERIES, "--policies", "DDom", "--index"),
        ("evaluate", "--by", "year", "--index"),
        ("evaluate", "--index", INDEX, "--policies", "DDom", "--queries"),
        ("synth", "queries", "--count", "1", "-o", "-", "--index"),
        ("stats", "logs"),
        ("refresh", "learn"),
    ],
    ids=lambda arguments: " ".join(arguments[:3]),
)
def test_pipe_that_is_read_twice_is_rejected(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Before it is opened."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    done = unlost(*arguments, str(pipe))
    assert (done.returncode, b"not a regular file" in done.stderr) == (3, True), done.stderr
