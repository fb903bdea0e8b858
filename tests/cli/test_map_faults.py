"""`unlost map` with invalid input: messages, exit codes and no remaining files."""

import gzip
import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.maps import PAGES, build, rows
from tests.cli.run import UNLOST, unlost
from unlost.errors import InputError
from unlost.mementomap import build_map, diff_maps
from unlost.problems import Problems


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("com,b)/ 1\ncom,a)/ 1\n", {"unsorted"}),
        ("com,a)/ 1\ncom,a)/ 1\n", {"duplicate-key"}),
        ("com,a)/ x\n", {"bad-frequency"}),
        ("com,a)/A 1\ncom,a)/b/ 1\ncom,a)/c?d 1\ncom,a+b)/ 1\n", {"not-normal"}),
        ("com,*,a)/ 1\ncom,a)/b* 1\n", {"bad-wildcard"}),
        ("* 1\ncom,a)/ 2\n", {"bad-total"}),
        ("!meta {}\n", {"no-rows"}),
        ('!meta {"rules": "mine"}\ncom,a)/ 2\n', {"unknown-rules"}),
    ],
)
def test_check_reports_each_kind_of_problem(tmp_path: Path, text: str, kinds: set[str]) -> None:
    """With exit code 1."""
    file = tmp_path / "a.ukvs"
    file.write_text(text)
    done = unlost("map", "check", "--json", str(file))
    assert (set(json.loads(done.stdout)["problems"]), done.returncode) == (kinds, 1)


def test_invalid_input_is_rejected(tmp_path: Path) -> None:
    """Missing, unsorted, overflowing or unreadable: one line, and no file is left."""
    unsorted, overflow, damaged = tmp_path / "u.cdxj", tmp_path / "o.ukvs", tmp_path / "d.gz"
    unsorted.write_bytes(b"".join(reversed(PAGES.read_bytes().splitlines(keepends=True))))
    overflow.write_text("com,a)/b 999999999999999999\ncom,a)/c 1\n")
    damaged.write_bytes(gzip.compress(b"com,a)/b 9\ncom,a)/c 1\n" * 1000)[:-20])
    output = tmp_path / "out.ukvs"
    for arguments, message in [
        (["build", str(tmp_path / "none")], b"none: cannot be read: No such file"),
        (["build", str(unsorted), "--sorted"], b"u.cdxj: line 2 belongs before the one above it"),
        (["compact", str(overflow), "--path-weight", "0"], b"o.ukvs: a frequency of more than 18 digits"),
        (["compact", str(damaged)], b"d.gz"),
        (["merge", str(overflow), str(tmp_path / "none")], b"none: cannot be read"),
        (["build", str(PAGES), "--exclude", "pdf"], b"pdf: cannot be left out: expected robots or sitemaps"),
        (["compact", str(overflow), "--rollup", "com"], b"expected a wildcard to roll up"),
    ]:
        done = unlost("map", *arguments, "-o", str(output))
        assert message in done.stderr, (arguments, done.stderr)
        assert done.stderr.count(b"\n") == 1
        assert done.returncode in (2, 3)
        assert sorted(file.name for file in tmp_path.iterdir()) == ["d.gz", "o.ukvs", "u.cdxj"]
    done = unlost("map", "build", str(PAGES), "-o", str(tmp_path / "no" / "out.ukvs"))
    assert b"cannot be written: no such folder" in done.stderr


def test_bad_lines_are_counted_by_kind(tmp_path: Path) -> None:
    """With the first of each; exit code 5, and the map is written."""
    file, output = tmp_path / "a.cdxj", tmp_path / "a.ukvs"
    file.write_bytes(PAGES.read_bytes() + b"rubbish\n\0\n" + b')/ 2014 {"url": "x"}\n' + b"more rubbish\n")
    done = unlost("map", "build", str(file), "-o", str(output))
    assert b"2 times a line that is none of such a file, first: " in done.stderr
    assert b"once a line that is no text, first: " in done.stderr
    assert b"a.cdxj:12 (byte " in done.stderr
    assert (done.returncode, rows(output)[0]) == (5, "* 10")


def test_map_in_a_pipe_is_not_an_index(tmp_path: Path) -> None:
    """Its rows look like those of an index."""
    text = b'!fields {"keys": ["surt"], "values": ["frequency"]}\ncom,a)/ 5\n'
    done = unlost("map", "build", "/dev/stdin", "-o", str(tmp_path / "a.ukvs"), stdin=text)
    assert (done.returncode, b"a map, not an index" in done.stderr) == (3, True)


def test_truncated_last_line_is_not_a_page(tmp_path: Path) -> None:
    """With `--allow-partial` the lines before it are counted, and the damage is reported."""
    file, output = tmp_path / "a.gz", tmp_path / "a.ukvs"
    # Stored, not deflated, so that the text ends exactly where the file does.
    file.write_bytes(gzip.compress(PAGES.read_bytes(), compresslevel=0)[:-40])
    done = unlost("map", "build", str(file), "-o", str(output), "--allow-partial")
    assert (done.returncode, b"once a file that breaks off, first: " in done.stderr) == (5, True)
    assert rows(output)[-1] == "com,example,blog)/2011/post 1"


def test_full_disk_is_reported() -> None:
    """In one line with the file."""
    done = unlost("map", "build", str(PAGES), "-o", "/dev/full")
    assert (done.returncode, b"No space left" in done.stderr) == (3, True)


def test_interruption_leaves_no_files(tmp_path: Path) -> None:
    """Ctrl-C ends it with 130."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    folder = tmp_path / "out"
    folder.mkdir()
    process = subprocess.Popen(
        [UNLOST, "map", "build", str(pipe), "--input", "index", "-o", str(folder / "a.ukvs")], stderr=subprocess.PIPE
    )
    with pipe.open("wb", buffering=0) as writer:
        # More than a pipe holds: when all of it is written, the work is under way.
        writer.write(PAGES.read_bytes() * 2000)
        process.send_signal(signal.SIGINT)
        # Blocks that wait for more input see the end.
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, list(folder.iterdir())) == (130, []), errors


def test_pipe_that_is_read_twice_is_rejected(tmp_path: Path) -> None:
    """Its header would be consumed before the rows are read."""
    made = build(tmp_path)
    output = tmp_path / "out.ukvs"
    for arguments in (["compact"], ["merge"], ["build", "--input", "map"]):
        done = unlost("map", *arguments, "/dev/stdin", "-o", str(output), stdin=made.read_bytes())
        assert (done.returncode, output.exists()) == (3, False), done.stdout
        assert b"/dev/stdin: not a regular file" in done.stderr


def test_completely_rolled_up_map_is_rejected_by_build(tmp_path: Path) -> None:
    """A map without keys would deny everything."""
    rolled, output = tmp_path / "rolled.ukvs", tmp_path / "out.ukvs"
    assert unlost("map", "compact", str(build(tmp_path)), "--rollup", "*", "-o", str(rolled)).returncode == 0
    done = unlost("map", "build", str(rolled), "-o", str(output))
    assert (done.returncode, output.exists(), b"map merge" in done.stderr) == (3, False, True), done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("com,a)/ 20140101000000 {}\ncom,b)/ 20140101000000 {}\n", b"an index, not a map"),
        ("", b"empty: expected a map"),
        ('!meta {"rolled_up": true, }\n* 5\n', b"a:1 (byte 0): bad-header"),
        ('@about {"type": "urikey#H3P1"}\ncom,a)/ {"frequency": 1}\n', b"a profile, not a map"),
        (
            '!fields {"keys": ["surt"], "values": ["size", "frequency"]}\ncom,a)/ 0 5\n',
            b"expected the frequency right behind the keys, found `size, frequency`",
        ),
    ],
)
def test_invalid_map_is_rejected(tmp_path: Path, text: str, message: bytes) -> None:
    """By `compact`, `merge` and `diff`: dates would become frequencies."""
    file, output = tmp_path / "a", tmp_path / "out.ukvs"
    file.write_text(text)
    good = build(tmp_path)
    for before, after in ((file, good), (good, file)):
        done = unlost("map", "diff", str(before), str(after))
        assert (done.returncode, done.stdout, message in done.stderr) == (3, b"", True), done.stderr
        with pytest.raises(InputError, match=re.escape(message.decode())):
            next(diff_maps(before, after, Problems()))
    for command in ("compact", "merge"):
        done = unlost("map", command, str(file), "-o", str(output))
        assert (done.returncode, output.exists(), message in done.stderr) == (3, False, True), done.stderr


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["--rollup", "com,*", "--host-depth", "1"], b"--host-depth"),
        (["--rollup", "a,b,c,d,e,f,g,h,*"], b"--host-depth"),
        (["--rollup", "com,a)/1/2/3/4/5/6/7/8/*"], b"--path-depth"),
    ],
)
def test_rollup_below_the_depth_limits_is_rejected(tmp_path: Path, arguments: list[str], option: bytes) -> None:
    """Below them a node and its descendants are not distinguished."""
    done = unlost("map", "compact", str(build(tmp_path)), *arguments, "-o", str(tmp_path / "out.ukvs"))
    assert (done.returncode, option in done.stderr) == (2, True), done.stderr


def test_unwritable_folder_is_reported_first(tmp_path: Path) -> None:
    """Before the index is opened."""
    folder = tmp_path / "file"
    folder.write_text("")
    with pytest.raises(OSError, match="Not a directory"):
        build_map([tmp_path / "no.cdxj"], folder / "a.ukvs")


def test_json_and_map_on_standard_output_are_rejected(tmp_path: Path) -> None:
    """Nothing is written."""
    made = str(build(tmp_path))
    for command in (["build", str(PAGES)], ["compact", made], ["merge", made]):
        done = unlost("map", *command, "-o", "-", "--json")
        assert (done.returncode, done.stdout) == (2, b""), done.stderr


def test_diff_reports_unreadable_lines(tmp_path: Path) -> None:
    """They are no difference, but the exit code is 5."""
    good, bad = tmp_path / "a.ukvs", tmp_path / "b.ukvs"
    good.write_text("com,a)/ 1\n")
    bad.write_text("com,a)/ 1\ncom,\x01)/ 1\n")
    done = unlost("map", "diff", str(good), str(bad))
    assert (done.returncode, done.stdout, b"once a line that is none of such a file, first:" in done.stderr) == (
        5,
        b"",
        True,
    ), done.stderr


@pytest.mark.parametrize(
    ("total", "row", "code", "output"),
    [
        ("10", "10", 0, b"total 10\n"),
        ("9", "10", 1, b"total 9\n"),
        ("9-", "10+", 1, b"total 9-\n"),
        ("5+", "10", 0, b"total 5+\n"),
        ("5~", "10", 0, b"total 5~\n"),
        ("/", "10", 0, b"total /\n"),
        ("5", "10-", 0, b"total 5\n"),
        ("5/3", "5/3", 0, b"total 5/3\n"),
    ],
)
def test_total_is_checked_within_its_uncertainty(
    tmp_path: Path, total: str, row: str, code: int, output: bytes
) -> None:
    """And printed unchanged."""
    file = tmp_path / "a.ukvs"
    file.write_text(f"* {total}\ncom,a)/ {row}\n")
    done = unlost("map", "check", str(file))
    assert (done.returncode, output in done.stdout) == (code, True), done.stdout


def test_merge_reports_the_invalid_map(tmp_path: Path) -> None:
    """With its line."""
    good, bad = tmp_path / "a.ukvs", tmp_path / "b.ukvs"
    good.write_text("com,a)/ 1\n")
    bad.write_text("com,b)/ 1\ncom,a)/ 1\n")
    done = unlost("map", "merge", str(good), str(bad), "-o", str(tmp_path / "c.ukvs"))
    assert (done.returncode, f"{bad}: line 2: its key belongs before".encode() in done.stderr) == (3, True), done.stderr
