"""Directories for the user's files: `state/` and `cache/` in UNLOST_HOME, else the XDG directories."""

import os
from pathlib import Path


def state_folder() -> Path:
    """Return the directory for persistent state, which may not exist yet."""
    if home := os.environ.get("UNLOST_HOME"):
        return Path(home) / "state"
    base = os.environ.get("XDG_STATE_HOME") or str(Path("~/.local/state").expanduser())
    return Path(base) / "unlost"


def cache_folder() -> Path:
    """Return the directory for data that can be recreated, which may not exist yet."""
    if home := os.environ.get("UNLOST_HOME"):
        return Path(home) / "cache"
    base = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return Path(base) / "unlost"
