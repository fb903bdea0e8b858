"""A recovery's resources as TSV and JSON, and its statistics as JSON."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

from unlost import dates
from unlost.recover.state.queries import FinishedResource
from unlost.report.recovery.stats import RESOURCE_KINDS, RecoveryStats
from unlost.report.recovery.timeline import timeline_bars

MISSING = "MISSING"


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One resource.

    when: it was recovered, or found missing, 14 digits. others: archives that list it, too, with their last dates.
    file: the WARC, in the folder of the recovery, and the byte at which the record begins. None all, if it is missing.
    """

    when: str
    uri: str
    mime: str | None
    file: str | None
    archive: str | None
    datetime: str | None
    others: tuple[tuple[str, str], ...]

    def to_tsv(self) -> str:
        """Return its fields with tabs between them; of a missing one, the time, the address and `MISSING`."""
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
    """The state of a recovery, held by its owner or read by somebody else."""

    def finished_resources(self) -> Iterator[FinishedResource]:
        """Yield what was recovered, and what is missing."""


def summary_rows(state: FinishedResources) -> Iterator[SummaryRow]:
    """Yield all resources that are recovered or missing, in the order in which they were found."""
    return map(summary_row, state.finished_resources())


def summary_row(ended: FinishedResource) -> SummaryRow:
    """Return the summary of one."""
    chosen = ended.chosen
    if chosen is None:
        return SummaryRow(ended.finished_at, ended.uri, None, None, None, None, ended.holders)
    others = tuple(each for each in ended.holders if each[0] != (chosen.archive or ""))
    place = f"warc/{chosen.file}:{chosen.offset}"
    uri = chosen.uri if ended.substitute is None else ended.uri
    return SummaryRow(chosen.recovered, uri, chosen.mime, place, chosen.archive, chosen.datetime, others)


def escape_field(text: str) -> str:
    """Return a text without what would break a line into fields, or make a terminal act."""
    if text.isprintable():  # a fifth of the time, and almost always
        return text
    return "".join(char if char.isprintable() else _percent_encode(char) for char in text)


def _percent_encode(char: str) -> str:
    try:
        return quote(char, errors="surrogateescape")
    except UnicodeEncodeError:  # half of a letter that was never bytes
        return quote(char, errors="surrogatepass")


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
