"""Runs `mementomap`, the published reference implementation, in its own environment.

Its keys have no final slash, also those of hosts: `com,a)`.
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
    # On any error it prints its help and exits with 0.
    if "usage:" in done.stdout:
        raise RuntimeError(f"mementomap {arguments[0]} failed")
    return done.stdout


def compact(lines: list[str], host_weight: float, path_weight: float, folder: Path) -> list[str]:
    """Return its compacted lines of a map."""
    source, output = folder / "reference-in.ukvs", folder / "reference-out.ukvs"
    source.write_text("".join(line + "\n" for line in lines))
    output_line = _run("compact", source, output, "--hcf", str(host_weight), "--pcf", str(path_weight))
    if not re.fullmatch(r"(\d+ ){4}\d+\n", output_line):
        raise RuntimeError(f"expected five numbers, found {output_line[:80]!r}")
    return output.read_text().splitlines()


def lookup(lines: list[str], keys: list[str], folder: Path) -> dict[str, tuple[str, str]]:
    """Return matched key and frequency of every key that it finds in the lines of a map."""
    source, batch = folder / "reference-map.ukvs", folder / "reference-keys.txt"
    # Its search skips the first line and fails at the last: these rows avoid both.
    sentinels = [["!first 1"], [f"~last{n},{'x' * 40}) 1" for n in range(4)]]
    source.write_text("".join(line + "\n" for line in [*sentinels[0], *lines, *sentinels[1]]))
    batch.write_text("".join(key + "\n" for key in keys))
    found = (line.split(" ") for line in _run("batchlookup", source, batch).splitlines())
    return {key: (matched, frequency) for matched, frequency, _, key in found}


def batch_lookup(file: Path, surts: Path) -> tuple[list[str], float]:
    """Return the matched keys with their queried SURTs, and the seconds of the process.

    It omits keys that it does not find, and stops silently on errors, for example after the last row.
    """
    if not COMMAND.exists():
        raise FileNotFoundError(f"{COMMAND}: run `make test`, which installs it")
    start = time.perf_counter()
    done = subprocess.run([COMMAND, "batchlookup", file, surts], capture_output=True, check=True)
    seconds = time.perf_counter() - start
    found = [line.split(" ") for line in done.stdout.decode().splitlines()]
    return [f"{line[3]} {line[0]}" for line in found if len(line) == 4], seconds
