"""Resources for tests about checks."""

# ruff: noqa: ANN401  the fields of resources, by their names

from typing import Any

from unlost import uri
from unlost.crawl.resource import LiveResource, Outcome
from unlost.measure.availability.standing import Held, Standing

NOW = "20260601000000"


def live(path: str = "", status: int | None = 200, **more: Any) -> LiveResource:
    """Return a resource of the site of the tests; linked from its first page, and old."""
    address = f"http://site.example/{path}"
    told: dict[str, Any] = {"mime": "text/html", "hops": 1, "last_modified": "20200101000000", **more}
    outcome = told.pop("outcome", Outcome.FETCHED)
    return LiveResource(address, uri.key(address), outcome, status, **told)


def held(archive: str = "a", last: str = "20250101000000", copies: int = 1, **more: Any) -> Held:
    """Return what an archive has."""
    return Held(archive, copies, "20200101000000", last, **more)


def standing(path: str = "", *archives: str, is_settled: bool = True, **more: Any) -> Standing:
    """Return a resource that these archives have."""
    return Standing(live(path, **more), tuple(held(name) for name in archives), is_settled)
