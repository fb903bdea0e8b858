"""Tests that the WARCs of a recovery survive a kill at any point."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from threading import Timer

from tests.recovery.sample_captures import body_of, open_store
from tests.recovery.test_warcs import read_with_warcio
from tests.waiting import read_number
from unlost.recovery import RecoveryRecord

ROOT = Path(__file__).parents[2]
KILLS = 90
KILLS_PER_FOLDER = 6  # each process finds the folder as the previous one left it


def inspect(folder: Path, place: Path) -> tuple[list[RecoveryRecord], int]:
    """Return the records that a next run would adopt, and the number of truncated bytes; the folder is unchanged."""
    shutil.copytree(folder, place)
    warcs, records = open_store(place)
    for record in records[-3:]:
        body_of(warcs, record)  # has the digest that the record says, or is refused
    warcs.close()
    assert not [path for path in place.iterdir() if not path.name.endswith(".warc.gz")]
    assert [kind for kind, _, _ in read_with_warcio(place)].count("metadata") == len(records)
    shutil.rmtree(place)
    return records, warcs.truncated_bytes


def test_stored_captures_survive_a_kill_at_any_point(tmp_path: Path) -> None:
    """Every record that `store` returned is there, and at most one more."""
    seed = 7_007
    drawn = random.Random(seed)  # noqa: S311
    stored = torn = 0
    starter = subprocess.Popen(
        [sys.executable, "-m", "tests.recovery.killed_store"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with starter:
        assert starter.stdin
        for number in range(KILLS):
            folder, log = (
                tmp_path / f"warc-{number // KILLS_PER_FOLDER}",
                tmp_path / f"log-{number // KILLS_PER_FOLDER}",
            )
            if number % KILLS_PER_FOLDER == 0:
                before: list[RecoveryRecord] = []
            log.touch()
            # Two of three at a step, some of them the first: the truncation of an incomplete record.
            step, delay = drawn.choice([0, drawn.randint(1, 4), drawn.randint(1, 25)]), drawn.uniform(0, 0.06)
            print(f"seed {seed}, point {number}: killed " + (f"at step {step}" if step else f"after {delay:.4f} s"))
            starter.stdin.write(f"{folder} {number} {log} {step}\n")
            starter.stdin.flush()
            process = read_number(starter, "process")
            if not step:
                Timer(delay, os.kill, (process, signal.SIGKILL)).start()
            assert read_number(starter, "ended") == -signal.SIGKILL
            if not folder.exists():
                continue
            records, cut = inspect(folder, tmp_path / "copy")
            assert records[: len(before)] == before
            lines = [json.loads(line) for line in log.read_text().splitlines()]
            now = [[record.file, record.offset, record.size, record.capture.digest] for record in records]
            missed = [line for line in lines if line not in now]
            assert missed == []
            assert len(records) - len(before) <= len(lines) + 1 - sum(line in now[: len(before)] for line in lines)
            stored, torn, before = stored + len(records) - len(before), torn + (cut > 0), records
        starter.stdin.close()
    # Captures were stored, and some processes were killed during an append.
    assert stored > KILLS
    assert torn > KILLS / 5
