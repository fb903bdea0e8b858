"""Which archives are asked, and why or why not: for people and for programs."""

from collections.abc import Sequence

from unlost._core import VERSION
from unlost.clock import Clock
from unlost.dates import from_epoch, to_iso
from unlost.service.standing import ArchiveStatus


def describe_archives(statuses: Sequence[ArchiveStatus], clock: Clock, *, is_public: bool = False) -> dict[str, object]:
    """Return everything as JSON has it: times as ISO 8601, ages and waits in seconds, shares from 0 to 1.

    is_public: of failures, only the kind: messages may have URLs that users looked up, and paths of files.
    """
    now = clock.now()
    return {
        "name": "unlost",
        "version": VERSION,
        "time": _format_time(now),
        "archives": [_describe_archive(each, now, is_public=is_public) for each in statuses],
    }


def _describe_archive(status: ArchiveStatus, now: float, *, is_public: bool) -> dict[str, object]:
    archive = status.archive
    failure = status.failure
    if failure is not None and is_public:
        failure = failure.partition(":")[0]
    found: dict[str, object] = {
        "id": archive.id,
        "name": archive.name,
        "kind": str(archive.kind),
        "asked": status.is_queried,
        "why": status.reason,
        "breaker": status.breaker,
        "last_failure": failure,
        "seconds_until_asked": round(status.retry_at - now) if status.retry_at and status.retry_at > now else None,
        "hit_rate": status.hit_rate,
        "map": None,
        "routed": {"asked": status.routed, "hits": status.routed_hits},
        "explored": {"asked": status.explored, "hits": status.explored_hits},
        "precision": _share(status.routed_hits, status.routed),
        "wrong_refusals": _share(status.explored_hits, status.explored),
    }
    if status.has_map:
        made = status.map_created
        found["map"] = {
            "made": None if made is None else _format_time(made),
            "age_seconds": None if made is None else max(0, round(now - made)),
            "checked": None if status.map_checked is None else _format_time(status.map_checked),
        }
    return found


def _format_time(seconds: float) -> str:
    return to_iso(from_epoch(str(int(seconds))))


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
