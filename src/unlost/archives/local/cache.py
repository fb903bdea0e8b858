"""Where files are kept that can be made again: the user's cache folder."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return `cache/` in UNLOST_HOME, else `unlost/` in the XDG folder for caches, whether or not it exists."""
    if home := os.environ.get("UNLOST_HOME"):
        return Path(home) / "cache"
    base = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return Path(base) / "unlost"
