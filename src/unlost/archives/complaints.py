"""What archives gave that could not be read."""

from unlost.archives.repository import ArchiveClient
from unlost.formats.problems import Problems

_EXPECTED_KINDS = {"foreign-scheme", "elsewhere", "other-date", "fuzzy"}
"""Rows that can be read, and were not asked for: every archive gives some."""


async def collect_problems(client: ArchiveClient) -> Problems:
    """Return what of an archive's answers, or of the files of one on this machine, could not be read, so far."""
    found = getattr(client, "problems", None)
    if callable(found):  # of files they are kept in an index, which is asked
        found = await found()
    complaints = Problems()
    if isinstance(found, Problems):
        for kind, count in found.counts.items():
            if kind not in _EXPECTED_KINDS:
                complaints.add(found.first[kind], count)
    return complaints
