"""`unlost demo` as people run it: a process that tells, shows, and leaves nothing behind, however it ends."""

import json
import os
import re
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.run import UNLOST, unlost
from tests.neighbours.pywb import WAYBACK
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return an empty folder for temporary files, which must be empty again afterwards."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


@contextmanager
def running(place: Path, *words: str, stdin: int = subprocess.DEVNULL) -> Iterator[subprocess.Popen[str]]:
    """Run it in the background; what still runs at the end is killed."""
    environment = {**os.environ, "TMPDIR": str(place), "UNLOST_HOME": str(place.parent / "home"), "PYTHONUTF8": "1"}
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [UNLOST, "demo", *words], env=environment, stdin=stdin, stdout=pipe, stderr=pipe, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def plain(text: str) -> str:
    """Return what was said without what may differ: ports, and sizes that depend on how well something is packed."""
    return re.sub(r"(?<=127\.0\.0\.1:)\d+|[\d.]+(?= KB)", "N", text)


def read_until(process: subprocess.Popen[str], words: str) -> None:
    """Read what it says up to a line that begins so."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if line.startswith(words):
            return
    raise AssertionError("".join(seen))


def processes_of(place: Path) -> list[str]:
    """Return the commands of all processes that have to do with a folder."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = each.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue  # it has just ended
        if str(place) in command:
            found.append(command)
    return found


def test_it_ends_by_itself_where_nobody_watches(place: Path) -> None:
    """Without a terminal it tells the story and is done; nothing is left, nor written to the user's own folders."""
    done = unlost("demo", env={"TMPDIR": str(place), "UNLOST_HOME": str(place.parent / "home")})
    assert (done.returncode, done.stderr) == (0, b"")
    assert plain(done.stdout.decode()) in plain((ROOT / "docs" / "demo.md").read_text()), "as the docs show it"
    assert list(place.iterdir()) == []
    assert not (place.parent / "home").exists()


def test_while_it_waits_it_shows_and_a_signal_is_its_natural_end(place: Path) -> None:
    """The page is at the address that it says; SIGTERM ends it with 0, it says nothing more, and leaves nothing."""
    with running(place, "--wait", "--json") as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        with urllib.request.urlopen(told["page"], timeout=30) as answer:  # noqa: S310  our own
            assert b"A lost site comes back" in answer.read()
        assert told["served_pages"] == 16
        assert len(list(place.iterdir())) == 1
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=60) == ("", "")
        assert process.returncode == 0
    assert list(place.iterdir()) == []


def test_at_a_terminal_it_waits(place: Path) -> None:
    """Without any option it offers the page, and says what it has put away when it is ended."""
    ours, theirs = os.openpty()
    try:
        with running(place, stdin=theirs) as process:
            read_until(process, "See it all")
            read_until(process, "  unlost recover")
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=60) == ("Ended: archives and page are gone, and so are all files\n", "")
    finally:
        os.close(ours)
        os.close(theirs)
    assert (process.returncode, list(place.iterdir())) == (0, [])


@pytest.mark.parametrize(
    "step",
    [
        "A site is lost",
        pytest.param("They answer", marks=pytest.mark.long),
        pytest.param("Each publishes", marks=pytest.mark.long),
        "The site is recovered",
    ],
)
def test_interrupted_in_the_middle_it_leaves_nothing(place: Path, step: str) -> None:
    """Ctrl-C ends work with 130, also if it comes twice."""
    with running(place, "--wait") as process:
        read_until(process, step)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "\nunlost: interrupted\n")
    assert list(place.iterdir()) == []


def test_with_pywb_it_is_the_same_story(place: Path, tmp_path: Path) -> None:
    """Three real pywb give the same site, and end with it; what is kept can be looked at without anybody running."""
    kept = tmp_path / "kept"
    with running(place, "--no-wait", "--json", "--pywb", str(WAYBACK), "--keep", str(kept)) as process:
        output, said = process.communicate(timeout=120)
    assert (process.returncode, said) == (0, "")
    told = json.loads(output)
    assert (told["archives_run_by"], told["folder"], told["page"]) == ("pywb", str(kept), None)
    assert told["comparison"] | {"share_by_type": None} == {
        "original": 33, "identical": 26, "changed": 3, "missing": 4, "added": 1, "share_by_type": None,
    }  # fmt: skip
    assert [each["verdict"] for each in told["rejected"]] == ["soft-404", "parked", "hijacked"]
    assert told["routing"]["copies"] == told["routing"]["copies_if_all_are_asked"]
    assert told["routing"]["not_sent"] > told["routing"]["sent"]
    assert (kept / "page" / "recovered" / "index.html").is_file()
    assert processes_of(kept) == []


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_no_pywb_outlives_it(place: Path, sign: signal.Signals) -> None:
    """Neither if it is interrupted, nor if it is killed and can do nothing about it."""
    with running(place, "--wait", "--pywb", str(WAYBACK)) as process:
        read_until(process, "Each publishes")
        assert len(processes_of(place)) >= 3
        process.send_signal(sign)
        process.communicate(timeout=60)
    if sign == signal.SIGINT:
        assert processes_of(place) == []
        assert list(place.iterdir()) == []
    wait_until(lambda: processes_of(place) == [])


def test_what_cannot_be_is_said_before_any_work(place: Path, tmp_path: Path) -> None:
    """A port that is taken, a folder that has something in it, a program that is no pywb."""
    environment = {"TMPDIR": str(place)}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = unlost("demo", "--port", port, env=environment)
    assert (done.returncode, done.stdout) == (2, b"")
    assert f"port {port} of 127.0.0.1 is taken" in done.stderr.decode()
    (tmp_path / "mine").write_text("mine")
    done = unlost("demo", "--keep", str(tmp_path), env=environment)
    assert (done.returncode, done.stdout, b"new or empty" in done.stderr) == (3, b"", True)
    done = unlost("demo", "--pywb", str(tmp_path / "mine"), env=environment)
    assert (done.returncode, b"mine: cannot be read: Permission denied" in done.stderr) == (3, True)
    no_pywb = tmp_path / "no-pywb"
    no_pywb.write_text("#!/bin/sh\necho I am something else\n")
    no_pywb.chmod(0o755)
    done = unlost("demo", "--pywb", str(no_pywb), env=environment)
    assert (done.returncode, b"no pywb came up" in done.stderr, b"I am something else" in done.stderr) == (
        2,
        True,
        True,
    )
    assert list(place.iterdir()) == []
