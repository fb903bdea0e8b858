"""Resources of a recovery as TSV and JSON, and its statistics as JSON.

A new report column is a field of `SummaryRow` here.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

from unlost import dates
from unlost.recovery.state.queries import FinishedResource
from unlost.report.recovery.stats import RESOURCE_KINDS, RecoveryStats, timeline_bars

MISSING = "MISSING"


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """The summary of one resource.

    Attributes:
        when: When it was recovered or found missing, 14 digits.
        uri: Its URL.
        mime: Media type.
        file: WARC file in the folder of the recovery, and offset of the record. None if missing, like the next two.
        archive: Id of the archive.
        datetime: Datetime of the capture, 14 digits.
        others: Other archives that list it, with the datetimes of their last captures.
    """

    when: str
    uri: str
    mime: str | None
    file: str | None
    archive: str | None
    datetime: str | None
    others: tuple[tuple[str, str], ...]

    def to_tsv(self) -> str:
        """Return the fields separated by tabs; for a missing resource, time, URL and `MISSING`."""
        when = dates.to_iso(self.when)
        if self.archive is None:
            return "\t".join((when, escape_field(self.uri), MISSING))
        others = ",".join(f"{archive}:{datetime}" for archive, datetime in self.others)
        fields = (
            when,
            self.uri,
            self.mime or "-",
            self.file or "-",
            self.archive,
            self.datetime or "-",
            others,
        )
        return "\t".join(map(escape_field, fields))


class FinishedResources(Protocol):
    """A database of a recovery, opened for writing or reading."""

    def finished_resources(self) -> Iterator[FinishedResource]:
        """Yield recovered and missing resources."""


def summary_rows(state: FinishedResources) -> Iterator[SummaryRow]:
    """Yield all recovered and missing resources in order of discovery."""
    return map(summary_row, state.finished_resources())


def summary_row(resource: FinishedResource) -> SummaryRow:
    """Return the summary of a resource."""
    chosen = resource.chosen
    if chosen is None:
        return SummaryRow(resource.finished_at, resource.uri, None, None, None, None, resource.holders)
    others = tuple(each for each in resource.holders if each[0] != (chosen.archive or ""))
    location = f"warc/{chosen.file}:{chosen.offset}"
    uri = chosen.uri if resource.substitute is None else resource.uri
    return SummaryRow(chosen.recovered, uri, chosen.mime, location, chosen.archive, chosen.datetime, others)


def escape_field(text: str) -> str:
    """Percent-encode the characters of a TSV field that are not printable, such as tabs and control characters."""
    if text.isprintable():  # nearly always, and five times as fast
        return text
    return "".join(char if char.isprintable() else _percent_encode(char) for char in text)


def _percent_encode(char: str) -> str:
    try:
        return quote(char, errors="surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate that does not represent a byte
        return quote(char, errors="surrogatepass")


def resource_json(resource: FinishedResource) -> dict[str, object]:
    """Return a resource as JSON, with the fields of the summary, and the reason if it is missing. Raises DateError."""
    row, chosen = summary_row(resource), resource.chosen
    return {
        "event": "resource",
        "outcome": "missing" if chosen is None else "recovered",
        "when": dates.to_iso(row.when),
        "uri": row.uri,
        "mime": row.mime,
        "file": row.file,
        "archive": row.archive,
        "datetime": row.datetime,
        "others": dict(row.others),
        "reason": resource.reason if chosen is None else None,
        "status": None if chosen is None else chosen.status,
        "urim": None if chosen is None else chosen.urim,
        "doubtful": resource.doubtful_kind,
        "substitute": resource.substitute,
    }


def recovery_summary_json(stats: RecoveryStats) -> dict[str, object]:
    """Return the statistics as JSON."""
    types, (_, other_types) = stats.top_types()
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
        "other_types": other_types,
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
