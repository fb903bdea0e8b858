"""What `unlost compare` prints: a report for people, lines for programs."""

from collections.abc import Iterator, Mapping, Sequence
from json import dumps
from typing import TYPE_CHECKING

from unlost.cli.addresses import write_lines
from unlost.cli.table import format_columns
from unlost.formats.digests import normalize_digest
from unlost.measure.breakdown import BreakdownRow, breakdowns
from unlost.measure.comparison import ComparedResource, Comparison, ComparisonOutcome
from unlost.measure.difference import SiteDifference
from unlost.measure.resource import SiteResource
from unlost.measure.wording import LEVEL_TEXTS, comparison_headline, comparison_remarks
from unlost.shown.words import escape_unprintable, format_share

if TYPE_CHECKING:
    from unlost.cli.comparerun import ComparisonRun

_BATCH_LINES = 1_000  # written at once


def print_report(comparison: Comparison, weighed: SiteDifference | None) -> None:
    """Print what came back: a sentence, the difference, the levels, and the tables."""
    lines = [comparison_headline(comparison.counts), *comparison_remarks(comparison), ""]
    rows = [("difference", *_vector(comparison.difference))]
    rows += [("with penalties", *_vector(weighed))] if weighed is not None else []
    lines += format_columns(("", "changed", "missing", "added", "sum"), rows)
    lines += ["", "lower is better:"]
    lines += [f"{level.name}  {level.success:.3f}  {LEVEL_TEXTS[level.name]}" for level in comparison.levels]
    lines += ["", f"almost identical among changed texts: {format_share(comparison.almost_identical)}"]
    for table in breakdowns(comparison):
        heads = [table.title, "original", "recovered", "share", "identical", "changed", "almost identical", "missing"]
        heads += ["same format", "other format"] if table.has_formats else []
        if table.rows:
            lines += ["", *format_columns(heads, [_cells(row, has_formats=table.has_formats) for row in table.rows])]
    write_lines([line + "\n" for line in lines])


def _vector(difference: SiteDifference) -> tuple[str, str, str, str]:
    parts = (difference.changed, difference.missing, difference.added, difference.success)
    changed, missing, added, success = (f"{part:.3f}" for part in parts)
    return changed, missing, added, success


def _cells(row: BreakdownRow, *, has_formats: bool) -> tuple[str, ...]:
    numbers = (row.identical, row.changed, row.similar, row.missing)
    formats = (row.canonical, row.migrated) if has_formats else ()
    cells = tuple(f"{number:,}" for number in (*numbers, *formats))
    return (escape_unprintable(row.label), f"{row.original:,}", f"{row.recovered:,}", format_share(row.share), *cells)


def print_list(comparison: Comparison, listed: Sequence[str]) -> None:
    """Print a line with tabs for each resource with such an outcome: outcome, share of the text, type, address."""
    wanted = set(ComparisonOutcome) if "all" in listed else {ComparisonOutcome(word) for word in listed}
    out: list[str] = []
    for each in comparison.resources():
        if each.outcome in wanted:
            out.append(
                "\t".join(
                    (each.outcome.value, _likeness(each), escape_unprintable(each.mime), escape_unprintable(each.uri))
                )
                + "\n"
            )
        if len(out) >= _BATCH_LINES:
            write_lines(out)
            out.clear()
    write_lines(out)


def _likeness(each: ComparedResource) -> str:
    if each.similarity is None:
        return "-"
    return f"{each.similarity.share:.3f}" if each.similarity.share is not None else str(each.similarity.reason)


def print_json(both: "ComparisonRun", weighed: SiteDifference | None) -> None:
    """Print an object for each resource, then the summary."""
    out: list[str] = []
    for each in both.comparison.resources():
        out.append(dumps({"event": "resource", **_resource(each)}) + "\n")
        if len(out) >= _BATCH_LINES:
            write_lines(out)
            out.clear()
    write_lines([*out, dumps({"event": "summary", **_summary(both, weighed)}) + "\n"])


def _resource(each: ComparedResource) -> dict[str, object]:
    likeness = each.similarity
    return {
        "outcome": each.outcome.value,
        "uri": each.uri,
        "name": each.name,
        "mime": each.resource.mime,
        "textual": each.textual,
        "similarity": likeness.share if likeness else None,
        "similar": each.similar,
        "reason": likeness.reason if likeness else None,
        "partial": likeness.partial if likeness else False,
        "migrated": each.migrated,
        "held": each.held,
        "original": _version(each.original),
        "recovered": _version(each.recovered),
    }


def _version(resource: SiteResource | None) -> dict[str, object] | None:
    if resource is None:
        return None
    return {
        "uri": resource.uri,
        "mime": resource.mime,
        "size": resource.size,
        "digest": normalize_digest(f"sha1:{resource.digest.hex()}"),
        "datetime": resource.datetime,
        "modified": resource.modified,
    }


def _summary(both: "ComparisonRun", weighed: SiteDifference | None) -> dict[str, object]:
    comparison, counts = both.comparison, both.comparison.counts
    return {
        "original": both.names[0],
        "recovered": both.names[1],
        "resources": {
            "original": counts.original,
            "recovered": counts.recovered,
            "identical": counts.identical,
            "changed": counts.changed,
            "missing": counts.missing,
            "added": counts.added,
            "held": comparison.held,
            "migrated": comparison.migrated,
        },
        "difference": _difference(comparison.difference),
        "weighed": _difference(weighed) if weighed is not None else None,
        "levels": {level.name: level.success for level in comparison.levels},
        "similar_at": comparison.similar_at,
        "changed_texts": comparison.changed_texts,
        "similar": comparison.similar,
        "almost_identical": comparison.almost_identical,
        "requests": comparison.requests,
        "efficiency": comparison.efficiency,
        "efficiency_without_added": comparison.efficiency_without_added,
        "breakdowns": {table.name: list(_rows(table.rows)) for table in breakdowns(comparison)},
        "unread": {reason: count for reason, (count, _) in comparison.unread.items()},
        "partial": comparison.partial,
        "left_out": _by_site([site.skipped for site in both.sites]),
        "problems": _by_site([site.problems.counts for site in both.sites]),
    }


def _difference(difference: SiteDifference) -> dict[str, float]:
    return {
        "changed": difference.changed,
        "missing": difference.missing,
        "added": difference.added,
        "success": difference.success,
    }


def _rows(rows: Sequence[BreakdownRow]) -> Iterator[dict[str, object]]:
    names = ("label", "original", "recovered", "share", "identical", "changed", "similar", "missing", "held")
    for row in rows:
        yield {name: getattr(row, name) for name in (*names, "canonical", "migrated")}


def _by_site(values: Sequence[Mapping[str, int]]) -> dict[str, dict[str, int]]:
    return {name: dict(sorted(value.items())) for name, value in zip(("original", "recovered"), values, strict=True)}
