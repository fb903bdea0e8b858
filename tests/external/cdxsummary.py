"""Runs `cdxsummary`, which summarises CDX files, in its own environment."""

import json
import subprocess
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).parents[2] / ".neighbours" / "cdxsummary" / "bin" / "cdxsummary"


def summarize(file: Path) -> dict[str, Any]:
    """Return its summary of a CDX file."""
    if not PROGRAM.exists():
        raise FileNotFoundError(f"{PROGRAM}: run `make test`, which installs it")
    done = subprocess.run([PROGRAM, "--json", file], capture_output=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found
