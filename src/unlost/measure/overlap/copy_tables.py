"""What the copies of a sample are like, and the live pages beside them, as tables for people."""

from itertools import pairwise

from unlost.measure.intervals import Proportion
from unlost.measure.overlap.figures import OverlapStats
from unlost.measure.overlap.standing import ValueSummary, ArchiveOverlapStats, summarize_values
from unlost.measure.overlap.tables import format_interval
from unlost.shown.table import ReportTable
from unlost.shown.words import format_share

_STALENESS_BINS = (0, 1, 10, 100, 1_000, 10**9)  # days, below which groups end
_TYPE_ROWS = ("HTML", "PDF", "plain text", "Office", "images", "other", "unknown")
_MISS_LABELS = {
    "absent": "not there after all",
    "http-4xx": "an error (4xx)",
    "http-5xx": "an error (5xx)",
    "malformed": "no copy that can be read",
    "redirect": "redirects that lead nowhere",
    "excluded": "not shown",
    "archive-error": "a page by which the archive says that it has none",
}


def capture_tables(figures: OverlapStats) -> list[ReportTable]:
    """Return the tables about copies, and about live pages if anybody looked at them; without empty ones."""
    archives = [each for each in figures.archives if each.fetched or each.failed_fetches]
    tables = [_misses_table(archives), _types_table(archives), _sizes_table(archives), _directives_table(archives)]
    if figures.has_live:
        looked = [each for each in archives if _live_page_count(each)]
        tables += [
            _states_table(looked),
            _staleness_table(looked),
            _similarity_table(looked),
            _similarity_by_staleness_table(looked),
            _live_directives_table(looked),
        ]
    return [table for table in tables if table.rows]


def _misses_table(archives: list[ArchiveOverlapStats]) -> ReportTable:
    rows = []
    for each in archives:
        why = ", ".join(f"{_MISS_LABELS.get(reason, reason)} {count:,}" for reason, count in each.misses.most_common())
        rows.append((
            each.archive, f"{each.fetched:,}", f"{each.misses.total():,}", format_share(each.miss_rate.value),
            format_interval(each.miss_rate), f"{each.error_captures:,}", f"{each.failed_fetches.total():,}", why,
        ))  # fmt: skip
    note = (
        "Copies that are listed as stored, and were fetched at random, one of a page: missed are those that did not "
        "come. Errors kept: copies that came and are errors or redirects of the original server. No answer: these say "
        "nothing about the archive, and are asked for again."
    )
    heads = ("archive", "fetched", "missed", "miss rate", "of all", "errors kept", "no answer", "why")
    return ReportTable("Listed, but there?", heads, rows, note, frozenset({0, 7}))


def _types_table(archives: list[ArchiveOverlapStats]) -> ReportTable:
    held = [each for each in archives if each.types]
    rows = [
        (kind, *(format_share(each.types[kind] / each.types.total()) for each in held))
        for kind in _TYPE_ROWS
        if any(each.types[kind] for each in held)
    ]
    heads = ("type", *(each.archive for each in held))
    return ReportTable("Types of the copies", heads, rows, "Shares of the copies that were fetched.")


def _sizes_table(archives: list[ArchiveOverlapStats]) -> ReportTable:
    rows = []
    for each in archives:
        if each.sizes:
            found = summarize_values(each.sizes)
            cut = Proportion(each.truncated, len(each.sizes))
            rows.append(
                (
                    each.archive,
                    *_size_cells(found),
                    f"{each.truncated:,}",
                    format_share(cut.value),
                    format_interval(cut),
                )
            )
    heads = ("archive", "copies", "mean", "middle", "largest", "not whole", "share", "of all")
    note = "Bytes without codings. Not whole: the archive says so, or the body breaks off."
    return ReportTable("Sizes of the copies", heads, rows, note)


def _size_cells(found: ValueSummary) -> tuple[str, ...]:
    return (f"{found.count:,}", *(f"{value or 0:,.0f}" for value in (found.mean, found.median, found.most)))


def _directives_table(archives: list[ArchiveOverlapStats]) -> ReportTable:
    rows = []
    for each in archives:
        if each.sizes:
            kept_out, refusing = Proportion(each.noarchive, each.html), Proportion(each.no_cache, len(each.sizes))
            whom = ", ".join(f"{name} {count:,}" for name, count in sorted(each.robots.items()))
            rows.append((
                each.archive, f"{each.html:,}", f"{each.noarchive:,}", format_share(kept_out.value), whom,
                f"{each.no_cache:,}", format_share(refusing.value), format_interval(refusing),
            ))  # fmt: skip
    heads = ("archive", "HTML", "noarchive", "share", "for", "no cache", "share", "of all")
    note = "No cache: copies whose headers had Cache-Control no-cache, no-store or private when they were captured."
    return ReportTable("Copies of pages that ask not to be kept", heads, rows, note, frozenset({0, 4}))


def _live_page_count(standing: ArchiveOverlapStats) -> int:
    live = standing.live
    return live.replicated + live.endangered + live.vulnerable + live.unrecoverable + live.unseen.total()


def _states_table(archives: list[ArchiveOverlapStats]) -> ReportTable:
    rows = []
    for each in archives:
        live = each.live
        total = _live_page_count(each) - live.unseen.total()
        counts = (live.replicated, live.endangered, live.vulnerable, live.unrecoverable)
        shares = (format_share(Proportion(count, total).value) for count in counts)
        rows.append(
            (each.archive, f"{total:,}", *shares, f"{live.silent:,}", f"{live.absent:,}", f"{live.unseen.total():,}")
        )
    heads = (
        "archive", "pages", "replicated", "endangered", "vulnerable", "unrecoverable", "silent", "absent", "not seen"
    )  # fmt: skip
    note = (
        "Of the pages that it lists and that were looked at: a copy came and the page is live; it came and the page is "
        "gone; no copy came and the page is live; neither. Of those that are gone: silent are those without an answer, "
        "absent those that say so in words only. Not seen: robots.txt, or a site that wants us to wait, does not let "
        "us tell."
    )
    return ReportTable("Copies and live pages", heads, rows, note)


def _staleness_table(archives: list[ArchiveOverlapStats]) -> ReportTable:
    rows = []
    for each in archives:
        found = summarize_values(each.live.staleness)
        stale = Proportion(found.count, each.live.dated)
        values = (found.mean, found.median, found.deviation, found.least, found.most)
        numbers = ("" if value is None else f"{value:,.1f}" for value in values)
        rows.append((each.archive, f"{stale.total:,}", format_share(stale.value), format_interval(stale), *numbers))
    note = (
        "Days by which the live page is newer than the copy, by its Last-Modified, of copies that are a day behind or "
        "more; a copy that was made after the last change is not stale."
    )
    heads = ("archive", "dated", "stale", "of all", "mean", "middle", "deviation", "least", "most")
    return ReportTable("Staleness", heads, rows, note)


def _similarity_table(archives: list[ArchiveOverlapStats]) -> ReportTable:
    rows = []
    for each in archives:
        live, found = each.live, summarize_values(each.live.similarities)
        same = Proportion(live.identical, live.pairs)
        numbers = (format_share(found.mean), format_share(found.median)) if found.count else ("", "")
        rows.append((
            each.archive, f"{same.total:,}", format_share(same.value), f"{found.count:,}", *numbers, format_correlation(live.points)
        ))  # fmt: skip
    note = (
        "Identical: byte for byte. Text in common: the share of runs of ten words, markup removed. The last column "
        "tells whether staler copies differ more: -1 always, 0 not at all."
    )
    heads = ("archive", "pairs", "identical", "texts", "in common", "middle", "with staleness")
    return ReportTable("Copies and live pages: how alike", heads, rows, note)


def _similarity_by_staleness_table(archives: list[ArchiveOverlapStats]) -> ReportTable:
    points = [point for each in archives for point in each.live.points]
    rows = []
    for least, most in pairwise(_STALENESS_BINS):
        alike = [value for days, value in points if least <= days < most]
        if alike:
            name = (
                "0"
                if most == 1
                else f"{least:,} to {most - 1:,}"
                if most < _STALENESS_BINS[-1]
                else f"{least:,} or more"
            )
            found = summarize_values(alike)
            same = sum(value == 1 for value in alike)
            rows.append(
                (
                    name,
                    f"{found.count:,}",
                    format_share(found.mean),
                    format_share(found.median),
                    format_share(same / found.count),
                )
            )
    heads = ("days stale", "pairs", "in common", "middle", "all in common")
    note = "Text in common of live pages and copies, by how stale the copies are, in all archives together."
    return ReportTable("Likeness against staleness", heads, rows, note)


def format_correlation(points: list[tuple[float, float]]) -> str:
    """Return Pearson's coefficient of pairs; nothing if there are too few, or all are the same.

    >>> correlation([(1, 1.0), (2, 0.5), (3, 0.0)]), correlation([(1, 1.0), (1, 0.5)])
    ('-1.00', '')
    """
    if len(points) < 3:
        return ""
    means = [sum(values) / len(points) for values in zip(*points, strict=True)]
    shifted = [(first - means[0], second - means[1]) for first, second in points]
    squares = [sum(pair[at] ** 2 for pair in shifted) for at in (0, 1)]
    if not all(squares):
        return ""
    return f"{sum(first * second for first, second in shifted) / (squares[0] * squares[1]) ** 0.5:.2f}"


def _live_directives_table(archives: list[ArchiveOverlapStats]) -> ReportTable:
    rows = []
    for each in archives:
        live = each.live
        refusing = Proportion(live.no_cache, live.answered)
        kept = Proportion(live.no_cache_held, live.no_cache)
        rows.append((
            each.archive, f"{live.html:,}", format_share(Proportion(live.noarchive, live.html).value), f"{live.answered:,}",
            format_share(refusing.value), format_share(kept.value),
        ))  # fmt: skip
    heads = ("archive", "live HTML", "noarchive", "live pages", "no cache", "of these kept")
    return ReportTable("Live pages that ask not to be kept", heads, rows)
