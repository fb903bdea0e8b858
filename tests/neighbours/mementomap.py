"""`mementomap`, the published reference, as a process of its own environment."""

import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMAND = ROOT / ".neighbours" / "mementomap" / "bin" / "mementomap"


def batch_lookup(file: Path, surts: Path) -> tuple[list[str], float]:
    """Return the keys that matched, each with the SURT that was asked for, and the seconds that the process took.

    It leaves out what it does not find, and stops without a word where it fails: past the last row, for one.
    """
    if not COMMAND.exists():
        raise FileNotFoundError(f"{COMMAND}: run `make test`, which installs it")
    start = time.perf_counter()
    done = subprocess.run([COMMAND, "batchlookup", file, surts], capture_output=True, check=True)
    seconds = time.perf_counter() - start
    found = [line.split(" ") for line in done.stdout.decode().splitlines()]
    return [f"{line[3]} {line[0]}" for line in found if len(line) == 4], seconds
