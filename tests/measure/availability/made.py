"""Resources for tests about checks."""

# ruff: noqa: ANN401  the fields of resources, by their names

from typing import Any

from unlost import uri
from unlost.check.availability import ArchiveHolding, ResourceAvailability
from unlost.crawl.models import CrawlOutcome, LiveResource

NOW = "20260601000000"


def live(path: str = "", status: int | None = 200, **more: Any) -> LiveResource:
    """Return a resource of the site of the tests; linked from its first page, and old."""
    address = f"http://site.example/{path}"
    told: dict[str, Any] = {"mime": "text/html", "hops": 1, "last_modified": "20200101000000", **more}
    outcome = told.pop("outcome", CrawlOutcome.FETCHED)
    return LiveResource(address, uri.key(address), outcome, status, **told)


def held(archive: str = "a", last: str = "20250101000000", copies: int = 1, **more: Any) -> ArchiveHolding:
    """Return what an archive has."""
    return ArchiveHolding(archive, copies, "20200101000000", last, **more)


def standing(path: str = "", *archives: str, is_settled: bool = True, **more: Any) -> ResourceAvailability:
    """Return a resource that these archives have."""
    return ResourceAvailability(live(path, **more), tuple(held(name) for name in archives), is_settled)
