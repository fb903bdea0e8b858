"""What `unlost compare` prints: a report for people, lines for programs."""

from collections.abc import Iterator, Mapping, Sequence
from json import dumps
from typing import TYPE_CHECKING

from unlost.cli.addresses import write
from unlost.cli.table import aligned
from unlost.formats.digests import normal_digest
from unlost.measure.breakdown import Row, breakdowns
from unlost.measure.comparison import Compared, Comparison, Outcome
from unlost.measure.difference import Difference
from unlost.measure.resource import Resource
from unlost.measure.wording import LEVELS, headline, remarks
from unlost.shown.words import printable, share

if TYPE_CHECKING:
    from unlost.cli.comparerun import Both

_LINES = 1_000  # written at once


def print_report(comparison: Comparison, weighed: Difference | None) -> None:
    """Print what came back: a sentence, the difference, the levels, and the tables."""
    lines = [headline(comparison.counts), *remarks(comparison), ""]
    rows = [("difference", *_vector(comparison.difference))]
    rows += [("with penalties", *_vector(weighed))] if weighed is not None else []
    lines += aligned(("", "changed", "missing", "added", "sum"), rows)
    lines += ["", "lower is better:"]
    lines += [f"{level.name}  {level.success:.3f}  {LEVELS[level.name]}" for level in comparison.levels]
    lines += ["", f"almost identical among changed texts: {share(comparison.almost_identical)}"]
    for table in breakdowns(comparison):
        heads = [table.title, "original", "recovered", "share", "identical", "changed", "almost identical", "missing"]
        heads += ["same format", "other format"] if table.has_formats else []
        if table.rows:
            lines += ["", *aligned(heads, [_cells(row, has_formats=table.has_formats) for row in table.rows])]
    write([line + "\n" for line in lines])


def _vector(difference: Difference) -> tuple[str, str, str, str]:
    parts = (difference.changed, difference.missing, difference.added, difference.success)
    changed, missing, added, success = (f"{part:.3f}" for part in parts)
    return changed, missing, added, success


def _cells(row: Row, *, has_formats: bool) -> tuple[str, ...]:
    numbers = (row.identical, row.changed, row.similar, row.missing)
    formats = (row.canonical, row.migrated) if has_formats else ()
    cells = tuple(f"{number:,}" for number in (*numbers, *formats))
    return (printable(row.label), f"{row.original:,}", f"{row.recovered:,}", share(row.share), *cells)


def print_list(comparison: Comparison, listed: Sequence[str]) -> None:
    """Print a line with tabs for each resource with such an outcome: outcome, share of the text, type, address."""
    wanted = set(Outcome) if "all" in listed else {Outcome(word) for word in listed}
    out: list[str] = []
    for each in comparison.resources():
        if each.outcome in wanted:
            out.append(
                "\t".join((each.outcome.value, _likeness(each), printable(each.mime), printable(each.uri))) + "\n"
            )
        if len(out) >= _LINES:
            write(out)
            out.clear()
    write(out)


def _likeness(each: Compared) -> str:
    if each.likeness is None:
        return "-"
    return f"{each.likeness.share:.3f}" if each.likeness.share is not None else str(each.likeness.reason)


def print_json(both: "Both", weighed: Difference | None) -> None:
    """Print an object for each resource, then the summary."""
    out: list[str] = []
    for each in both.comparison.resources():
        out.append(dumps({"event": "resource", **_resource(each)}) + "\n")
        if len(out) >= _LINES:
            write(out)
            out.clear()
    write([*out, dumps({"event": "summary", **_summary(both, weighed)}) + "\n"])


def _resource(each: Compared) -> dict[str, object]:
    likeness = each.likeness
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


def _version(resource: Resource | None) -> dict[str, object] | None:
    if resource is None:
        return None
    return {
        "uri": resource.uri,
        "mime": resource.mime,
        "size": resource.size,
        "digest": normal_digest(f"sha1:{resource.digest.hex()}"),
        "datetime": resource.datetime,
        "modified": resource.modified,
    }


def _summary(both: "Both", weighed: Difference | None) -> dict[str, object]:
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
        "left_out": _of_each([site.left_out for site in both.sites]),
        "problems": _of_each([site.problems.counts for site in both.sites]),
    }


def _difference(difference: Difference) -> dict[str, float]:
    return {
        "changed": difference.changed,
        "missing": difference.missing,
        "added": difference.added,
        "success": difference.success,
    }


def _rows(rows: Sequence[Row]) -> Iterator[dict[str, object]]:
    names = ("label", "original", "recovered", "share", "identical", "changed", "similar", "missing", "held")
    for row in rows:
        yield {name: getattr(row, name) for name in (*names, "canonical", "migrated")}


def _of_each(values: Sequence[Mapping[str, int]]) -> dict[str, dict[str, int]]:
    return {name: dict(sorted(value.items())) for name, value in zip(("original", "recovered"), values, strict=True)}
