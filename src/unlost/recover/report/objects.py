"""A report for programs: an object for each resource, then one with the numbers."""

from collections import Counter
from collections.abc import Mapping

from unlost import dates
from unlost.recover.report.figures import Figures
from unlost.recover.report.kinds import ORDER
from unlost.recover.report.timeline import bars
from unlost.recover.state.ended import Ended
from unlost.recover.summary import entry_of


def resource_object(ended: Ended) -> dict[str, object]:
    """Return what the line of the summary has, by names, and of what is missing the reason. Raises DateError."""
    entry, chosen = entry_of(ended), ended.chosen
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
        "doubtful": ended.doubt,
        "substitute": ended.substitute,
    }


def summary_object(figures: Figures) -> dict[str, object]:
    """Return the numbers, by names."""
    types, (_, others) = figures.most_types()
    return {
        "event": "summary",
        "url": figures.url,
        "resources": {
            "recovered": figures.recovered,
            "missing": figures.missing,
            "queued": figures.queued,
            "listed": figures.listed,
            "doubtful": figures.doubtful,
            "substituted": figures.substituted,
            "missing_listed": figures.missing - figures.never_archived,
            "never_archived": figures.never_archived,
            "left_out": sum(figures.left_out.values()),
        },
        "left_out": {reason or "not-linked": count for reason, count in sorted(figures.left_out.items())},
        "other_host_lookups": figures.other_host_lookups,
        "share": figures.share,
        "pages": _back_and_missing(figures.pages),
        "parts": _back_and_missing(figures.parts),
        "kinds": {kind: figures.kinds[kind] for kind in ORDER if figures.kinds[kind]},
        "types": dict(types),
        "other_types": others,
        "reasons": _sorted(figures.reasons),
        "rejected": _sorted(figures.rejected),
        "archives": {name: _archive(figures, name) for name in figures.archive_ids()},
        "copies": {"first": figures.first, "last": figures.last},
        "came": {"first": figures.begun, "last": figures.ended},
        "timeline": {bar.label: bar.count for bar in bars(figures.months)},
        "requests": figures.requests if figures.asked else None,
        "not_followed": dict(sorted(figures.trapped.items())),
    }


def _archive(figures: Figures, name: str) -> dict[str, object]:
    return {
        "recovered": figures.archives[name],
        "also_listed": figures.also[name],
        "rejected": figures.rejected_by[name],
        "requests": figures.asked.get(name, 0),
        "captures": figures.captures.get(name, 0),
        "queries": dict(figures.queries.get(name, {})),
        "lists": dict(Counter(outcome for archive, outcome, _ in figures.lists if archive == name)),
    }


def _back_and_missing(counts: list[int]) -> dict[str, int]:
    return dict(zip(("recovered", "missing"), counts, strict=True))


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items()))
