"""A check as JSON."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from unlost.measure.availability.figures import CheckStats
from unlost.measure.availability.standing import ResourceAvailability
from unlost.measure.availability.states import AvailabilityState
from unlost.measure.availability.wording import describe_advice
from unlost.measure.intervals import wilson_interval
from unlost.measure.visits.present import ListingResult


def availability_to_json(standing: ResourceAvailability) -> dict[str, object]:
    """Return what is known of one resource. Days are numbers, dates 14 digits; null where nobody can tell."""
    live = standing.live
    return {
        "uri": live.uri,
        "state": standing.state.value,
        "outcome": live.outcome.value,
        "status": live.status,
        "mime": live.mime,
        "last_modified": live.last_modified,
        "hops": live.hops,
        "in_sitemap": live.is_in_sitemap,
        "noarchive": live.is_noarchive,
        "captures": standing.copies,
        "last_stored": standing.last_capture,
        "stale_days": standing.stale_days,
        "migrated": standing.is_migrated,
        "same": standing.is_same,
        "verdict": standing.verdict,
        "archives": {
            each.archive: {"captures": each.copies, "first": each.first, "last": each.last, "migrated": each.migrated}
            for each in standing.held
        },
    }


def check_to_json(
    url: str, now: str, figures: CheckStats, lists: Sequence[ListingResult], left_over: Mapping[str, str]
) -> dict[str, object]:
    """Return what is known of all of them together."""
    score = figures.score
    return {
        "checked": url,
        "at": now,
        "states": _states_to_json(figures.states),
        "score": score.share,
        "interval": None if score.interval is None else list(score.interval),
        "live": score.live,
        "asked_one_by_one": score.sampled,
        "canonical": figures.canonical,
        "migrated": figures.migrated,
        "same": figures.same,
        "staleness": asdict(figures.stale),
        "held_by": {str(number): count for number, count in sorted(figures.by_archives.items())},
        "judged": {
            "count": figures.bad.total(),
            "of": figures.judged,
            "pages": figures.judgeable,
            "interval": list(wilson_interval(figures.bad.total(), figures.judged, figures.judgeable)),
        },
        "bad": dict(figures.bad),
        "archives": [asdict(use) for use in figures.archives],
        "tables": {
            table.name: [{"label": row.label, "share": row.share, **_states_to_json(row.states)} for row in table.rows]
            for table in figures.tables
        },
        "advice": [
            {
                "hindrance": None if each.hindrance is None else each.hindrance.value,
                "affected": each.affected,
                "saved": each.saved,
                "examples": list(each.examples),
                "words": describe_advice(each),
            }
            for each in figures.advice
        ],
        "lists": [asdict(each) for each in lists],
        "left_over": dict(left_over),
    }


def _states_to_json(states: Counter[AvailabilityState]) -> dict[str, int]:
    return {state.value: states[state] for state in AvailabilityState}
