"""`unlost map exclude`."""

import gzip
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.maps import rows
from tests.cli.run import UNLOST, unlost

MAP = '!fields {"keys": ["surt"], "values": ["frequency"]}\n!meta {"name": "A"}\n* 9\ncom,a)/* 8\ncom,a)/own 1\n'
ROW = b'com,a)/%07d 20140210000001 {"url": "http://a.com/%d"}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a map, a list of misses and an index."""
    (tmp_path / "a.ukvs").write_text(MAP)
    (tmp_path / "misses.txt").write_text("".join(f"http://a.com/{name}\n" for name in ("own", "x/1", "x/2", "x/3")))
    (tmp_path / "index.txt").write_text("http://a.com/own\nhttp://a.com/y\n")
    return tmp_path


def exclude(folder: Path, *arguments: str, output: str = "b.ukvs") -> subprocess.CompletedProcess[bytes]:
    """Add the misses to the map, with a fixed date."""
    return unlost(
        "map", "exclude", str(folder / "a.ukvs"), "-o", str(folder / output), "--date", "2026-11-16", *arguments
    )


def test_misses_become_excluded_pages_and_subtrees(folder: Path) -> None:
    """Pages by the log alone, subtrees with an index; header and total stay."""
    log, index = str(folder / "misses.txt"), str(folder / "index.txt")
    done = exclude(folder, "--misses", log)
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.startswith(b"unlost: 4 pages missed: 3 excluded, 0 subtrees, 0 renewed, 1 held,")
    tail = '0 {"expires": "2026-12-16"}'
    added = [f"com,a)/x/{n} {tail}" for n in (1, 2, 3)]
    assert rows(folder / "b.ukvs") == ["* 9", "com,a)/* 8", "com,a)/own 1", *added]
    assert '!meta {"name": "A", "version": 2, "row_bytes":                  145}\n' in (folder / "b.ukvs").read_text()
    done = exclude(folder, "--misses", log, "--index", index, "--expires", "2027-01-01", "--json")
    assert json.loads(done.stdout) == {
        "read": 4, "unsaid": 0, "old": 0, "missed": 4, "queries": 0, "held": 1, "denied": 0, "added": 0, "wildcards": 1,
        "renewed": 0, "expired": 0, "outweighed": 0, "problems": {},
    }  # fmt: skip
    assert rows(folder / "b.ukvs")[-1] == 'com,a)/x/* 0 {"expires": "2027-01-01"}'
    exclude(folder, "--misses", log, "--index", index, "--pages", "4", "--expires", "7")
    assert rows(folder / "b.ukvs")[-1] == 'com,a)/x/3 0 {"expires": "2026-11-23"}'


def test_map_is_replaced_in_place(folder: Path) -> None:
    """Expired exclusions are removed, also without misses."""
    log = str(folder / "misses.txt")
    assert exclude(folder, "--misses", log, "--force", output="a.ukvs").returncode == 0
    assert len(rows(folder / "a.ukvs")) == 6
    done = unlost("map", "check", str(folder / "a.ukvs"), "--date", "2026-12-15")
    assert (done.returncode, b"3 exclusions expire, the first on 2026-12-16\n" in done.stdout) == (0, True)
    assert unlost("map", "check", str(folder / "a.ukvs"), "--date", "2026-12-16").returncode == 1
    path = str(folder / "a.ukvs")
    assert (
        unlost("map", "exclude", path, "-o", path, "--force", env={"SOURCE_DATE_EPOCH": "1800000000"}).returncode == 0
    )
    assert rows(folder / "a.ukvs") == ["* 9", "com,a)/* 8", "com,a)/own 1"]


def test_output_depends_only_on_contents_and_date(folder: Path) -> None:
    """Not on compression or the order of misses."""
    assert exclude(folder, "--misses", str(folder / "misses.txt")).returncode == 0
    (folder / "packed.gz").write_bytes(
        gzip.compress("\n".join(reversed((folder / "misses.txt").read_text().split())).encode())
    )
    (folder / "a.ukvs").write_bytes(gzip.compress((folder / "a.ukvs").read_bytes()))
    assert exclude(folder, "--misses", str(folder / "packed.gz"), output="c.ukvs").returncode == 0
    assert (folder / "b.ukvs").read_bytes() == (folder / "c.ukvs").read_bytes()


def test_date_defaults_to_today(folder: Path) -> None:
    """Exclusions end later."""
    path, output = str(folder / "a.ukvs"), str(folder / "b.ukvs")
    assert unlost("map", "exclude", path, "--misses", str(folder / "misses.txt"), "-o", output).returncode == 0
    assert unlost("map", "check", output).returncode == 0
    assert len(rows(folder / "b.ukvs")) == 6


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("", 0, b"0 pages missed"),
        ("\n\n# nothing\n", 0, b"0 pages missed"),
        (
            "rubbish line\nmailto:a@b.c\ndns:a\n\x00\n",
            5,
            b"2 times an address of something that is no web page, first: ",
        ),
        ('{"rubbish": 1}\n{"more\n', 5, b"once a piece of JSON that is none, first: "),
        ("[10/Oct/2000:13:55:36 -0700] nothing\n", 5, b"once a line that is none of such a log, first: "),
    ],
)
def test_bad_log_lines_are_counted(folder: Path, text: str, code: int, message: bytes) -> None:
    """By kind, and the map is unchanged."""
    (folder / "misses.txt").write_text(text)
    done = exclude(folder, "--misses", str(folder / "misses.txt"))
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr
    assert rows(folder / "b.ukvs") == rows(folder / "a.ukvs")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("com,a)/ 20140101000000 {}\ncom,b)/ 20140101000000 {}\n", b"an index, not a map"),
        ("", b"empty: expected a map"),
        ("com,b)/ 1\ncom,a)/ 1\n", b"its key belongs before the one above it"),
    ],
)
def test_invalid_map_is_rejected(folder: Path, text: str, message: bytes) -> None:
    """In one line, and no file is left."""
    (folder / "a.ukvs").write_text(text)
    before = sorted(folder.iterdir())
    done = exclude(folder, "--misses", str(folder / "misses.txt"))
    assert (done.returncode, message in done.stderr, done.stderr.count(b"\n")) == (3, True, 1), done.stderr
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--misses", "none"], 3, b"none: cannot be read: No such file"),
        (["--misses", "a.ukvs"], 3, b"a.ukvs: a map, not a log"),
        (["--misses", "/dev/stdin"], 3, b"/dev/stdin: not a regular file"),
        (["--misses", "misses.txt", "--index", "none"], 3, b"none: cannot be read"),
        (["--expires", "soon"], 2, b"--expires: expected days, or a date such as 2026-12-31, found `soon`"),
        (["--expires", "0"], 2, b"expected a later day"),
        (["--expires", "2026-11-16"], 2, b"expected a later day"),
        (["--date", "never"], 2, b"--date: expected a date"),
        (["--json", "-o", "-"], 2, b"--json and -o - would both be written to standard output"),
        (["-o", "no/b.ukvs"], 3, b"cannot be written: no such folder"),
        (["-o", "/dev/full"], 3, b"No space left"),
    ],
)
def test_invalid_options_are_rejected(folder: Path, arguments: list[str], code: int, message: bytes) -> None:
    """In one line, and no file is left."""
    before = sorted(folder.iterdir())
    absolute = [
        str(folder / word) if word in ("none", "a.ukvs", "misses.txt", "no/b.ukvs") else word for word in arguments
    ]
    done = exclude(folder, *absolute)
    assert (done.returncode, message in done.stderr, done.stderr.count(b"\n")) == (code, True, 1), done.stderr
    assert sorted(folder.iterdir()) == before


def test_truncated_map_is_rejected(folder: Path) -> None:
    """Missing keys would be excluded."""
    packed = gzip.compress((MAP + "".join(f"com,b)/{n:05} 1\n" for n in range(9000))).encode())
    (folder / "a.ukvs").write_bytes(packed[: len(packed) // 2])
    done = exclude(folder, "--misses", str(folder / "misses.txt"))
    assert (done.returncode, b"a part of a map is no map" in done.stderr) == (3, True), done.stderr
    assert not (folder / "b.ukvs").exists()


def test_interruption_leaves_no_files(folder: Path) -> None:
    """Ctrl-C ends it with 130, also without temporary files."""
    pipe, out, temporary = folder / "pipe", folder / "out", folder / "tmp"
    os.mkfifo(pipe)
    out.mkdir()
    temporary.mkdir()
    arguments = ["map", "exclude", str(folder / "a.ukvs"), "--misses", str(folder / "misses.txt"), "--index", str(pipe)]
    process = subprocess.Popen(
        [UNLOST, *arguments, "-o", str(out / "b.ukvs")],
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    with pipe.open("wb", buffering=0) as writer:
        # More than a pipe holds: when all of it is written, the work is under way.
        writer.write(b"".join(ROW % (number, number) for number in range(20_000)))
        process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, list(out.iterdir()), list(temporary.iterdir())) == (130, [], []), errors
