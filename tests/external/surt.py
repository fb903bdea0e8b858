"""Runs `surt`, the package that made the keys of most indexes, in its own environment."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".neighbours" / "surt" / "bin" / "python"


def compute_surts(urls: list[str]) -> tuple[list[str], float]:
    """Return the result of `surt` for each URL (`! Name` of an exception), and the seconds of its loop."""
    if not PYTHON.exists():
        raise FileNotFoundError(f"{PYTHON}: run `make test`, which installs it")
    done = subprocess.run(
        [PYTHON, "-I", Path(__file__).with_name("surt_lines.py")],  # isolated: this folder has a surt.py too
        input="\n".join(urls).encode(),
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().split("\n"), float(done.stderr)
