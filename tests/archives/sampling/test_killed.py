"""A repeatedly killed sample yields the same result, byte for byte."""

import os
import random
import signal
from pathlib import Path
from threading import Timer

import pytest

from tests.archives.sampling.killable import commands
from tests.external.search_archive import fake_search_archive

KILLS = {"uris": 30, "search": 25}


@pytest.mark.parametrize("mode", list(KILLS))
def test_killed_sampler_resumes_at_any_point(tmp_path: Path, mode: str) -> None:
    """Nothing is lost or counted twice, and few requests are repeated."""
    seed = 20_260
    random_ = random.Random(seed)  # noqa: S311
    pages = tmp_path / "pages.txt"
    pages.write_text("".join(f"http://a.example/{number % 80}?{number % 3}\n" for number in range(240)))
    expected = {
        "uris": ["--uris", str(pages), "--by", "year"],
        "search": ["--search", "boat", "--search", "mill", "--follow", "--pages", "2", "--requests", "80"],
    }[mode]
    with fake_search_archive() as archive, commands() as running:

        def start(position: Path) -> int:
            position.mkdir(exist_ok=True)
            registry = position / "archives.toml"
            registry.write_text(archive.entry())
            requested = ["--archives", str(registry), "--archive", "f", "-o", str(position / "m.ukvs"), *expected]
            return running.start(position / "home", ["map", "sample", *requested])

        start(tmp_path / "whole")
        assert running.ended() == 0
        whole = (tmp_path / "whole" / "m.ukvs").read_bytes()
        needed = len(archive.requests)
        archive.requests.clear()

        folder = tmp_path / "killed"
        for number in range(KILLS[mode]):
            # During a request, while its response is stored, or before the first request.
            after, delay = random_.choice([1, 1, 2, 3]), random_.choice([0.0, 0.0, random_.uniform(0, 0.02)])
            early = random_.uniform(0, 0.1) if random_.random() < 0.2 else None
            print(f"seed {seed}, point {number}: request {after}, {delay:.4f} s later, or at {early} s")
            if early is not None:
                archive.unblocked.clear()  # otherwise a fast machine would have finished
            process = start(folder)
            if early is None:
                archive.send_signal_at(after, process, signal.SIGKILL, delay)
            else:
                Timer(early, os.kill, (process, signal.SIGKILL)).start()
            assert running.ended() == -signal.SIGKILL
            archive.unblocked.set()
            assert not (folder / "m.ukvs").exists()
        start(folder)
        assert running.ended() == 0
        assert (folder / "m.ukvs").read_bytes() == whole
        # Requests in flight when it was killed: one search, or the maximum of concurrent pages.
        assert needed <= len(archive.requests) <= needed + KILLS[mode] * (4 if mode == "uris" else 1)
        assert sorted(path.name for path in folder.iterdir()) == ["archives.toml", "home", "m.ukvs", "m.ukvs.sample"]
