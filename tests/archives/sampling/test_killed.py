"""A sample that is killed again and again comes to what it would have come to otherwise, byte by byte."""

import os
import random
import signal
from pathlib import Path
from threading import Timer

import pytest

from tests.archives.sampling.killable import commands
from tests.neighbours.sampled import sampled

KILLS = {"uris": 30, "search": 25}


@pytest.mark.parametrize("mode", list(KILLS))
def test_killed_sampler_resumes_at_any_point(tmp_path: Path, mode: str) -> None:
    """Nothing is lost, nothing is counted twice, and hardly anything is asked for twice."""
    seed = 20_260
    random_ = random.Random(seed)  # noqa: S311
    pages = tmp_path / "pages.txt"
    pages.write_text("".join(f"http://a.example/{number % 80}?{number % 3}\n" for number in range(240)))
    wanted = {
        "uris": ["--uris", str(pages), "--by", "year"],
        "search": ["--search", "boat", "--search", "mill", "--follow", "--pages", "2", "--requests", "80"],
    }[mode]
    with sampled() as archive, commands() as running:

        def start(place: Path) -> int:
            place.mkdir(exist_ok=True)
            registry = place / "archives.toml"
            registry.write_text(archive.entry())
            asked = ["--archives", str(registry), "--archive", "f", "-o", str(place / "m.ukvs"), *wanted]
            return running.start(place / "home", ["map", "sample", *asked])

        start(tmp_path / "whole")
        assert running.ended() == 0
        whole = (tmp_path / "whole" / "m.ukvs").read_bytes()
        needed = len(archive.asked)
        archive.asked.clear()

        folder = tmp_path / "killed"
        for number in range(KILLS[mode]):
            # In the middle of a request, or while its answer is kept; some before any is sent, while the list is read.
            after, delay = random_.choice([1, 1, 2, 3]), random_.choice([0.0, 0.0, random_.uniform(0, 0.02)])
            early = random_.uniform(0, 0.1) if random_.random() < 0.2 else None
            print(f"seed {seed}, point {number}: request {after}, {delay:.4f} s later, or at {early} s")
            if early is not None:
                archive.hold.clear()  # or a fast machine would be done by then
            process = start(folder)
            if early is None:
                archive.end_at(after, process, signal.SIGKILL, delay)
            else:
                Timer(early, os.kill, (process, signal.SIGKILL)).start()
            assert running.ended() == -signal.SIGKILL
            archive.hold.set()
            assert not (folder / "m.ukvs").exists()
        start(folder)
        assert running.ended() == 0
        assert (folder / "m.ukvs").read_bytes() == whole
        # What was on its way when it was killed: one search, or as many pages as are asked for at once.
        assert needed <= len(archive.asked) <= needed + KILLS[mode] * (4 if mode == "uris" else 1)
        assert sorted(path.name for path in folder.iterdir()) == ["archives.toml", "home", "m.ukvs", "m.ukvs.sample"]
