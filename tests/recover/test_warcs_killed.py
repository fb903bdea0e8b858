"""The WARCs of a recovery survive whoever writes them being killed at any point."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from threading import Timer

from tests.recover.sample_captures import body_of, opened
from tests.recover.test_warcs import checked
from tests.waiting import read_number
from unlost.recover import RecoveryRecord

ROOT = Path(__file__).parents[2]
KILLS = 90
A_FOLDER = 6  # so many of them in one folder, which every process finds as the one before it left it


def looked_at(folder: Path, place: Path) -> tuple[list[RecoveryRecord], int]:
    """Return the records that another run would adopt, and how many bytes it would cut off; the folder stays."""
    shutil.copytree(folder, place)
    warcs, records = opened(place)
    for record in records[-3:]:
        body_of(warcs, record)  # has the digest that the record says, or is refused
    warcs.close()
    assert not [path for path in place.iterdir() if not path.name.endswith(".warc.gz")]
    assert [kind for kind, _, _ in checked(place)].count("metadata") == len(records)
    shutil.rmtree(place)
    return records, warcs.truncated_bytes


def test_killed_at_any_point_nothing_that_was_stored_is_lost(tmp_path: Path) -> None:
    """While a file is begun, appended to, or ended: what `store` returned is there, and at most one more."""
    seed = 7_007
    drawn = random.Random(seed)  # noqa: S311
    stored = torn = 0
    starter = subprocess.Popen(
        [sys.executable, "-m", "tests.recover.store_until_killed"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with starter:
        assert starter.stdin
        for number in range(KILLS):
            folder, told = tmp_path / f"warc-{number // A_FOLDER}", tmp_path / f"told-{number // A_FOLDER}"
            if number % A_FOLDER == 0:
                before: list[RecoveryRecord] = []
            told.touch()
            # Two of three at a step, some of them the first: what was torn is then being cut off.
            step, delay = drawn.choice([0, drawn.randint(1, 4), drawn.randint(1, 25)]), drawn.uniform(0, 0.06)
            print(f"seed {seed}, point {number}: killed " + (f"at step {step}" if step else f"after {delay:.4f} s"))
            starter.stdin.write(f"{folder} {number} {told} {step}\n")
            starter.stdin.flush()
            process = read_number(starter, "process")
            if not step:
                Timer(delay, os.kill, (process, signal.SIGKILL)).start()
            assert read_number(starter, "ended") == -signal.SIGKILL
            if not folder.exists():
                continue
            records, cut = looked_at(folder, tmp_path / "copy")
            assert records[: len(before)] == before
            lines = [json.loads(line) for line in told.read_text().splitlines()]
            now = [[record.file, record.offset, record.size, record.capture.digest] for record in records]
            missed = [line for line in lines if line not in now]
            assert missed == []
            assert len(records) - len(before) <= len(lines) + 1 - sum(line in now[: len(before)] for line in lines)
            stored, torn, before = stored + len(records) - len(before), torn + (cut > 0), records
        starter.stdin.close()
    # It was at work, and some were killed in the middle of an append.
    assert stored > KILLS
    assert torn > KILLS / 5
