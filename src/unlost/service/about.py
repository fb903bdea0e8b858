"""Which archives are asked, and why or why not: for people and for programs."""

from collections.abc import Sequence

from unlost._core import VERSION
from unlost.clock import Clock
from unlost.dates import from_epoch, to_iso
from unlost.service.standing import Standing


def about(standings: Sequence[Standing], clock: Clock, *, is_public: bool = False) -> dict[str, object]:
    """Return everything as JSON has it: times as ISO 8601, ages and waits in seconds, shares from 0 to 1.

    is_public: of failures, only the kind: messages may have URLs that users looked up, and paths of files.
    """
    now = clock.now()
    return {
        "name": "unlost",
        "version": VERSION,
        "time": _iso(now),
        "archives": [_archive(each, now, is_public=is_public) for each in standings],
    }


def _archive(standing: Standing, now: float, *, is_public: bool) -> dict[str, object]:
    archive = standing.archive
    failure = standing.failure
    if failure is not None and is_public:
        failure = failure.partition(":")[0]
    found: dict[str, object] = {
        "id": archive.id,
        "name": archive.name,
        "kind": str(archive.kind),
        "asked": standing.asked,
        "why": standing.why,
        "breaker": standing.breaker,
        "last_failure": failure,
        "seconds_until_asked": round(standing.until - now) if standing.until and standing.until > now else None,
        "hit_rate": standing.hit_rate,
        "map": None,
        "routed": {"asked": standing.routed, "hits": standing.routed_hits},
        "explored": {"asked": standing.explored, "hits": standing.explored_hits},
        "precision": _share(standing.routed_hits, standing.routed),
        "wrong_refusals": _share(standing.explored_hits, standing.explored),
    }
    if standing.has_map:
        made = standing.map_made
        found["map"] = {
            "made": None if made is None else _iso(made),
            "age_seconds": None if made is None else max(0, round(now - made)),
            "checked": None if standing.map_checked is None else _iso(standing.map_checked),
        }
    return found


def _iso(seconds: float) -> str:
    return to_iso(from_epoch(str(int(seconds))))


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
