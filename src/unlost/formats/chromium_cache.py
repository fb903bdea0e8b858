"""Chromium's cache, in any of the three forms in which it is stored: what is kept in it, and bodies.

docs/browser-caches.md says what is read and lists the kinds of problems.
"""

import re
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path

from unlost.formats import chromium_blockfile, chromium_simple, chromium_sql
from unlost.formats.chromium_entry import ChromiumEntry
from unlost.formats.kept import CachedContent, CachedResponse
from unlost.formats.problems import Problem, Problems

_CACHE_FORMATS: tuple[tuple[re.Pattern[str], Callable[[Path, str], ChromiumEntry | None]], ...] = (
    (chromium_simple.SIMPLE_FILE_NAME, chromium_simple.read_simple_entry),
    (chromium_blockfile.BLOCK_FILE_NAME, chromium_blockfile.read_blockfile_entry),
    (chromium_sql.SQL_FILE_NAME, chromium_sql.read_sql_entry),
)


def chromium_data_folder(folder: Path) -> Path:
    """Return the folder of the entries: itself, or the one in a `Cache`, a profile, or a folder of profiles."""
    for below in ("Cache_Data", "Cache/Cache_Data", "Default/Cache/Cache_Data"):
        if (folder / below).is_dir():
            return folder / below
    return folder


def read_chromium_responses(
    folder: Path, problems: Problems, left_out: Counter[str]
) -> Generator[CachedResponse, None, None]:
    """Yield every whole response to a GET in a folder of entries, in no order.

    problems: gets every entry that cannot be read. left_out: gets how many entries were not wanted: `other-method`,
    `part` (ranges, and bodies that the browser did not get to the end of), `foreign-scheme` (extensions and the like).
    Nothing is held in memory but one entry's head. An entry that vanishes meanwhile is passed over. Raises OSError if
    the folder cannot be read.
    """
    for read in (
        chromium_simple.read_simple_entries,
        chromium_blockfile.read_blockfile_entries,
        chromium_sql.read_sql_entries,
    ):
        for entry in read(folder, problems):
            response = _accept_entry(entry, problems, left_out)
            if response is not None:
                yield response


def open_chromium_content(folder: Path, response: CachedResponse) -> CachedContent | None:
    """Return what is stored now for a response of `read_responses`; None if it is gone, or became a part.

    Raises ArchiveFileError if the entry is damaged, OSError if it cannot be read.
    """
    for name, read in _CACHE_FORMATS:
        if name.fullmatch(response.filename.partition("#")[0]):
            entry = read(folder, response.filename)
            if entry is None:
                return None
            now = _accept_entry(entry, Problems(), Counter())
            if now is None or now.uri != response.uri:
                return None
            return CachedContent(now, entry.info.headers, entry.coding, entry.chunks())
    return None


def _accept_entry(entry: ChromiumEntry, problems: Problems, left_out: Counter[str]) -> CachedResponse | None:
    reason = entry.exclusion_reason()
    if reason is not None:
        left_out[reason] += 1
        return None
    response = entry.to_response()
    if response is None:
        message = "expected the time of a response, found none that a calendar has"
        problems.add(Problem("bad-date", entry.filename, None, 0, message))
    return response
