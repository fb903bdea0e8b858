"""Maps opened from a file or loaded into memory."""

from collections.abc import Callable
from pathlib import Path

import pytest

from unlost.mementomap import Map

FORMS = pytest.mark.parametrize("form", [Map.open, Map.load], ids=["file", "memory"])
Form = Callable[[Path], Map]


def open_map(folder: Path, text: str | bytes, form: Form = Map.open) -> Map:
    """Write a map and open it."""
    file = folder / "a.ukvs"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return form(file)
