"""Resources for tests about checks."""

from unlost import uri
from unlost.crawl.resource import LiveResource, Outcome
from unlost.measure.availability.standing import Held, Standing

NOW = "20260601000000"


def live(path: str = "", status: int = 200, **more: object) -> LiveResource:
    """Return a resource of the site of the tests; linked from its first page, and old."""
    address = f"http://site.example/{path}"
    told: dict[str, object] = {"mime": "text/html", "hops": 1, "last_modified": "20200101000000", **more}
    outcome = told.pop("outcome", Outcome.FETCHED)
    return LiveResource(address, uri.key(address), outcome, status, **told)  # type: ignore[arg-type]


def held(archive: str = "a", last: str = "20250101000000", copies: int = 1, **more: object) -> Held:
    """Return what an archive has."""
    return Held(archive, copies, "20200101000000", last, **more)  # type: ignore[arg-type]


def standing(path: str = "", *archives: str, is_settled: bool = True, **more: object) -> Standing:
    """Return a resource that these archives have."""
    return Standing(live(path, **more), tuple(held(name) for name in archives), is_settled)  # type: ignore[arg-type]
