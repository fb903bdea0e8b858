"""Folders that are made for what is written into them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unlost.errors import InputError


@contextmanager
def ensure_directory(folder: Path) -> Iterator[None]:
    """Make a folder; where nothing came to be in it, take it away again. Raises InputError where a file is, OSError."""
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InputError(
            f"{folder}: cannot be made a folder: a file is there, or above it: give another name"
        ) from None
    try:
        yield
    finally:
        if is_new and not any(folder.iterdir()):
            folder.rmdir()
