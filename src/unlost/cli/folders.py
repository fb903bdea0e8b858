"""Folders that commands make for what they write."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def made(folder: Path) -> Iterator[None]:
    """Make a folder; where nothing came to be in it, take it away again. Raises OSError."""
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        if is_new and not any(folder.iterdir()):
            folder.rmdir()
