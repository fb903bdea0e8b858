"""`mementomap`, the published reference of MementoMaps, as a process of its own environment.

Its keys are spelled without the slash at the end, also those of roots: `com,a)`.
"""

import re
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMAND = ROOT / ".neighbours" / "mementomap" / "bin" / "mementomap"


def _run(*arguments: str | Path) -> str:
    if not COMMAND.exists():
        raise FileNotFoundError(f"{COMMAND}: run `make test`, which installs it")
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=True)
    # It prints its help and ends with 0 whatever goes wrong.
    if "usage:" in done.stdout:
        raise RuntimeError(f"mementomap {arguments[0]} failed")
    return done.stdout


def compact(lines: list[str], host_weight: float, path_weight: float, folder: Path) -> list[str]:
    """Return the lines that it makes of a map's lines."""
    source, output = folder / "reference-in.ukvs", folder / "reference-out.ukvs"
    source.write_text("".join(line + "\n" for line in lines))
    said = _run("compact", source, output, "--hcf", str(host_weight), "--pcf", str(path_weight))
    if not re.fullmatch(r"(\d+ ){4}\d+\n", said):
        raise RuntimeError(f"expected five numbers, found {said[:80]!r}")
    return output.read_text().splitlines()


def lookup(lines: list[str], keys: list[str], folder: Path) -> dict[str, tuple[str, str]]:
    """Return the matched key and the frequency of every key that it finds in a map's lines."""
    source, batch = folder / "reference-map.ukvs", folder / "reference-keys.txt"
    # Its search never sees the first line and fails at the last: these stand in for both.
    fence = [["!first 1"], [f"~last{n},{'x' * 40}) 1" for n in range(4)]]
    source.write_text("".join(line + "\n" for line in [*fence[0], *lines, *fence[1]]))
    batch.write_text("".join(key + "\n" for key in keys))
    found = (line.split(" ") for line in _run("batchlookup", source, batch).splitlines())
    return {key: (matched, frequency) for matched, frequency, _, key in found}


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
