"""`unlost demo` as a process: output, servers, and no remains however it ends."""

import json
import os
import re
import signal
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.run import UNLOST, unlost
from tests.external.pywb import WAYBACK
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """Return an empty directory for temporary files, which must be empty again afterwards."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


@contextmanager
def run_demo(temporary: Path, *words: str, stdin: int = subprocess.DEVNULL) -> Iterator[subprocess.Popen[str]]:
    """Run it in the background, and kill it at the end."""
    environment = {
        **os.environ,
        "TMPDIR": str(temporary),
        "UNLOST_HOME": str(temporary.parent / "home"),
        "PYTHONUTF8": "1",
    }
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [UNLOST, "demo", *words], env=environment, stdin=stdin, stdout=pipe, stderr=pipe, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def normalized(text: str) -> str:
    """Return output without ports and compressed sizes."""
    return re.sub(r"(?<=127\.0\.0\.1:)\d+|[\d.]+(?= KB)", "N", text)


def read_until(process: subprocess.Popen[str], words: str) -> None:
    """Read stdout up to a line that begins with these words. A process without such a line is killed."""
    assert process.stdout is not None
    seen = []
    limit = threading.Timer(60, process.kill)
    limit.start()
    try:
        for line in process.stdout:
            seen.append(line)
            if line.startswith(words):
                return
    finally:
        limit.cancel()
    raise AssertionError("".join(seen))


def processes_of(temporary: Path) -> list[str]:
    """Return the command lines of all processes that refer to a folder."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = each.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue  # it has just ended
        if str(temporary) in command:
            found.append(command)
    return found


def test_without_a_terminal_it_ends(temporary: Path) -> None:
    """It prints the story of the guide; no file is left, also not in the user's home."""
    done = unlost("demo", env={"TMPDIR": str(temporary), "UNLOST_HOME": str(temporary.parent / "home")})
    assert (done.returncode, done.stderr) == (0, b"")
    assert normalized(done.stdout.decode()) in normalized((ROOT / "docs" / "demo.md").read_text()), (
        "as the docs show it"
    )
    assert list(temporary.iterdir()) == []
    assert not (temporary.parent / "home").exists()


def test_waiting_demo_serves_its_page_until_sigterm(temporary: Path) -> None:
    """The exit code is 0, and no file is left."""
    with run_demo(temporary, "--wait", "--json") as process:
        assert process.stdout is not None
        result = json.loads(process.stdout.readline())
        with urllib.request.urlopen(result["page"], timeout=30) as response:  # noqa: S310  our own
            assert b"A lost website, recovered" in response.read()
        assert result["served_pages"] == 16
        assert len(list(temporary.iterdir())) == 1
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=60) == ("", "")
        assert process.returncode == 0
    assert list(temporary.iterdir()) == []


def test_at_a_terminal_it_waits_for_ctrl_c(temporary: Path) -> None:
    """It prints the URL of the page, and at the end what it removed."""
    ours, reference = os.openpty()
    try:
        with run_demo(temporary, stdin=reference) as process:
            read_until(process, "Original and recovered")
            read_until(process, "  unlost recover")
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=60) == ("Stopped: archives and web page; all files removed\n", "")
    finally:
        os.close(ours)
        os.close(reference)
    assert (process.returncode, list(temporary.iterdir())) == (0, [])


@pytest.mark.parametrize(
    "step",
    [
        "Lost website",
        pytest.param("Archives on this machine", marks=pytest.mark.long),
        pytest.param("MementoMap of each", marks=pytest.mark.long),
        "Recovery from all",
    ],
)
def test_interruption_leaves_no_files(temporary: Path, step: str) -> None:
    """Ctrl-C ends it with 130, also if it is sent twice."""
    with run_demo(temporary, "--wait") as process:
        read_until(process, step)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (130, "\nunlost: interrupted\n")
    assert list(temporary.iterdir()) == []


def test_pywb_gives_the_same_result(temporary: Path, tmp_path: Path) -> None:
    """Three pywb servers end with the demo; with `--keep` the files stay."""
    folder = tmp_path / "kept"
    with run_demo(temporary, "--no-wait", "--json", "--pywb", str(WAYBACK), "--keep", str(folder)) as process:
        output, stderr = process.communicate(timeout=120)
    assert (process.returncode, stderr) == (0, "")
    result = json.loads(output)
    assert (result["archives_run_by"], result["folder"], result["page"]) == ("pywb", str(folder), None)
    assert result["comparison"] | {"share_by_type": None} == {
        "original": 33, "identical": 26, "changed": 3, "missing": 4, "added": 1, "share_by_type": None,
    }  # fmt: skip
    assert [each["verdict"] for each in result["rejected"]] == ["soft-404", "parked", "hijacked"]
    assert result["routing"]["copies"] == result["routing"]["copies_if_all_are_asked"]
    assert result["routing"]["not_sent"] > result["routing"]["sent"]
    assert (folder / "page" / "recovered" / "index.html").is_file()
    assert processes_of(folder) == []


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_pywb_ends_with_the_demo(temporary: Path, sign: signal.Signals) -> None:
    """If it is interrupted, and if it is killed."""
    with run_demo(temporary, "--wait", "--pywb", str(WAYBACK)) as process:
        read_until(process, "MementoMap of each")
        assert len(processes_of(temporary)) >= 3
        process.send_signal(sign)
        process.communicate(timeout=60)
    if sign == signal.SIGINT:
        assert processes_of(temporary) == []
        assert list(temporary.iterdir()) == []
    wait_until(lambda: processes_of(temporary) == [])


def test_invalid_options_are_rejected_first(temporary: Path, tmp_path: Path) -> None:
    """A port in use, a folder that is not empty, a program that is not pywb."""
    environment = {"TMPDIR": str(temporary)}
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
    assert list(temporary.iterdir()) == []
