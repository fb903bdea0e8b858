"""`unlost map sample` of a fake archive: failures, quotas, searches, interruptions."""

import json
import os
import pty
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.maps import rows
from tests.cli.run import UNLOST, unlost
from tests.cli.settings import home
from tests.external.search_archive import FakeSearchArchive, fake_search_archive


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[FakeSearchArchive]:
    """Run an archive with TimeMaps and a full-text search."""
    with fake_search_archive() as server:
        (tmp_path / "archives.toml").write_text(server.entry())
        yield server


def sample(place: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Sample that archive."""
    return unlost(
        "map", "sample", "--archives", str(place / "archives.toml"), "--archive", "f", "-o", str(place / "m.ukvs"),
        *arguments, env=home(place),
    )  # fmt: skip


def test_failures_are_counted_and_queried_again(archive: FakeSearchArchive, tmp_path: Path) -> None:
    """Exit code 4 until all are answered; then the map is that of a sample without failures."""
    pages = tmp_path / "pages.txt"
    pages.write_text("".join(f"http://a.example/{number}\n" for number in range(12)))
    archive.timemap_status = {"http://a.example/3": 403, "http://a.example/4": 404, "http://a.example/5": 451}
    archive.invalid_timemaps = {"http://a.example/6"}
    done = sample(tmp_path, "--uris", str(pages), "--json")
    result = json.loads(done.stdout)
    assert done.returncode == 4
    assert (result["found"], result["missed"], result["excluded"], result["left"]) == (8, 1, 1, 0)
    assert result["failed"] == {"malformed": 1, "status": 1}
    assert b"The same command goes on" in done.stderr
    archive.timemap_status.pop("http://a.example/3")
    archive.invalid_timemaps.clear()
    before = len(archive.requests)
    done = sample(tmp_path, "--uris", str(pages), "--json")
    assert (done.returncode, json.loads(done.stdout)["found"]) == (0, 10)
    assert sorted(archive.requests[before:]) == ["/timemap/http://a.example/3", "/timemap/http://a.example/6"]
    again = tmp_path / "again"
    again.mkdir()
    (again / "archives.toml").write_text(archive.entry())
    assert sample(again, "--uris", str(pages)).returncode == 0
    assert (again / "m.ukvs").read_bytes() == (tmp_path / "m.ukvs").read_bytes()


def test_failing_archive_is_not_queried_further(archive: FakeSearchArchive, tmp_path: Path) -> None:
    """After 20 consecutive failures."""
    pages = tmp_path / "pages.txt"
    pages.write_text("".join(f"http://a.example/{number}\n" for number in range(100)))
    archive.invalid_timemaps = {f"http://a.example/{number}" for number in range(100)}
    done = sample(tmp_path, "--uris", str(pages))
    assert done.returncode == 4
    assert b"failed 20 times in a row" in done.stderr
    assert 20 <= len(archive.requests) <= 23


@pytest.mark.usefixtures("far_from_midnight")
def test_quota_ends_the_run(archive: FakeSearchArchive, tmp_path: Path) -> None:
    """Also later runs send nothing beyond it; the message says when to resume."""
    (tmp_path / "archives.toml").write_text(
        archive.entry() + '[[archive.quotas]]\nrequests = 10\nworks = ["index"]\nsource = "the test"\n'
    )
    pages = tmp_path / "pages.txt"
    pages.write_text("".join(f"http://a.example/{number}\n" for number in range(30)))
    for _ in range(2):
        done = sample(tmp_path, "--uris", str(pages), "--json")
        result = json.loads(done.stdout)
        assert (done.returncode, result["reason"], result["left"]) == (4, "quota", 22)
        assert re.search(
            rb"its quota of the day is used up\. The same command goes on.*run it again after 20", done.stderr
        )
    assert len(archive.requests) == 8  # the share of a limit that is used
    assert rows(tmp_path / "m.ukvs")[0].endswith("+")
    assert len(rows(tmp_path / "m.ukvs")) == 9


def test_searches_become_a_map(archive: FakeSearchArchive, tmp_path: Path) -> None:
    """Result pages are followed, results have fields, and nothing is counted twice."""
    done = sample(tmp_path, "--search", "boat", "--search", " boat ", "--by", "year", "--by", "mime", "--json")
    result = json.loads(done.stdout)
    assert done.returncode == 0
    assert (result["requests"], result["searched"], result["left"], result["failed"]) == (3, 1, 0, {})
    assert (result["found"], result["mementos"]) == (120, 120)
    assert [path.partition("offset=")[2] for path in archive.requests] == [
        "0&maxItems=50",
        "50&maxItems=50",
        "100&maxItems=50",
    ]
    lines = rows(tmp_path / "m.ukvs")
    assert lines[0].startswith("* ")
    assert sum(int(line.split()[-1].rstrip("+")) for line in lines if line.startswith("*")) == 120
    assert unlost("map", "check", str(tmp_path / "m.ukvs")).returncode == 0
    more = sample(tmp_path, "--search", "boat", "--json")
    assert (more.returncode, len(archive.requests)) == (0, 3)


def test_search_with_follow_is_deterministic_by_seed(archive: FakeSearchArchive, tmp_path: Path) -> None:
    """In one run or two, within its budget."""
    maps = {}
    for name, seed, budgets in (("one", 1, [24]), ("parts", 1, [5, 24]), ("other", 2, [24])):
        place = tmp_path / name
        place.mkdir()
        (place / "archives.toml").write_text(archive.entry())
        for budget in budgets:
            archive.requests.clear()
            done = sample(place, "--search", "boat", "--follow", "--seed", str(seed), "--requests", str(budget))
            assert done.returncode == 0
        maps[name] = (place / "m.ukvs").read_bytes()
        assert len(archive.requests) == budgets[-1] - (budgets[0] if len(budgets) > 1 else 0)
    assert maps["one"] == maps["parts"] != maps["other"]


def test_interrupted_sample_resumes(archive: FakeSearchArchive, tmp_path: Path) -> None:
    """The exit code is 130, no map is written, and the next run sends only unanswered queries."""
    pages = tmp_path / "pages.txt"
    pages.write_text("".join(f"http://a.example/{number}\n" for number in range(40)))
    command: list[str | Path] = [
        UNLOST, "map", "sample", "--archives", tmp_path / "archives.toml", "--archive", "f", "-o", tmp_path / "m.ukvs",
        "--uris", pages, "--concurrency", "1",
    ]  # fmt: skip
    environment = {"PATH": os.environ["PATH"], **home(tmp_path)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as process:
        archive.send_signal_at(20, process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.split(b"\n") == [
        b"unlost: what came back so far is kept: the same command goes on", b"", b"unlost: interrupted", b"",
    ]  # fmt: skip
    assert not (tmp_path / "m.ukvs").exists()
    archive.requests.clear()
    done = sample(tmp_path, "--uris", str(pages))
    assert done.returncode == 0
    assert 18 <= len(archive.requests) <= 22
    assert len(rows(tmp_path / "m.ukvs")) == 41


def test_second_process_is_rejected(archive: FakeSearchArchive, tmp_path: Path) -> None:
    """So that no page is queried twice."""
    pages = tmp_path / "pages.txt"
    pages.write_text("http://a.example/1\n")
    archive.unblocked.clear()
    command: list[str | Path] = [
        UNLOST, "map", "sample", "--archives", tmp_path / "archives.toml", "--archive", "f", "-o", tmp_path / "m.ukvs",
        "--uris", pages,
    ]  # fmt: skip
    environment = {"PATH": os.environ["PATH"], **home(tmp_path)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as process:
        assert archive.request_received.wait(60)
        second = sample(tmp_path, "--uris", str(pages))
        archive.unblocked.set()
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert (second.returncode, len(archive.requests)) == (3, 1)
    assert b"another process works on this sample" in second.stderr


def test_progress_bar_is_shown_on_a_terminal(archive: FakeSearchArchive, tmp_path: Path) -> None:
    """With the number of queried URLs."""
    pages = tmp_path / "pages.txt"
    pages.write_text("".join(f"http://a.example/{number}\n" for number in range(40)))
    terminal, child_terminal = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm", "COLUMNS": "120", **home(tmp_path)}
    command: list[str | Path] = [
        UNLOST, "map", "sample", "--archives", tmp_path / "archives.toml", "--archive", "f", "-o", tmp_path / "m.ukvs",
        "--uris", pages,
    ]  # fmt: skip
    done = subprocess.run(command, stderr=child_terminal, check=False, env=environment, timeout=60)
    os.close(child_terminal)
    output = os.read(terminal, 1 << 16).decode()
    os.close(terminal)
    assert (done.returncode, len(archive.requests)) == (0, 40)
    assert "asking f" in output
    assert re.search(r"/40\S* \d+ addresses, ", output)
