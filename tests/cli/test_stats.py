"""`unlost stats` as its users run it."""

import json
from pathlib import Path

from tests.cli.run import unlost

INDEX = "tests/holdings/files/pages.cdxj"


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
    """Lines that cannot be read end in 3, files that are not there too, options that are not in 2."""
    done = unlost("stats", "/dev/stdin", "--json", stdin=Path(INDEX).read_bytes() + b"rubbish\n")
    assert done.returncode == 3
    assert json.loads(done.stdout)["problems"] == {"bad-row": 1}
    assert unlost("stats", "/nonexistent").returncode == 3
    assert unlost("stats", INDEX, "--exclude", "everything").returncode == 2


def test_logs_are_counted(tmp_path: Path) -> None:
    """Archives, missing pages, and with an index what is archived against what is asked for."""
    log = "tests/holdings/files/upstream.ndjson"
    done = unlost("stats", "logs", log, "--index", INDEX, "-o", str(tmp_path / "report"), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["requests"], found["hits"], found["misses"], found["errors"]) == (4, 1, 2, 1)
    assert found["matrix"][1][1] == 1
    assert found["matrix"][0][1] == 1
    assert {"archives.csv", "missing.csv", "matrix.csv", "index.html", "accesses.json"} == {
        file.name for file in (tmp_path / "report").iterdir()
    }
