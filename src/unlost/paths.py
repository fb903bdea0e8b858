"""Paths of the user's own files: `state/` and `cache/` in UNLOST_HOME, else the XDG folders."""

import os
from pathlib import Path


def state_folder() -> Path:
    """Return the folder for what must outlive a command: in UNLOST_HOME, else the XDG one. It need not exist."""
    if home := os.environ.get("UNLOST_HOME"):
        return Path(home) / "state"
    base = os.environ.get("XDG_STATE_HOME") or str(Path("~/.local/state").expanduser())
    return Path(base) / "unlost"


def cache_folder() -> Path:
    """Return the folder for what can be made again: in UNLOST_HOME, else the XDG one. It need not exist."""
    if home := os.environ.get("UNLOST_HOME"):
        return Path(home) / "cache"
    base = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return Path(base) / "unlost"
