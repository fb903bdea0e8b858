"""Report on an overlap survey: tables, SVG charts, JSON and an HTML page."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from itertools import pairwise
from math import log10

from unlost.report.format import ReportTable, escape_unprintable, format_count, format_share
from unlost.report.html_templates import make_template_environment
from unlost.research.overlap_stats import (
    ArchiveMembership,
    ArchiveOverlapStats,
    MinimumCover,
    OverlapStats,
    ValueSummary,
    summarize_values,
)
from unlost.statistics import Proportion

MAX_SETS = 30
"""Number of archive sets in the chart, largest first."""
_MAX_NAME_LENGTH = 24  # characters of a label
_CELL_SIZE = 22  # SVG units between columns and rows
_MAX_BAR_HEIGHT = 150  # of the bars of sets
_MAX_BAR_WIDTH = 110  # of the bars of archives
_CHARACTER_WIDTH = 6.6  # upper bound for the average character at this font size
_FONT = 'font-family="system-ui, sans-serif" font-size="11"'
_BAR, _OFF, _ON, _BAND = "#1f5f99", "#c9c9cf", "#1b1b1f", "#f0f0f3"  # colours of bars, dots and every second row

_MAX_COLUMNS = 16  # tables with one column per archive are omitted for more archives

_STALENESS_BINS = (0, 1, 10, 100, 1_000, 10**9)  # edges in days
_TYPE_ROWS = ("HTML", "PDF", "plain text", "Office", "images", "other", "unknown")
_MISS_LABELS = {
    "absent": "not available",
    "http-4xx": "HTTP 4xx",
    "http-5xx": "HTTP 5xx",
    "malformed": "invalid response",
    "redirect": "redirect without a target",
    "excluded": "blocked",
    "archive-error": "error page of the archive",
}


def draw_overlap(membership: ArchiveMembership) -> str:
    """Return an UpSet plot: a row for each archive, a column for each set of archives, dots for the members of the set.

    The bars at the top are the pages in exactly this set of archives, the bars at the left the pages in an archive. The
    output is deterministic, and names are escaped. The shapes have the classes `set`, `archive`, `in` and `out`.
    """
    sets = list(membership.sets())[:MAX_SETS]
    order = sorted(range(len(membership.archives)), key=lambda index: (-membership.held_by_archive(index), index))
    names = [_escape_name(membership.archives[index]) for index in order]
    label = 12 + _CHARACTER_WIDTH * max((len(name) for name in names), default=0)
    left, top = _MAX_BAR_WIDTH + 46 + label, _MAX_BAR_HEIGHT + 34
    width, height = left + _CELL_SIZE * max(len(sets), 1) + 16, top + _CELL_SIZE * len(order) + 8
    largest_set = max((count for _, count in sets), default=1)
    largest_archive = max((membership.held_by_archive(index) for index in order), default=0) or 1
    shapes = []
    for row, index in enumerate(order):
        y = top + _CELL_SIZE * row
        page_count = membership.held_by_archive(index)
        length = _MAX_BAR_WIDTH * page_count / largest_archive
        if row % 2 == 0:
            shapes.append(
                f'<rect class="band" x="0" y="{y:g}" width="{width:g}" height="{_CELL_SIZE}" fill="{_BAND}"/>'
            )
        title = f"<title>{names[row]}: {page_count:,} pages, {membership.held_only_by(index):,} of them alone</title>"
        shapes.append(
            f'<rect class="archive" x="{_MAX_BAR_WIDTH + 40 - length:.2f}" y="{y + 5:g}" '
            f'width="{length:.2f}" height="12" fill="{_BAR}">{title}</rect>'
            f'<text x="{_MAX_BAR_WIDTH + 36 - length:.2f}" y="{y + 15:g}" text-anchor="end" {_FONT}>'
            f"{page_count:,}</text>"
            f'<text x="{left - 10:g}" y="{y + 15:g}" text-anchor="end" {_FONT}>{names[row]}</text>'
        )
    for column, (members, count) in enumerate(sets):
        x = left + _CELL_SIZE * column + _CELL_SIZE / 2
        bar_height = max(1.0, _MAX_BAR_HEIGHT * count / largest_set)
        names_text = ", ".join(_escape_name(name) for name in membership.archive_ids(members))
        shapes.append(
            f'<rect class="set" x="{x - 7:g}" y="{_MAX_BAR_HEIGHT + 24 - bar_height:.2f}" width="14" '
            f'height="{bar_height:.2f}" fill="{_BAR}"><title>{count:,} pages: {names_text}</title></rect>'
            f'<text transform="translate({x + 4:g} {_MAX_BAR_HEIGHT + 20 - bar_height:.2f}) rotate(-90)" '
            f'class="count" {_FONT}>{count:,}</text>'
        )
        rows = [row for row, index in enumerate(order) if members >> index & 1]
        if len(rows) > 1:
            y_attributes = f'y1="{top + _CELL_SIZE * rows[0] + 11:g}" y2="{top + _CELL_SIZE * rows[-1] + 11:g}"'
            shapes.append(
                f'<line class="joined" x1="{x:g}" x2="{x:g}" {y_attributes} stroke="{_ON}" stroke-width="2"/>'
            )
        for row in range(len(order)):
            kind, colour = ("in", _ON) if row in rows else ("out", _OFF)
            shapes.append(
                f'<circle class="{kind}" cx="{x:g}" cy="{top + _CELL_SIZE * row + 11:g}" r="5" fill="{colour}"/>'
            )
    # Space for the rotated numbers above the bars.
    margin = 12 + _CHARACTER_WIDTH * len(f"{largest_set:,}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {24 - margin:g} {width:g} {height + margin - 24:g}" '
        f'width="{width:g}" role="img" aria-labelledby="overlap-title overlap-text">'
        f'<title id="overlap-title">Overlap of archives</title>'
        f'<desc id="overlap-text">{describe_overlap(membership)}</desc>{"".join(shapes)}</svg>'
    )


def describe_overlap(membership: ArchiveMembership) -> str:
    """Return a one-sentence description of the chart. Names are escaped.

    >>> describe_overlap(ArchiveMembership(("a", "b"), {0b01: 5, 0b11: 3, 0: 4}))
    '8 of 12 pages are held. Largest sets: a: 5 pages; a, b: 3 pages.'
    """
    sets = list(membership.sets())
    if not sets:
        return f"0 of {membership.total:,} pages are held."
    parts = [
        f"{', '.join(_escape_name(name) for name in membership.archive_ids(members))}: {count:,} "
        f"page{'' if count == 1 else 's'}"
        for members, count in sets[:3]
    ]
    verb = "is" if membership.held == 1 else "are"
    return f"{membership.held:,} of {membership.total:,} pages {verb} held. Largest sets: {'; '.join(parts)}."


def draw_years(years: Mapping[str, Mapping[str, tuple[int, int]]], page_count: int, pages: Mapping[str, int]) -> str:
    """Return a chart of mementos by year as bars, and the share of pages with a memento of the year as a line.

    Args:
        years: As `OverlapStats.years`.
        page_count: Number of pages surveyed.
        pages: Pages with a memento, by year.
    """
    labels = [f"{year:04}" for year in range(int(min(years)), int(max(years)) + 1)][-120:] if years else []
    counts = {year: sum(mementos for _, mementos in years.get(year, {}).values()) for year in labels}
    maximum = max(counts.values(), default=0) or 1
    step, height = 30, 120
    shapes, line = [], []
    for position, year in enumerate(labels):
        x = 10 + step * position
        bar_height = height * counts[year] / maximum
        rate = pages.get(year, 0) / page_count if page_count else 0.0
        title = f"<title>{year}: {counts[year]:,} mementos, {format_share(rate)} of pages</title>"
        shapes.append(
            f'<rect class="set" x="{x}" y="{20 + height - bar_height:.2f}" width="{step - 8}" '
            f'height="{bar_height:.2f}" fill="{_BAR}">{title}</rect>'
        )
        if len(labels) <= 25 or position % 5 == 0:  # more labels would touch each other
            shapes.append(f'<text x="{x + 11}" y="{height + 36}" text-anchor="middle" {_FONT}>{year}</text>')
        line.append(f"{x + 11},{20 + height * (1 - rate):.2f}")
    if line:
        points = f'points="{" ".join(line)}"'
        shapes.append(f'<polyline class="rate" {points} fill="none" stroke="#c8871a" stroke-width="2.5"/>')
    width = 20 + step * max(len(labels), 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height + 44}" width="{width}" role="img" '
        f'aria-labelledby="years-title"><title id="years-title">Mementos by year (bars), and the share of pages with '
        f"a memento of that year (line, from 0 to 100 %)</title>{''.join(shapes)}</svg>"
    )


def draw_similarity(points: Sequence[tuple[float, float]]) -> str:
    """Return a scatter plot of similarity (0 to 1, bottom to top) by staleness in days on a logarithmic scale."""
    width, height = 360, 160
    largest = max(3.0, *(log10(1 + days) for days, _ in points)) if points else 3.0
    shapes = [f'<path d="M40 10V{height + 10}H{width + 44}" fill="none" stroke="#77777f"/>']
    for days in (0, 1, 10, 100, 1_000, 10_000):
        if log10(1 + days) <= largest:
            x = 40 + width * log10(1 + days) / largest
            shapes.append(f'<text x="{x:.1f}" y="{height + 26}" text-anchor="middle" {_FONT}>{days:,}</text>')
    shapes += [
        f'<text x="36" y="{height + 14 - height * value / 100:g}" text-anchor="end" {_FONT}>{value} %</text>'
        for value in (0, 50, 100)
    ]
    for staleness, similarity in points:
        x, y = 40 + width * log10(1 + staleness) / largest, 10 + height * (1 - similarity)
        shapes.append(f'<circle class="pair" cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{_BAR}" fill-opacity="0.5"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + 60} {height + 32}" width="{width + 60}" '
        f'role="img" aria-labelledby="likeness-title"><title id="likeness-title">Similarity of live page '
        f"and capture by staleness in days</title>{''.join(shapes)}</svg>"
    )


def _escape_name(text: str) -> str:
    """Return a name truncated and escaped for SVG."""
    short = text if len(text) <= _MAX_NAME_LENGTH else text[: _MAX_NAME_LENGTH - 1] + "…"
    return escape(escape_unprintable(short))


def overlap_headline(stats: OverlapStats) -> str:
    """Return a sentence with the share of archived pages."""
    membership = stats.membership
    if not membership.total:
        return f"No results yet for the {format_count(stats.size, 'page')}."
    minimum, archive_count = min(1, len(membership.archives)), len(membership.archives)
    shared = sum(count for number, count in membership.by_archive_count() if number > minimum)
    archives = "the archive" if archive_count == 1 else f"at least one of {archive_count} archives"
    share = format_share(membership.held / membership.total)
    text = f"{membership.held:,} of {format_count(membership.total, 'page')} ({share}) are held by {archives}"
    return text + ("." if archive_count == 1 else f", {shared:,} of them by more than one.")


def overlap_remarks(stats: OverlapStats) -> list[str]:
    """Return the caveats for interpreting the numbers."""
    remarks = []
    if stats.unresponsive:
        remarks.append(f"No response from {', '.join(stats.unresponsive)}: excluded below.")
    if stats.unsettled:
        remarks.append(
            f"{format_count(stats.unsettled, 'page')} of {stats.size:,} excluded from the comparison of archives "
            "because not all archives responded for them."
        )
    remarks += [_cover_sentence(each, stats) for each in stats.minimum_covers]
    if stats.covers and not all(each.is_proven for each in stats.covers):
        remarks.append("Some of the best sets are approximate (greedy) because there are too many sets to try all.")
    return remarks


def _cover_sentence(minimum: MinimumCover, stats: OverlapStats) -> str:
    names = ", ".join(minimum.cover.archives)
    covered = format_share(minimum.cover.covered / stats.membership.held)
    proof = "the minimum" if minimum.is_proven else "not proven to be the minimum"
    number = format_count(len(minimum.cover.archives), "archive")
    return f"For {format_share(minimum.level)} of the holdings: {number} ({names}), covering {covered}; {proof}."


def holdings_tables(stats: OverlapStats) -> list[ReportTable]:
    """Return the non-empty tables about the archives' holdings."""
    tables = [
        _archives_table(stats), _sets_table(stats), _archive_counts_table(stats), _pairs_table(stats),
        _covers_table(stats),
        _mementos_table(stats), _tlds_table(stats), _years_table(stats),
    ]  # fmt: skip
    return [table for table in tables if table.rows]


def format_interval(value: Proportion) -> str:
    """Format the 95 % interval of a proportion.

    >>> format_interval(Proportion(8, 10)), format_interval(Proportion(0, 0))
    ('49 to 94 %', '')
    """
    low, high = value.interval()
    return f"{100 * low:.0f} to {100 * high:.0f} %" if value.total else ""


def _archives_table(stats: OverlapStats) -> ReportTable:
    indexes = {name: index for index, name in enumerate(stats.membership.archives)}
    rows = []
    for each in stats.archives:
        index = indexes.get(each.archive)
        unique = "" if index is None else f"{stats.membership.held_only_by(index):,}"
        median_age = f"{sorted(each.ages)[len(each.ages) // 2]:,.0f}" if each.ages else ""
        numbers = (each.mementos, each.only_errors, each.excluded, each.cut_lists, each.failed.total())
        rows.append((
            each.archive, f"{each.answered:,}", f"{each.held:,}", format_share(each.hit_rate.value),
            format_interval(each.hit_rate),
            unique, *(f"{number:,}" for number in numbers), median_age,
        ))  # fmt: skip
    heads = (
        "archive", "responses", "held", "share", "95 % interval", "only here", "mementos", "only errors", "blocked",
        "truncated", "no response", "days behind",
    )  # fmt: skip
    note = (
        "Held: the archive lists at least one capture that is neither an error nor a redirect. Only here: no other "
        "archive holds the page. Days behind: from the latest capture of the archive to the latest capture of all "
        "archives (median)."
    )
    return ReportTable("Archives", heads, rows, note)


def _sets_table(stats: OverlapStats) -> ReportTable:
    membership = stats.membership
    sets = list(membership.sets())
    rows = [
        (", ".join(membership.archive_ids(members)), f"{count:,}", format_share(count / membership.held))
        for members, count in sets[:MAX_SETS]
    ]
    other_pages = sum(count for _, count in sets[MAX_SETS:])
    if other_pages:
        rows.append(
            (f"{len(sets) - MAX_SETS:,} other sets", f"{other_pages:,}", format_share(other_pages / membership.held))
        )
    note = "Pages that are held by exactly these archives."
    return ReportTable("Pages by set of archives", ("archives", "pages", "of holdings"), rows, note)


def _archive_counts_table(stats: OverlapStats) -> ReportTable:
    total = stats.membership.total
    rows = [
        (str(number), f"{count:,}", format_share(count / total))
        for number, count in stats.membership.by_archive_count()
        if total
    ]
    return ReportTable("Pages by number of archives", ("archives", "pages", "share"), rows)


def _pairs_table(stats: OverlapStats) -> ReportTable:
    membership = stats.membership
    indexes = range(len(membership.archives))
    if not 2 <= len(membership.archives) <= _MAX_COLUMNS or not membership.held:
        return ReportTable("", (), ())
    rows = []
    for first in indexes:
        held = membership.held_by_archive(first)
        cells = [
            "" if first == second or not held else format_share(membership.held_by_both(first, second) / held)
            for second in indexes
        ]
        rows.append((membership.archives[first], f"{held:,}", *cells))
    note = "Share of the pages held by the archive of the row that the archive of the column also holds."
    return ReportTable("Pairwise overlap", ("archive", "held", *membership.archives), rows, note)


def _covers_table(stats: OverlapStats) -> ReportTable:
    rows = [
        (
            str(len(each.archives)),
            f"{each.covered:,}",
            format_share(each.covered / stats.membership.held),
            "yes" if each.is_proven else "no",
            ", ".join(each.archives),
        )
        for each in stats.covers
    ]
    note = "The archives that together hold the most pages, by number of archives. Proven: no such set holds more."
    heads = ("archives", "pages", "of holdings", "proven", "set")
    return ReportTable("Best sets of archives", heads, rows, note, frozenset({0, 4}))


def _mementos_table(stats: OverlapStats) -> ReportTable:
    total = stats.mementos
    rows = [
        (str(number), archive, f"{cumulative:,}", format_share(cumulative / total))
        for number, (archive, cumulative) in enumerate(stats.memento_covers, 1)
    ]
    note = "Each memento is in one archive, so the best set consists of the archives with the most mementos."
    heads = ("archives", "added archive", "cumulative mementos", "share")
    return ReportTable("Best sets of archives for mementos", heads, rows, note, frozenset({0, 1}))


def _tlds_table(stats: OverlapStats) -> ReportTable:
    archives = stats.archives if len(stats.archives) <= _MAX_COLUMNS else ()
    shown = {tld for tld, _, _ in stats.tlds}
    rows = []
    for tld, pages, held in stats.tlds:
        cells = []
        for each in archives:
            other_count = sum(count for name, count in each.held_tlds.items() if name not in shown)
            count = other_count if tld == "other" else each.held_tlds[tld]
            cells.append(format_share(count / pages))
        rows.append((tld, f"{pages:,}", format_share(held / pages), *cells))
    heads = ("domain", "pages", "held", *(each.archive for each in archives))
    return ReportTable("Top-level domains", heads, rows, "Share of the pages held by any archive, and by each archive.")


def _years_table(stats: OverlapStats) -> ReportTable:
    archives = stats.archives if len(stats.archives) <= _MAX_COLUMNS else ()
    rows = []
    for year, counts in stats.years.items():
        pages = stats.year_pages.get(year, 0)
        mementos = sum(mementos for _, mementos in counts.values())
        cells = (f"{counts.get(each.archive, (0, 0))[1]:,}" for each in archives)
        rows.append((year, f"{pages:,}", format_share(pages / stats.size), f"{mementos:,}", *cells))
    heads = ("year", "pages", "hit rate", "mementos", *(each.archive for each in archives))
    note = "Pages with a capture of that year in any archive, and the number of captures, in total and by archive."
    return ReportTable("Captures by year", heads, rows, note)


def capture_tables(stats: OverlapStats) -> list[ReportTable]:
    """Return the non-empty tables about fetched captures and, if surveyed, live pages."""
    archives = [each for each in stats.archives if each.fetched or each.failed_fetches]
    tables = [_misses_table(archives), _types_table(archives), _sizes_table(archives), _directives_table(archives)]
    if stats.has_live:
        with_live = [each for each in archives if _live_page_count(each)]
        tables += [
            _states_table(with_live),
            _staleness_table(with_live),
            _similarity_table(with_live),
            _similarity_by_staleness_table(with_live),
            _live_directives_table(with_live),
        ]
    return [table for table in tables if table.rows]


def _misses_table(archives: list[ArchiveOverlapStats]) -> ReportTable:
    rows = []
    for each in archives:
        reasons = ", ".join(
            f"{_MISS_LABELS.get(reason, reason)} {count:,}" for reason, count in each.misses.most_common()
        )
        rows.append((
            each.archive, f"{each.fetched:,}", f"{each.misses.total():,}", format_share(each.miss_rate.value),
            format_interval(each.miss_rate), f"{each.error_captures:,}", f"{each.failed_fetches.total():,}", reasons,
        ))  # fmt: skip
    note = (
        "One random capture of each page is fetched. Missed: listed, but not delivered. Error captures: delivered, but "
        "errors or redirects of the original server. No response: not counted, and fetched again by the next run."
    )
    heads = ("archive", "fetched", "missed", "miss rate", "95 % interval", "error captures", "no response", "reasons")
    return ReportTable("Delivery of listed captures", heads, rows, note, frozenset({0, 7}))


def _types_table(archives: list[ArchiveOverlapStats]) -> ReportTable:
    with_types = [each for each in archives if each.types]
    rows = [
        (kind, *(format_share(each.types[kind] / each.types.total()) for each in with_types))
        for kind in _TYPE_ROWS
        if any(each.types[kind] for each in with_types)
    ]
    heads = ("type", *(each.archive for each in with_types))
    return ReportTable("Media types of captures", heads, rows, "Shares of the fetched captures.")


def _sizes_table(archives: list[ArchiveOverlapStats]) -> ReportTable:
    rows = []
    for each in archives:
        if each.sizes:
            summary = summarize_values(each.sizes)
            truncated = Proportion(each.truncated, len(each.sizes))
            rows.append(
                (
                    each.archive,
                    *_size_cells(summary),
                    f"{each.truncated:,}",
                    format_share(truncated.value),
                    format_interval(truncated),
                )
            )
    heads = ("archive", "captures", "mean", "median", "largest", "truncated", "share", "95 % interval")
    note = "In bytes without content codings. Truncated: marked as truncated, or the transfer was interrupted."
    return ReportTable("Sizes of captures", heads, rows, note)


def _size_cells(summary: ValueSummary) -> tuple[str, ...]:
    return (f"{summary.count:,}", *(f"{value or 0:,.0f}" for value in (summary.mean, summary.median, summary.most)))


def _directives_table(archives: list[ArchiveOverlapStats]) -> ReportTable:
    rows = []
    for each in archives:
        if each.sizes:
            noarchive, no_cache = Proportion(each.noarchive, each.html), Proportion(each.no_cache, len(each.sizes))
            robots = ", ".join(f"{name} {count:,}" for name, count in sorted(each.robots.items()))
            rows.append((
                each.archive, f"{each.html:,}", f"{each.noarchive:,}", format_share(noarchive.value), robots,
                f"{each.no_cache:,}", format_share(no_cache.value), format_interval(no_cache),
            ))  # fmt: skip
    heads = ("archive", "HTML", "noarchive", "share", "robots", "no cache", "share", "95 % interval")
    note = "No cache: captures whose original headers have Cache-Control no-cache, no-store or private."
    return ReportTable("Captures with noarchive or Cache-Control directives", heads, rows, note, frozenset({0, 4}))


def _live_page_count(archive: ArchiveOverlapStats) -> int:
    live = archive.live
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
        "archive", "pages", "replicated", "endangered", "vulnerable", "unrecoverable", "no response", "soft 404",
        "not visited",
    )  # fmt: skip
    note = (
        "Replicated: the capture was delivered and the page is live. Endangered: delivered, page not live. Vulnerable: "
        "not delivered, page live. Unrecoverable: neither. No response and soft 404: of the pages that are not live. "
        "Not visited: disallowed by robots.txt, or the site requires a longer wait."
    )
    return ReportTable("Captures and live pages", heads, rows, note)


def _staleness_table(archives: list[ArchiveOverlapStats]) -> ReportTable:
    rows = []
    for each in archives:
        summary = summarize_values(each.live.staleness)
        stale = Proportion(summary.count, each.live.dated)
        values = (summary.mean, summary.median, summary.deviation, summary.least, summary.most)
        numbers = ("" if value is None else f"{value:,.1f}" for value in values)
        rows.append((each.archive, f"{stale.total:,}", format_share(stale.value), format_interval(stale), *numbers))
    note = (
        "Days by which the live page (Last-Modified) is newer than the capture, for captures that are stale by at "
        "least a day. A capture made after the last change is not stale."
    )
    heads = ("archive", "dated", "stale", "95 % interval", "mean", "median", "deviation", "minimum", "maximum")
    return ReportTable("Staleness", heads, rows, note)


def _similarity_table(archives: list[ArchiveOverlapStats]) -> ReportTable:
    rows = []
    for each in archives:
        live, summary = each.live, summarize_values(each.live.similarities)
        identical = Proportion(live.identical, live.pairs)
        numbers = (format_share(summary.mean), format_share(summary.median)) if summary.count else ("", "")
        rows.append((
            each.archive, f"{identical.total:,}", format_share(identical.value), f"{summary.count:,}", *numbers,
            format_correlation(live.points)
        ))  # fmt: skip
    note = (
        "Identical: byte for byte. Similarity: share of common runs of ten words, without markup. Correlation of "
        "similarity and staleness: negative if staler captures are less similar."
    )
    heads = ("archive", "pairs", "identical", "texts", "mean similarity", "median", "correlation")
    return ReportTable("Similarity of captures and live pages", heads, rows, note)


def _similarity_by_staleness_table(archives: list[ArchiveOverlapStats]) -> ReportTable:
    points = [point for each in archives for point in each.live.points]
    rows = []
    for low, high in pairwise(_STALENESS_BINS):
        similarities = [value for days, value in points if low <= days < high]
        if similarities:
            label = (
                "0" if high == 1 else f"{low:,} to {high - 1:,}" if high < _STALENESS_BINS[-1] else f"{low:,} or more"
            )
            summary = summarize_values(similarities)
            identical = sum(value == 1 for value in similarities)
            rows.append(
                (
                    label,
                    f"{summary.count:,}",
                    format_share(summary.mean),
                    format_share(summary.median),
                    format_share(identical / summary.count),
                )
            )
    heads = ("days stale", "pairs", "mean similarity", "median", "identical text")
    note = "Similarity of live pages and captures by staleness of the captures, over all archives."
    return ReportTable("Similarity by staleness", heads, rows, note)


def format_correlation(points: list[tuple[float, float]]) -> str:
    """Format Pearson's correlation coefficient; an empty string if it is undefined.

    >>> format_correlation([(1, 1.0), (2, 0.5), (3, 0.0)]), format_correlation([(1, 1.0), (1, 0.5)])
    ('-1.00', '')
    """
    if len(points) < 3:
        return ""
    means = [sum(values) / len(points) for values in zip(*points, strict=True)]
    centered = [(first - means[0], second - means[1]) for first, second in points]
    squares = [sum(pair[at] ** 2 for pair in centered) for at in (0, 1)]
    if not all(squares):
        return ""
    return f"{sum(first * second for first, second in centered) / (squares[0] * squares[1]) ** 0.5:.2f}"


def _live_directives_table(archives: list[ArchiveOverlapStats]) -> ReportTable:
    rows = []
    for each in archives:
        live = each.live
        no_cache = Proportion(live.no_cache, live.answered)
        captured = Proportion(live.no_cache_held, live.no_cache)
        rows.append((
            each.archive, f"{live.html:,}", format_share(Proportion(live.noarchive, live.html).value),
            f"{live.answered:,}",
            format_share(no_cache.value), format_share(captured.value),
        ))  # fmt: skip
    heads = ("archive", "live HTML", "noarchive", "live pages", "no cache", "of these archived")
    return ReportTable("Live pages with noarchive or Cache-Control directives", heads, rows)


def overlap_to_json(stats: OverlapStats) -> dict[str, object]:
    """Return the JSON document."""
    membership = stats.membership
    total = stats.mementos
    return {
        "pages": stats.size,
        "compared": membership.total,
        "held": membership.held,
        "unsettled": stats.unsettled,
        "without_answer": list(stats.unresponsive),
        "archives": [_archive_to_json(item, stats) for item in stats.archives],
        "sets": [
            {"archives": list(membership.archive_ids(members)), "pages": count} for members, count in membership.sets()
        ],
        "by_number": dict(membership.by_archive_count()),
        "best": [
            {"archives": list(item.archives), "pages": item.covered, "proven": item.is_proven} for item in stats.covers
        ],
        "fewest": [
            {
                "level": item.level,
                "archives": list(item.cover.archives),
                "pages": item.cover.covered,
                "proven": item.is_proven,
            }
            for item in stats.minimum_covers
        ],
        "best_for_mementos": [
            {"archive": archive, "so_far": cumulative, "share": cumulative / total}
            for archive, cumulative in stats.memento_covers
        ],
        "tlds": [{"tld": tld, "pages": pages, "held": members} for tld, pages, members in stats.tlds],
        "years": {
            year: {
                "pages": stats.year_pages.get(year, 0),
                "archives": {
                    archive: {"pages": pages, "mementos": mementos} for archive, (pages, mementos) in item.items()
                },
            }
            for year, item in stats.years.items()
        },
    }


def _archive_to_json(archive: ArchiveOverlapStats, stats: OverlapStats) -> dict[str, object]:
    membership = stats.membership
    index = membership.archives.index(archive.archive) if archive.archive in membership.archives else None
    return {
        "archive": archive.archive,
        "answered": archive.answered,
        "held": archive.hit_rate.to_json(),
        "alone": None if index is None else membership.held_only_by(index),
        "mementos": archive.mementos,
        "only_errors": archive.only_errors,
        "excluded": archive.excluded,
        "cut": archive.cut_lists,
        "without_answer": {reason or "not-asked": count for reason, count in archive.failed.items()},
        "days_behind": asdict(summarize_values(archive.ages)),
        "copies": {
            "fetched": archive.fetched,
            "missed": archive.miss_rate.to_json(),
            "misses": dict(archive.misses),
            "failed": dict(archive.failed_fetches),
            "errors": archive.error_captures,
            "types": dict(archive.types),
            "bytes": asdict(summarize_values(archive.sizes)),
            "truncated": Proportion(archive.truncated, len(archive.sizes)).to_json(),
            "noarchive": Proportion(archive.noarchive, archive.html).to_json(),
            "robots": dict(archive.robots),
            "cache_control": Proportion(archive.no_cache, len(archive.sizes)).to_json(),
        },
        "live": _live_to_json(archive) if stats.has_live else None,
    }


def _live_to_json(archive: ArchiveOverlapStats) -> dict[str, object]:
    live = archive.live
    return {
        "replicated": live.replicated,
        "endangered": live.endangered,
        "vulnerable": live.vulnerable,
        "unrecoverable": live.unrecoverable,
        "silent": live.silent,
        "absent": live.absent,
        "unseen": dict(live.unseen),
        "stale": Proportion(len(live.staleness), live.dated).to_json(),
        "staleness_days": asdict(summarize_values(live.staleness)),
        "identical": Proportion(live.identical, live.pairs).to_json(),
        "in_common": asdict(summarize_values(live.similarities)),
        "points": live.points,
        "bytes": asdict(summarize_values(live.sizes)),
        "noarchive": Proportion(live.noarchive, live.html).to_json(),
        "cache_control": Proportion(live.no_cache, live.answered).to_json(),
        "cache_control_kept": Proportion(live.no_cache_held, live.no_cache).to_json(),
    }


def render_overlap_page(stats: OverlapStats, name: str) -> str:
    """Return the report as a self-contained, deterministic HTML page. All values are escaped.

    Args:
        stats: Statistics to show.
        name: Title of the page list.
    """
    pairs = [(each.archive, draw_similarity(each.live.points)) for each in stats.archives if each.live.points]
    return (
        make_template_environment("unlost.research")
        .get_template("overlap.html")
        .render(
            name=name,
            headline=overlap_headline(stats),
            remarks=overlap_remarks(stats),
            membership=stats.membership,
            drawing=draw_overlap(stats.membership),
            described=describe_overlap(stats.membership),
            years=draw_years(stats.years, stats.size, stats.year_pages) if stats.years else "",
            pairs=pairs,
            holdings=holdings_tables(stats),
            copies=capture_tables(stats),
        )
    )
