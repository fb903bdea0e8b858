"""What every index server is asked in the same words."""

from urllib.parse import quote

from unlost.archives.archive import Archive, Work
from unlost.archives.asking.question import Question
from unlost.archives.prefix import Prefix
from unlost.errors import UnsupportedError

MAX_ANSWER_BYTES = 1 << 29
"""Of one page of rows, uncompressed; it is kept on disk. 150,000 rows with the longest usual addresses need a tenth."""

ROWS_AT_ONCE = 256
"""After so many rows everything else that runs gets its turn."""


def listed_prefix(archive: Archive, text: str) -> Prefix:
    """Return how an archive's lister is asked for a prefix. Raises UriError, and UnsupportedError if it cannot be."""
    prefix = Prefix.below(text)
    found = prefix.for_lister(archive.lister.matches) if archive.lister else None
    if found is None:
        raise UnsupportedError(f"it does not list a whole {prefix.match}", archive.id)
    return found


def question(archive: Archive, prefix: Prefix, dates_asked: tuple[str | None, str | None], **more: str) -> Question:
    """Return a query of an archive's index server. Raises UnsupportedError if it has none.

    more: further parameters. `url` stands first, percent-encoded, since addresses have parameters themselves.
    """
    if archive.cdx is None:
        raise UnsupportedError("it has no index server", archive.id)
    first, last = dates_asked
    parameters = {"url": prefix.address, "matchType": prefix.match, "output": "json"}
    parameters |= {"from": first} if first else {}
    parameters |= {"to": last} if last else {}
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in (parameters | more).items())
    return Question(f"{archive.cdx}?{query}", Work.INDEX, max_bytes=MAX_ANSWER_BYTES)
