"""A report for programs: an object for each resource, then one with the numbers."""

from collections import Counter
from collections.abc import Mapping

from unlost import dates
from unlost.recover.report.figures import RecoveryStats
from unlost.recover.report.kinds import RESOURCE_KINDS
from unlost.recover.report.timeline import timeline_bars
from unlost.recover.state.ended import FinishedResource
from unlost.recover.summary import summary_row


def resource_json(ended: FinishedResource) -> dict[str, object]:
    """Return what the line of the summary has, by names, and of what is missing the reason. Raises DateError."""
    entry, chosen = summary_row(ended), ended.chosen
    return {
        "event": "resource",
        "outcome": "missing" if chosen is None else "recovered",
        "when": dates.to_iso(entry.when),
        "uri": entry.uri,
        "mime": entry.mime,
        "file": entry.file,
        "archive": entry.archive,
        "datetime": entry.datetime,
        "others": dict(entry.others),
        "reason": ended.reason if chosen is None else None,
        "status": None if chosen is None else chosen.status,
        "urim": None if chosen is None else chosen.urim,
        "doubtful": ended.doubtful_kind,
        "substitute": ended.substitute,
    }


def summary_json(stats: RecoveryStats) -> dict[str, object]:
    """Return the numbers, by names."""
    types, (_, others) = stats.top_types()
    return {
        "event": "summary",
        "url": stats.url,
        "resources": {
            "recovered": stats.recovered,
            "missing": stats.missing,
            "queued": stats.queued,
            "listed": stats.listed,
            "doubtful": stats.doubtful,
            "substituted": stats.substituted,
            "missing_listed": stats.missing - stats.never_archived,
            "never_archived": stats.never_archived,
            "left_out": sum(stats.skipped.values()),
        },
        "left_out": {reason or "not-linked": count for reason, count in sorted(stats.skipped.items())},
        "other_host_lookups": stats.other_host_lookups,
        "share": stats.share,
        "pages": _recovered_and_missing(stats.pages),
        "parts": _recovered_and_missing(stats.requisites),
        "kinds": {kind: stats.kinds[kind] for kind in RESOURCE_KINDS if stats.kinds[kind]},
        "types": dict(types),
        "other_types": others,
        "reasons": _sorted_counts(stats.reasons),
        "rejected": _sorted_counts(stats.rejected),
        "archives": {name: _archive_json(stats, name) for name in stats.archive_ids()},
        "copies": {"first": stats.first, "last": stats.last},
        "came": {"first": stats.started, "last": stats.ended},
        "timeline": {bar.label: bar.count for bar in timeline_bars(stats.months)},
        "requests": stats.requests if stats.requests_by_archive else None,
        "not_followed": dict(sorted(stats.skipped_links.items())),
    }


def _archive_json(stats: RecoveryStats, name: str) -> dict[str, object]:
    return {
        "recovered": stats.archives[name],
        "also_listed": stats.also_listed[name],
        "rejected": stats.rejected_by[name],
        "requests": stats.requests_by_archive.get(name, 0),
        "captures": stats.captures.get(name, 0),
        "queries": dict(stats.queries.get(name, {})),
        "lists": dict(Counter(outcome for archive, outcome, _ in stats.listings if archive == name)),
    }


def _recovered_and_missing(counts: list[int]) -> dict[str, int]:
    return dict(zip(("recovered", "missing"), counts, strict=True))


def _sorted_counts(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items()))
