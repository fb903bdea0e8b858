"""Helpers that read a Chromium cache folder in any format."""

from collections import Counter
from pathlib import Path

from unlost.archives import CachedResponse, open_chromium_content, read_chromium_responses
from unlost.problems import Problems


def read(folder: Path) -> tuple[list[CachedResponse], Problems, Counter[str]]:
    """Read a folder."""
    problems, left_out = Problems(), Counter[str]()
    return list(read_chromium_responses(folder, problems, left_out)), problems, left_out


def body(folder: Path, response: CachedResponse) -> bytes:
    """Return the body of a response."""
    content = open_chromium_content(folder, response)
    assert content is not None
    return b"".join(content.chunks)
