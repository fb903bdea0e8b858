"""`unlost map sample` of an archive that does what a test wants: failures, quotas, searches, interruptions."""

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
from tests.cli.sampling import home
from tests.neighbours.sampled import Sampled, sampled


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Sampled]:
    """Run an archive with TimeMaps and a full-text search."""
    with sampled() as server:
        (tmp_path / "archives.toml").write_text(server.entry())
        yield server


def fake_sample(place: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Sample that archive."""
    return unlost(
        "map", "sample", "--archives", str(place / "archives.toml"), "--archive", "f", "-o", str(place / "m.ukvs"),
        *arguments, env=home(place),
    )  # fmt: skip


def test_failures_are_counted_by_kind_and_asked_again(fake: Sampled, tmp_path: Path) -> None:
    """Exit code 4 until all have answered; then the map is that of a sample without failures."""
    pages = tmp_path / "pages.txt"
    pages.write_text("".join(f"http://a.example/{number}\n" for number in range(12)))
    fake.status = {"http://a.example/3": 403, "http://a.example/4": 404, "http://a.example/5": 451}
    fake.rubbish = {"http://a.example/6"}
    done = fake_sample(tmp_path, "--uris", str(pages), "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 4
    assert (told["found"], told["missed"], told["excluded"], told["left"]) == (8, 1, 1, 0)
    assert told["failed"] == {"malformed": 1, "status": 1}
    assert b"The same command goes on" in done.stderr
    fake.status.pop("http://a.example/3")
    fake.rubbish.clear()
    before = len(fake.asked)
    done = fake_sample(tmp_path, "--uris", str(pages), "--json")
    assert (done.returncode, json.loads(done.stdout)["found"]) == (0, 10)
    assert sorted(fake.asked[before:]) == ["/timemap/http://a.example/3", "/timemap/http://a.example/6"]
    again = tmp_path / "again"
    again.mkdir()
    (again / "archives.toml").write_text(fake.entry())
    assert fake_sample(again, "--uris", str(pages)).returncode == 0
    assert (again / "m.ukvs").read_bytes() == (tmp_path / "m.ukvs").read_bytes()


def test_an_archive_out_of_order_is_left_alone(fake: Sampled, tmp_path: Path) -> None:
    """After twenty failures in a row nobody asks for the other 80 pages."""
    pages = tmp_path / "pages.txt"
    pages.write_text("".join(f"http://a.example/{number}\n" for number in range(100)))
    fake.rubbish = {f"http://a.example/{number}" for number in range(100)}
    done = fake_sample(tmp_path, "--uris", str(pages))
    assert done.returncode == 4
    assert b"failed 20 times in a row" in done.stderr
    assert 20 <= len(fake.asked) <= 23


@pytest.mark.usefixtures("far_from_midnight")
def test_a_quota_ends_the_run_until_it_may_go_on(fake: Sampled, tmp_path: Path) -> None:
    """Nothing is sent beyond it, by later runs either; the message says when to go on."""
    (tmp_path / "archives.toml").write_text(
        fake.entry() + '[[archive.quotas]]\nrequests = 10\nworks = ["index"]\nsource = "the test"\n'
    )
    pages = tmp_path / "pages.txt"
    pages.write_text("".join(f"http://a.example/{number}\n" for number in range(30)))
    for _ in range(2):
        done = fake_sample(tmp_path, "--uris", str(pages), "--json")
        told = json.loads(done.stdout)
        assert (done.returncode, told["reason"], told["left"]) == (4, "quota", 22)
        assert re.search(
            rb"its quota of the day is used up\. The same command goes on.*run it again after 20", done.stderr
        )
    assert len(fake.asked) == 8  # the share of a limit that is used
    assert rows(tmp_path / "m.ukvs")[0].endswith("+")
    assert len(rows(tmp_path / "m.ukvs")) == 9


def test_searches_become_a_map(fake: Sampled, tmp_path: Path) -> None:
    """Pages of results are followed; what a result tells becomes the fields; nothing is counted twice."""
    done = fake_sample(tmp_path, "--search", "boat", "--search", " boat ", "--by", "year", "--by", "mime", "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 0
    assert (told["requests"], told["searched"], told["left"], told["failed"]) == (3, 1, 0, {})
    assert (told["found"], told["mementos"]) == (120, 120)
    assert [path.partition("offset=")[2] for path in fake.asked] == [
        "0&maxItems=50",
        "50&maxItems=50",
        "100&maxItems=50",
    ]
    lines = rows(tmp_path / "m.ukvs")
    assert lines[0].startswith("* ")
    assert sum(int(line.split()[-1].rstrip("+")) for line in lines if line.startswith("*")) == 120
    assert unlost("map", "check", str(tmp_path / "m.ukvs")).returncode == 0
    more = fake_sample(tmp_path, "--search", "boat", "--json")
    assert (more.returncode, len(fake.asked)) == (0, 3)


def test_the_searcher_follows_words_within_its_budget(fake: Sampled, tmp_path: Path) -> None:
    """The same seed comes to the same map, in one run or two; another seed to another."""
    maps = {}
    for name, seed, budgets in (("one", 1, [24]), ("parts", 1, [5, 24]), ("other", 2, [24])):
        place = tmp_path / name
        place.mkdir()
        (place / "archives.toml").write_text(fake.entry())
        for budget in budgets:
            fake.asked.clear()
            done = fake_sample(place, "--search", "boat", "--follow", "--seed", str(seed), "--requests", str(budget))
            assert done.returncode == 0
        maps[name] = (place / "m.ukvs").read_bytes()
        assert len(fake.asked) == budgets[-1] - (budgets[0] if len(budgets) > 1 else 0)
    assert maps["one"] == maps["parts"] != maps["other"]


def test_ctrl_c_loses_nothing(fake: Sampled, tmp_path: Path) -> None:
    """The exit code is 130, no map appears, and the next run asks only for what was not answered."""
    pages = tmp_path / "pages.txt"
    pages.write_text("".join(f"http://a.example/{number}\n" for number in range(40)))
    command: list[str | Path] = [
        UNLOST, "map", "sample", "--archives", tmp_path / "archives.toml", "--archive", "f", "-o", tmp_path / "m.ukvs",
        "--uris", pages, "--concurrency", "1",
    ]  # fmt: skip
    environment = {"PATH": os.environ["PATH"], **home(tmp_path)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as process:
        fake.end_at(20, process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.split(b"\n") == [
        b"unlost: what came back so far is kept: the same command goes on", b"", b"unlost: interrupted", b"",
    ]  # fmt: skip
    assert not (tmp_path / "m.ukvs").exists()
    fake.asked.clear()
    done = fake_sample(tmp_path, "--uris", str(pages))
    assert done.returncode == 0
    assert 18 <= len(fake.asked) <= 22
    assert len(rows(tmp_path / "m.ukvs")) == 41


def test_two_at_once_are_refused(fake: Sampled, tmp_path: Path) -> None:
    """The second one, so that no page is asked for twice."""
    pages = tmp_path / "pages.txt"
    pages.write_text("http://a.example/1\n")
    fake.hold.clear()
    command: list[str | Path] = [
        UNLOST, "map", "sample", "--archives", tmp_path / "archives.toml", "--archive", "f", "-o", tmp_path / "m.ukvs",
        "--uris", pages,
    ]  # fmt: skip
    environment = {"PATH": os.environ["PATH"], **home(tmp_path)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as process:
        assert fake.has_asked.wait(60)
        second = fake_sample(tmp_path, "--uris", str(pages))
        fake.hold.set()
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert (second.returncode, len(fake.asked)) == (3, 1)
    assert b"another process works on this sample" in second.stderr


def test_a_bar_is_shown_on_a_terminal(fake: Sampled, tmp_path: Path) -> None:
    """How many addresses of how many were asked for."""
    pages = tmp_path / "pages.txt"
    pages.write_text("".join(f"http://a.example/{number}\n" for number in range(40)))
    ours, theirs = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm", "COLUMNS": "120", **home(tmp_path)}
    command: list[str | Path] = [
        UNLOST, "map", "sample", "--archives", tmp_path / "archives.toml", "--archive", "f", "-o", tmp_path / "m.ukvs",
        "--uris", pages,
    ]  # fmt: skip
    done = subprocess.run(command, stderr=theirs, check=False, env=environment, timeout=60)
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert (done.returncode, len(fake.asked)) == (0, 40)
    assert "asking f" in shown
    assert re.search(r"/40\S* \d+ addresses, ", shown)
