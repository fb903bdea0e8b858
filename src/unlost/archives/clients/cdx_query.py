"""What every index server is asked in the same words."""

from urllib.parse import quote

from unlost.archives.archive import Archive, RequestKind
from unlost.archives.asking.question import HttpRequest
from unlost.archives.prefix import PrefixQuery
from unlost.errors import UnsupportedError

MAX_RESPONSE_BYTES = 1 << 29
"""Of one page of rows, uncompressed; it is kept on disk. 150,000 rows with the longest usual addresses need a tenth."""

ROWS_PER_YIELD = 256
"""After so many rows everything else that runs gets its turn."""


def supported_prefix(archive: Archive, text: str) -> PrefixQuery:
    """Return how an archive's lister is asked for a prefix. Raises UriError, and UnsupportedError if it cannot be."""
    prefix = PrefixQuery.parse(text)
    found = prefix.adapted_to(archive.lister.matches) if archive.lister else None
    if found is None:
        raise UnsupportedError(f"it does not list a whole {prefix.match}", archive.id)
    return found


def build_query(
    archive: Archive, prefix: PrefixQuery, date_range: tuple[str | None, str | None], **more: str
) -> HttpRequest:
    """Return a query of an archive's index server. Raises UnsupportedError if it has none.

    more: further parameters. `url` stands first, percent-encoded, since addresses have parameters themselves.
    """
    if archive.cdx is None:
        raise UnsupportedError("it has no index server", archive.id)
    first, last = date_range
    parameters = {"url": prefix.url, "matchType": prefix.match, "output": "json"}
    parameters |= {"from": first} if first else {}
    parameters |= {"to": last} if last else {}
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in (parameters | more).items())
    return HttpRequest(f"{archive.cdx}?{query}", RequestKind.INDEX, max_bytes=MAX_RESPONSE_BYTES)
