"""`unlost stats`."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.run import UNLOST, unlost

INDEX = "docs/examples/pages.cdxj"

# More than a pipe holds, and sorted: so nothing is wrong with it before it ends.
LONG_INDEX = b"".join(line * 2000 for line in Path(INDEX).read_bytes().splitlines(keepends=True))


def test_statistics_of_an_index(tmp_path: Path) -> None:
    """As text, and a folder with a page, CSV and JSON."""
    done = unlost("stats", INDEX, "-o", str(tmp_path / "report"))
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    assert "mementos (URI-Ms)" in text
    assert "Depths of the tree of keys" in text
    report = json.loads((tmp_path / "report" / "statistics.json").read_text())
    assert (report["mementos"], report["uri_rs"], report["keys"], report["hosts"]) == (10, 9, 7, 3)
    assert report["not_web_pages"] == 1
    assert (tmp_path / "report" / "index.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "report" / "years.csv").read_text().startswith("year,URI-R,new,")
    assert b"index.html" in done.stderr


def test_stats_is_short_for_stats_index() -> None:
    """`--study` counts fewer rows."""
    short, long = unlost("stats", INDEX, "--json"), unlost("stats", "index", INDEX, "--json")
    assert short.stdout == long.stdout
    study = json.loads(unlost("stats", INDEX, "--study", "--json").stdout)
    assert (study["mementos"], study["left_out"]) == (7, 4)


def test_unsorted_index_is_estimated(tmp_path: Path) -> None:
    """With a warning; a pipe needs `--estimate`."""
    file = tmp_path / "a.cdxj"
    file.write_bytes(b"".join(reversed(Path(INDEX).read_bytes().splitlines(keepends=True))))
    done = unlost("stats", str(file), "--json")
    assert done.returncode == 0
    assert b"estimated" in done.stderr
    assert json.loads(done.stdout)["uri_rs"] == 9
    piped = unlost("stats", "/dev/stdin", stdin=file.read_bytes())
    assert piped.returncode == 3
    assert b"--estimate" in piped.stderr
    estimated = unlost("stats", "/dev/stdin", "--estimate", "--json", stdin=file.read_bytes())
    assert json.loads(estimated.stdout)["uri_rs"] == 9


def test_exit_codes() -> None:
    """5 for bad lines, 3 for a missing file, 2 for invalid options."""
    done = unlost("stats", "/dev/stdin", "--json", stdin=Path(INDEX).read_bytes() + b"rubbish\n")
    assert done.returncode == 5
    assert json.loads(done.stdout)["problems"] == {"bad-row": 1}
    assert unlost("stats", "/nonexistent").returncode == 3
    assert unlost("stats", INDEX, "--exclude", "everything").returncode == 2


def test_hostile_rows_are_escaped(tmp_path: Path) -> None:
    """Invalid and endless numbers, tags and control characters: strict JSON, and text in the page."""
    file, report = tmp_path / "a.cdxj", tmp_path / "report"
    rows = [
        ("20140101000000", r'"mime": "<b>x\u001b[31m", "status": "200\n", "length": "9e99"'),
        ("99990101000000", '"mime": NaN, "status": 1e999, "length": -5'),
        ("20149901000000", f'"mime": {{"x": 1}}, "status": [], "length": {"9" * 5000}'),
        ("20140101000000", '"mime": "x", "status": "Infinity", "length": "7"'),
    ]
    lines = [f'com,a)/{n} {date} {{"url": "http://a.com/{n}", {rest}}}\n' for n, (date, rest) in enumerate(rows)]
    file.write_text("".join(lines))
    done = unlost("stats", str(file), "-o", str(report))
    assert done.returncode == 0, done.stderr
    assert b"\x1b" not in done.stdout

    def refuse(word: str) -> None:
        raise AssertionError(word)

    found = json.loads((report / "statistics.json").read_text(), parse_constant=refuse)
    assert (found["mementos"], found["record_bytes"], found["odd_dates"]) == (4, 7, 2)
    assert {"NaN", "1e999", "[]", "Infinity"} <= {row["value"] for row in found["tables"]["malformed"]}
    page = (report / "index.html").read_text()
    assert "&lt;b&gt;x" in page
    assert "<b>x" not in page
    assert "\x1b" not in page


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (("index", "--input", "index"), LONG_INDEX),
        (("index", "--estimate", "--input", "index"), LONG_INDEX),
        (("logs", "--input", "upstream"), Path("docs/examples/upstream.ndjson").read_bytes() * 5000),
    ],
    ids=["index", "estimate", "logs"],
)
def test_interruption_leaves_no_files(tmp_path: Path, command: tuple[str, ...], text: bytes) -> None:
    """Ctrl-C ends it with 130, without report or temporary files."""
    pipe, report, temporary = tmp_path / "pipe", tmp_path / "report", tmp_path / "tmp"
    os.mkfifo(pipe)
    temporary.mkdir()
    process = subprocess.Popen(
        [UNLOST, "stats", *command, str(pipe), "-o", str(report)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    with pipe.open("wb", buffering=0) as writer:
        # More than a pipe holds: when all of it is written, the work is under way.
        writer.write(text)
        process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, out, report.exists(), list(temporary.iterdir())) == (130, b"", False, []), errors


def test_failed_report_keeps_the_previous_one(tmp_path: Path) -> None:
    """No file is replaced before all are written."""
    report = tmp_path / "report"
    assert unlost("stats", INDEX, "-o", str(report)).returncode == 0
    before = {file.name: file.read_bytes() for file in report.iterdir()}
    (report / "index.html").unlink()
    (report / "index.html").mkdir()
    done = unlost("stats", INDEX, "--study", "-o", str(report))
    assert done.returncode == 3
    (report / "index.html").rmdir()
    after = {file.name: file.read_bytes() for file in report.iterdir()}
    assert after == {name: text for name, text in before.items() if name != "index.html"}


def test_statistics_of_logs(tmp_path: Path) -> None:
    """Archives, missing pages, and with an index, archived against requested pages."""
    log = "docs/examples/upstream.ndjson"
    done = unlost("stats", "logs", log, "--index", INDEX, "-o", str(tmp_path / "report"), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["requests"], found["hits"], found["misses"], found["errors"]) == (4, 1, 2, 1)
    assert found["matrix"][1][1] == 1
    assert found["matrix"][0][1] == 1
    assert {"archives.csv", "missing.csv", "matrix.csv", "index.html", "accesses.json"} == {
        file.name for file in (tmp_path / "report").iterdir()
    }
