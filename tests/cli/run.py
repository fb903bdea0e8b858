"""The command line as its users run it: a process."""

import os
import subprocess
import sys
from pathlib import Path

UNLOST = Path(sys.executable).with_name("unlost")


def unlost(
    *arguments: str | bytes, stdin: bytes = b"", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run `unlost` with no settings but those given, and the home of the test; stdout and stderr are bytes."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("UNLOST_", "XDG_"))}
    environment |= {"UNLOST_HOME": os.environ["UNLOST_HOME"], "PYTHONUTF8": "1", **(env or {})}
    return subprocess.run(
        [UNLOST, *arguments], input=stdin, capture_output=True, check=False, env=environment, timeout=60
    )
