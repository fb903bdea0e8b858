"""Resources for tests of checks."""

# ruff: noqa: ANN401  the fields of resources, by their names

from typing import Any

from unlost import uri
from unlost.check import ArchiveHolding, ResourceAvailability
from unlost.crawl import CrawlOutcome, LiveResource

NOW = "20260601000000"


def live_resource(path: str = "", status: int | None = 200, **more: Any) -> LiveResource:
    """Return an old resource of the site that its first page links to."""
    url = f"http://site.example/{path}"
    fields: dict[str, Any] = {"mime": "text/html", "hops": 1, "last_modified": "20200101000000", **more}
    outcome = fields.pop("outcome", CrawlOutcome.FETCHED)
    return LiveResource(url, uri.key(url), outcome, status, **fields)


def archive_captures(archive: str = "a", last: str = "20250101000000", copies: int = 1, **more: Any) -> ArchiveHolding:
    """Return the captures of an archive."""
    return ArchiveHolding(archive, copies, "20200101000000", last, **more)


def availability(path: str = "", *archives: str, is_settled: bool = True, **more: Any) -> ResourceAvailability:
    """Return a resource that these archives have."""
    return ResourceAvailability(
        live_resource(path, **more), tuple(archive_captures(name) for name in archives), is_settled
    )
