"""`unlost map compact --budget` and `unlost evaluate`."""

import csv
import json
import signal
from pathlib import Path

import pytest

from tests.cli.run import unlost
from tests.cli.test_progress import Terminal
from unlost.mementomap import Filter, MapOptions, build_map, compressed_size


@pytest.fixture
def held(tmp_path: Path) -> Path:
    """Write a list of archived URLs."""
    path = tmp_path / "held.txt"
    path.write_text("".join(f"http://{h}.com/{f}/{n}\n" for h in "abc" for f in "xy" for n in range(20)))
    return path


@pytest.fixture
def source(held: Path) -> Path:
    """Build a map of them."""
    build_map([held], held.with_suffix(".ukvs"), MapOptions(kind="urls"))
    return held.with_suffix(".ukvs")


def rows(path: Path) -> list[str]:
    """Return a map's lines without headers and total."""
    return [line for line in path.read_text().splitlines() if line[0] not in "!*"]


def test_budgets_in_lines_and_bytes_are_respected(source: Path, tmp_path: Path) -> None:
    """The report, the header and the trace describe the compaction."""
    output, trace = tmp_path / "b.ukvs", tmp_path / "trace.csv"
    done = unlost("map", "compact", str(source), "-o", str(output), "--budget", "50", "--trace", str(trace))
    assert done.returncode == 0, done.stderr
    assert len(rows(output)) <= 50
    assert b"120 lines became" in done.stderr
    assert b"of 50 lines; of the pages asked for that are not held" in done.stderr
    assert '"budget": "50"' in output.read_text()
    assert trace.read_text().startswith("lines_in,lines_out\n")
    done = unlost("map", "compact", str(source), "-o", str(output), "--budget", "0.4KB", "--json")
    result = json.loads(done.stdout)
    assert result["budget"] == {"bytes": 400, "used": compressed_size(output), "protect_suffixes": True}
    assert compressed_size(output) <= 400
    assert result["lines_out"] == len(rows(output))


def test_map_within_the_budget_loses_nothing(source: Path, tmp_path: Path) -> None:
    """The expected loss is exactly 0, in spite of floating point."""
    done = unlost("map", "compact", str(source), "-o", str(tmp_path / "b.ukvs"), "--budget", "1MB", "--json")
    assert done.stdout.count(b'"expected_wrong": 0.0,') == 1, done.stdout


def test_unreadable_queries_are_counted(source: Path, tmp_path: Path) -> None:
    """The exit code is 5, and the map is written."""
    log, output = tmp_path / "log.txt", tmp_path / "b.ukvs"
    log.write_text("http://a.com/x/new\nhttp:// /\nhttp://a.com/x/1\n")
    done = unlost("map", "compact", str(source), "-o", str(output), "--budget", "50", "--queries", str(log), "--json")
    assert done.returncode == 5
    assert b"once an address whose host cannot exist, first: " in done.stderr
    result = json.loads(done.stdout)
    assert (result["asked"], result["missed"], result["questions_unreadable"]) == (2, 1, {"bad-host": 1})
    assert output.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--budget", "2"], 2, b"the smallest possible is 3 lines"),
        (["--budget", "10B"], 2, b"the smallest possible is "),
        (["--budget", "10k"], 2, b"expected lines, such as 100000, or bytes, such as 50MB"),
        (["--budget", "50", "--host-weight", "1"], 2, b"leave out one of them"),
        (["--queries", __file__], 2, b"has a meaning only with --budget"),
        (["--no-protect-suffixes"], 2, b"has a meaning only with --budget"),
        (["--budget", "50", "--with-filter", "f"], 2, b"give the budget in bytes"),
        (["--budget", "1KB", "--with-filter", "-"], 2, b"give the filter a name"),
        (["--budget", "1KB", "--with-filter", "{output}"], 2, b"give each a name of its own"),
        (["--budget", "50", "--rollup", "*"], 2, b"nothing to choose"),
        (["--budget", "50", "--queries", "missing.txt"], 3, b"unlost: missing.txt: cannot be read"),
    ],
)
def test_invalid_input_is_rejected(
    source: Path, tmp_path: Path, arguments: list[str], code: int, message: bytes
) -> None:
    """The message says what to do, and no file is left."""
    output = tmp_path / "b.ukvs"
    given = [argument.format(output=output) for argument in arguments]
    done = unlost("map", "compact", str(source), "-o", str(output), *given)
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr
    assert not output.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["held.txt", "held.ukvs"]


def test_filter_without_benefit_is_not_written(source: Path, tmp_path: Path) -> None:
    """This is reported; a file of that name belongs to another map."""
    output, filter_file = tmp_path / "b.ukvs", tmp_path / "b.filter"
    arguments = ("map", "compact", str(source), "-o", str(output), "--budget", "1MB", "--with-filter", str(filter_file))
    done = unlost(*arguments)
    assert done.returncode == 0
    assert b"no filter is worth its bytes, so none was written\n" in done.stderr
    filter_file.touch()
    assert b"b.filter, is of another map" in unlost(*arguments).stderr


def test_interruption_leaves_no_files(tmp_path: Path) -> None:
    """Ctrl-C stops the compaction within moments."""
    source, output = tmp_path / "a.ukvs", tmp_path / "b.ukvs"
    with source.open("w") as file:
        file.writelines(f"com,host{n:06}){'/'}{p}/{n} 1\n" for n in range(100_000) for p in "abcdefgh")
    terminal = Terminal("map", "compact", str(source), "-o", str(output), "--budget", "1MB")
    terminal.read_until(b"000 lines, ")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.read_all() == 130
    assert [path.name for path in tmp_path.iterdir()] == ["a.ukvs"]


def test_filter_has_the_date_of_the_map(tmp_path: Path) -> None:
    """From `--date`, or the date of the map if that is earlier; now if neither is given."""
    source, output, filter_file = (tmp_path / name for name in ("a.ukvs", "b.ukvs", "b.filter"))
    source.write_text("".join(f"com,a)/{n // 100:02}/{n:04} 1\n" for n in range(3000)))
    arguments = ("map", "compact", str(source), "-o", str(output), "--budget", "5KB", "--with-filter", str(filter_file))
    for options, made in (((), "20240101000000"), (("--date", "2026-11-16"), "20261116000000")):
        done = unlost(*arguments, *options, env={"SOURCE_DATE_EPOCH": "1704067200"})
        assert done.returncode == 0, done.stderr
        assert Filter.open(filter_file).built_at == made
    assert unlost(*arguments, "--date", "yesterday").returncode == 2
    assert unlost("map", "compact", str(source), "-o", str(output), "--date", "2026").returncode == 2


def test_evaluation_in_all_formats(held: Path, tmp_path: Path) -> None:
    """Table, JSON and CSV have the same values."""
    queries = tmp_path / "asked.txt"
    queries.write_text("http://a.com/x/1\nhttp://a.com/x/new\nhttp://d.com/\n")
    given = ["evaluate", "--index", str(held), "--queries", str(queries), "--weights", "4,0;x,x", "--budgets", "60,1KB"]
    done = unlost(*given)
    assert done.returncode == 0, done.stderr
    names = ["all keys", "weights 4,0", "weights inf,inf", "budget 60 lines", "budget 1000 bytes"]
    table = done.stdout.decode().splitlines()
    assert [line.split("  ")[0] for line in table] == ["configuration", *names]
    objects = [json.loads(line) for line in unlost(*given, "--json").stdout.splitlines()]
    assert [one["configuration"] for one in objects] == names
    assert [one["recall"] for one in objects] == [1.0] * 5
    assert (objects[1]["predicted"], objects[1]["present"], objects[1]["accuracy_count"]) == (2, 1, 2)
    text = unlost(*given, "--csv").stdout.decode().splitlines()
    assert [row["configuration"] for row in csv.DictReader(text)] == names


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--weights", "4"], b"expected a pair of weights such as 4,1"),
        (["--bits", "17"], b"expected bits a key from 1 to 16"),
        (["--budgets", "many"], b"no budget"),
        (["--budgets", "1"], b"the smallest possible is 3 lines"),
    ],
)
def test_invalid_evaluation_options_are_rejected(held: Path, arguments: list[str], message: bytes) -> None:
    """With an example."""
    done = unlost("evaluate", "--index", str(held), "--queries", str(held), *arguments)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
