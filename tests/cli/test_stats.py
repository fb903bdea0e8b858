"""`unlost stats` as its users run it."""

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


def test_an_index_is_described(tmp_path: Path) -> None:
    """Text on the terminal, and a folder with a page, CSV and JSON."""
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


def test_the_short_form_and_the_long_one_say_the_same() -> None:
    """`stats FILE` is `stats index FILE`, and `--study` counts less."""
    short, long = unlost("stats", INDEX, "--json"), unlost("stats", "index", INDEX, "--json")
    assert short.stdout == long.stdout
    study = json.loads(unlost("stats", INDEX, "--study", "--json").stdout)
    assert (study["mementos"], study["left_out"]) == (7, 4)


def test_an_index_in_no_order_is_estimated(tmp_path: Path) -> None:
    """It is said so, and a pipe has to be told."""
    file = tmp_path / "a.cdxj"
    file.write_bytes(b"".join(reversed(Path(INDEX).read_bytes().splitlines(keepends=True))))
    done = unlost("stats", str(file), "--json")
    assert done.returncode == 0
    assert b"estimated" in done.stderr
    assert json.loads(done.stdout)["uri_rs"] == 9
    piped = unlost("stats", "/dev/stdin", stdin=file.read_bytes())
    assert piped.returncode == 3
    assert b"--estimate" in piped.stderr
    told = unlost("stats", "/dev/stdin", "--estimate", "--json", stdin=file.read_bytes())
    assert json.loads(told.stdout)["uri_rs"] == 9


def test_what_is_wrong_is_said() -> None:
    """Lines that cannot be read end in 5, files that are not there in 3, options that are not in 2."""
    done = unlost("stats", "/dev/stdin", "--json", stdin=Path(INDEX).read_bytes() + b"rubbish\n")
    assert done.returncode == 5
    assert json.loads(done.stdout)["problems"] == {"bad-row": 1}
    assert unlost("stats", "/nonexistent").returncode == 3
    assert unlost("stats", INDEX, "--exclude", "everything").returncode == 2


def test_hostile_rows_make_sound_files(tmp_path: Path) -> None:
    """Numbers that are none, endless ones, tags and control characters: strict JSON, and text in the page."""
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
def test_an_interrupted_run_leaves_nothing(tmp_path: Path, command: tuple[str, ...], text: bytes) -> None:
    """Ctrl-C ends the work with code 130; there is no report and no temporary file."""
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


def test_a_report_that_cannot_be_written_leaves_the_one_before(tmp_path: Path) -> None:
    """None of its files gets its name before all of them are written."""
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


def test_logs_are_counted(tmp_path: Path) -> None:
    """Archives, missing pages, and with an index what is archived against what is asked for."""
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
