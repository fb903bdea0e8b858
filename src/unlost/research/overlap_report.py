"""An overlap survey as tables, SVG drawings, JSON and an HTML page."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from itertools import pairwise
from math import log10

from unlost.report.format import ReportTable, escape_unprintable, format_count, format_share
from unlost.report.html_templates import make_template_environment
from unlost.research.overlap_stats import ArchiveOverlapStats, OverlapStats, ValueSummary, summarize_values
from unlost.research.set_cover import ArchiveMembership, MinimumCover
from unlost.statistics import Proportion

MAX_SETS = 30
"""Sets of archives that are drawn, those with most pages first."""
_MAX_NAME_LENGTH = 24  # of a name
_CELL_SIZE = 22  # between two columns or rows, in the picture's own units
_MAX_BAR_HEIGHT = 150  # the highest bar of sets
_MAX_BAR_WIDTH = 110  # the longest bar of archives
_CHARACTER_WIDTH = 6.6  # the width of one, at most, at the size that is used
_FONT = 'font-family="system-ui, sans-serif" font-size="11"'
_BAR, _OFF, _ON, _BAND = "#1f5f99", "#c9c9cf", "#1b1b1f", "#f0f0f3"


def draw_overlap(membership: ArchiveMembership) -> str:
    """Return who holds what: a row for each archive, a column for each set of them, dots where an archive is in it.

    The bars above say how many pages exactly this set holds, those at the left how many each archive does. The same
    numbers give the same bytes. Names are escaped; shapes have the classes `set`, `archive`, `in`, `out`.
    """
    sets = list(membership.sets())[:MAX_SETS]
    order = sorted(range(len(membership.archives)), key=lambda place: (-membership.held_by_archive(place), place))
    names = [_escape_name(membership.archives[place]) for place in order]
    label = 12 + _CHARACTER_WIDTH * max((len(name) for name in names), default=0)
    left, top = _MAX_BAR_WIDTH + 46 + label, _MAX_BAR_HEIGHT + 34
    width, height = left + _CELL_SIZE * max(len(sets), 1) + 16, top + _CELL_SIZE * len(order) + 8
    most = max((count for _, count in sets), default=1)
    largest = max((membership.held_by_archive(place) for place in order), default=0) or 1
    shapes = []
    for row, place in enumerate(order):
        y = top + _CELL_SIZE * row
        held = membership.held_by_archive(place)
        length = _MAX_BAR_WIDTH * held / largest
        if row % 2 == 0:
            shapes.append(
                f'<rect class="band" x="0" y="{y:g}" width="{width:g}" height="{_CELL_SIZE}" fill="{_BAND}"/>'
            )
        title = f"<title>{names[row]}: {held:,} pages, {membership.held_only_by(place):,} of them alone</title>"
        shapes.append(
            f'<rect class="archive" x="{_MAX_BAR_WIDTH + 40 - length:.2f}" y="{y + 5:g}" '
            f'width="{length:.2f}" height="12" fill="{_BAR}">{title}</rect>'
            f'<text x="{_MAX_BAR_WIDTH + 36 - length:.2f}" y="{y + 15:g}" text-anchor="end" {_FONT}>{held:,}</text>'
            f'<text x="{left - 10:g}" y="{y + 15:g}" text-anchor="end" {_FONT}>{names[row]}</text>'
        )
    for column, (held_by, count) in enumerate(sets):
        x = left + _CELL_SIZE * column + _CELL_SIZE / 2
        tall = max(1.0, _MAX_BAR_HEIGHT * count / most)
        who = ", ".join(_escape_name(name) for name in membership.archive_ids(held_by))
        shapes.append(
            f'<rect class="set" x="{x - 7:g}" y="{_MAX_BAR_HEIGHT + 24 - tall:.2f}" width="14" height="{tall:.2f}" '
            f'fill="{_BAR}"><title>{count:,} pages: {who}</title></rect>'
            f'<text transform="translate({x + 4:g} {_MAX_BAR_HEIGHT + 20 - tall:.2f}) rotate(-90)" '
            f'class="count" {_FONT}>{count:,}</text>'
        )
        rows = [row for row, place in enumerate(order) if held_by >> place & 1]
        if len(rows) > 1:
            ends = f'y1="{top + _CELL_SIZE * rows[0] + 11:g}" y2="{top + _CELL_SIZE * rows[-1] + 11:g}"'
            shapes.append(f'<line class="joined" x1="{x:g}" x2="{x:g}" {ends} stroke="{_ON}" stroke-width="2"/>')
        for row in range(len(order)):
            kind, colour = ("in", _ON) if row in rows else ("out", _OFF)
            shapes.append(
                f'<circle class="{kind}" cx="{x:g}" cy="{top + _CELL_SIZE * row + 11:g}" r="5" fill="{colour}"/>'
            )
    # Numbers above the bars need room of their own.
    room = 12 + _CHARACTER_WIDTH * len(f"{most:,}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {24 - room:g} {width:g} {height + room - 24:g}" '
        f'width="{width:g}" role="img" aria-labelledby="overlap-title overlap-text">'
        f'<title id="overlap-title">Who holds what</title>'
        f'<desc id="overlap-text">{describe_overlap(membership)}</desc>{"".join(shapes)}</svg>'
    )


def describe_overlap(membership: ArchiveMembership) -> str:
    """Return in a sentence what the picture shows; names are escaped.

    >>> describe_overlap(ArchiveMembership(("a", "b"), {0b01: 5, 0b11: 3, 0: 4}))
    'Of 12 pages 8 are held. Most are held by a: 5 pages; then a, b: 3 pages.'
    """
    sets = list(membership.sets())
    if not sets:
        return f"None of {membership.total:,} pages is held."
    parts = [
        f"{', '.join(_escape_name(name) for name in membership.archive_ids(held))}: {count:,} "
        f"page{'' if count == 1 else 's'}"
        for held, count in sets[:3]
    ]
    are = "is" if membership.held == 1 else "are"
    return f"Of {membership.total:,} pages {membership.held:,} {are} held. Most are held by {'; then '.join(parts)}."


def draw_years(years: Mapping[str, Mapping[str, tuple[int, int]]], page_count: int, pages: Mapping[str, int]) -> str:
    """Return mementos by year as bars, and as a line the share of pages with any memento of that year.

    years: as `Figures` has them. asked: pages in all. pages: by year, those with any memento of it.
    """
    named = [f"{year:04}" for year in range(int(min(years)), int(max(years)) + 1)][-120:] if years else []
    counts = {year: sum(copies for _, copies in years.get(year, {}).values()) for year in named}
    most = max(counts.values(), default=0) or 1
    step, tall = 30, 120
    shapes, line = [], []
    for at, year in enumerate(named):
        x = 10 + step * at
        height = tall * counts[year] / most
        rate = pages.get(year, 0) / page_count if page_count else 0.0
        title = f"<title>{year}: {counts[year]:,} mementos, {format_share(rate)} of pages</title>"
        shapes.append(
            f'<rect class="set" x="{x}" y="{20 + tall - height:.2f}" width="{step - 8}" height="{height:.2f}" '
            f'fill="{_BAR}">{title}</rect>'
        )
        if len(named) <= 25 or at % 5 == 0:  # more labels would touch each other
            shapes.append(f'<text x="{x + 11}" y="{tall + 36}" text-anchor="middle" {_FONT}>{year}</text>')
        line.append(f"{x + 11},{20 + tall * (1 - rate):.2f}")
    if line:
        points = f'points="{" ".join(line)}"'
        shapes.append(f'<polyline class="rate" {points} fill="none" stroke="#c8871a" stroke-width="2.5"/>')
    width = 20 + step * max(len(named), 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {tall + 44}" width="{width}" role="img" '
        f'aria-labelledby="years-title"><title id="years-title">Mementos by year (bars), and the share of pages with '
        f"a memento of that year (line, from 0 to 100 %)</title>{''.join(shapes)}</svg>"
    )


def draw_similarity(points: Sequence[tuple[float, float]]) -> str:
    """Return likeness (from 0 at the bottom to 1) against staleness in days, on a scale of powers of ten."""
    wide, tall = 360, 160
    last = max(3.0, *(log10(1 + days) for days, _ in points)) if points else 3.0
    shapes = [f'<path d="M40 10V{tall + 10}H{wide + 44}" fill="none" stroke="#77777f"/>']
    for days in (0, 1, 10, 100, 1_000, 10_000):
        if log10(1 + days) <= last:
            x = 40 + wide * log10(1 + days) / last
            shapes.append(f'<text x="{x:.1f}" y="{tall + 26}" text-anchor="middle" {_FONT}>{days:,}</text>')
    shapes += [
        f'<text x="36" y="{tall + 14 - tall * value / 100:g}" text-anchor="end" {_FONT}>{value} %</text>'
        for value in (0, 50, 100)
    ]
    for stale, alike in points:
        x, y = 40 + wide * log10(1 + stale) / last, 10 + tall * (1 - alike)
        shapes.append(f'<circle class="pair" cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{_BAR}" fill-opacity="0.5"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide + 60} {tall + 32}" width="{wide + 60}" role="img" '
        f'aria-labelledby="likeness-title"><title id="likeness-title">Words in common of live page and copy, against '
        f"the days by which the copy is stale</title>{''.join(shapes)}</svg>"
    )


def _escape_name(text: str) -> str:
    """Return a name that cannot be anything else in SVG, nor endless."""
    short = text if len(text) <= _MAX_NAME_LENGTH else text[: _MAX_NAME_LENGTH - 1] + "…"
    return escape(escape_unprintable(short))


_MAX_COLUMNS = 16  # archives that have a column each: more are no table that anybody reads


def overlap_headline(figures: OverlapStats) -> str:
    """Return in a sentence how much is held."""
    found = figures.membership
    if not found.total:
        return f"Nothing is known yet about who holds the {format_count(figures.size, 'page')}."
    least, most = min(1, len(found.archives)), len(found.archives)
    several = sum(count for number, count in found.by_archive_count() if number > least)
    archives = "the archive" if most == 1 else f"{most} archives"
    share = format_share(found.held / found.total)
    text = f"{found.held:,} of {format_count(found.total, 'page')} ({share}) are held by {archives}"
    return text + ("." if most == 1 else f", {several:,} of them by more than one.")


def overlap_remarks(figures: OverlapStats) -> list[str]:
    """Return what must be known to read the numbers."""
    found = []
    if figures.unresponsive:
        found.append(f"No answer at all came from {', '.join(figures.unresponsive)}: not counted below.")
    if figures.unsettled:
        found.append(
            f"{format_count(figures.unsettled, 'page')} of {figures.size:,} not counted where archives are "
            "compared, since "
            "not all archives answered for them."
        )
    found += [_cover_sentence(each, figures) for each in figures.minimum_covers]
    if figures.covers and not all(each.is_proven for each in figures.covers):
        found.append("There are too many sets to try them all: some of these are found by taking what adds most.")
    return found


def _cover_sentence(fewest: MinimumCover, figures: OverlapStats) -> str:
    names = ", ".join(fewest.cover.archives)
    covered = format_share(fewest.cover.covered / figures.membership.held)
    proof = "no fewer will do" if fewest.is_proven else "perhaps fewer would do"
    number = format_count(len(fewest.cover.archives), "archive")
    return f"For {format_share(fewest.level)} of what is held: {number} ({names}), with {covered}; {proof}."


def holdings_tables(figures: OverlapStats) -> list[ReportTable]:
    """Return the tables about lists; those without rows are left out."""
    tables = [
        _archives_table(figures), _sets_table(figures), _archive_counts_table(figures), _pairs_table(figures),
        _covers_table(figures),
        _mementos_table(figures), _tlds_table(figures), _years_table(figures),
    ]  # fmt: skip
    return [table for table in tables if table.rows]


def format_interval(value: Proportion) -> str:
    """Return the interval of a share in words.

    >>> format_interval(Proportion(8, 10)), format_interval(Proportion(0, 0))
    ('49 to 94 %', '')
    """
    low, high = value.interval()
    return f"{100 * low:.0f} to {100 * high:.0f} %" if value.total else ""


def _archives_table(figures: OverlapStats) -> ReportTable:
    places = {name: place for place, name in enumerate(figures.membership.archives)}
    rows = []
    for each in figures.archives:
        place = places.get(each.archive)
        alone = "" if place is None else f"{figures.membership.held_only_by(place):,}"
        behind = f"{sorted(each.ages)[len(each.ages) // 2]:,.0f}" if each.ages else ""
        numbers = (each.mementos, each.only_errors, each.excluded, each.cut_lists, each.failed.total())
        rows.append((
            each.archive, f"{each.answered:,}", f"{each.held:,}", format_share(each.hit_rate.value),
            format_interval(each.hit_rate),
            alone, *(f"{number:,}" for number in numbers), behind,
        ))  # fmt: skip
    heads = (
        "archive", "answered", "held", "share", "of all", "alone", "mementos", "only errors", "not shown", "cut",
        "no answer", "days behind",
    )  # fmt: skip
    note = (
        "Held: at least one copy is listed that is neither an error nor a redirect, as far as the list tells. Of all: "
        "where the share of all pages like these lies, 95 times in 100. Alone: no other archive has it. Days behind: "
        "from an archive's last copy to the last one of all archives, for the middle page."
    )
    return ReportTable("Archives", heads, rows, note)


def _sets_table(figures: OverlapStats) -> ReportTable:
    found = figures.membership
    sets = list(found.sets())
    rows = [
        (", ".join(found.archive_ids(held)), f"{count:,}", format_share(count / found.held))
        for held, count in sets[:MAX_SETS]
    ]
    rest = sum(count for _, count in sets[MAX_SETS:])
    if rest:
        rows.append((f"{len(sets) - MAX_SETS:,} other sets", f"{rest:,}", format_share(rest / found.held)))
    note = "Pages that exactly these archives hold, and no other."
    return ReportTable("Who holds what, alone and together", ("archives", "pages", "of what is held"), rows, note)


def _archive_counts_table(figures: OverlapStats) -> ReportTable:
    total = figures.membership.total
    rows = [
        (str(number), f"{count:,}", format_share(count / total))
        for number, count in figures.membership.by_archive_count()
        if total
    ]
    return ReportTable("By how many archives a page is held", ("archives", "pages", "share"), rows)


def _pairs_table(figures: OverlapStats) -> ReportTable:
    found = figures.membership
    places = range(len(found.archives))
    if not 2 <= len(found.archives) <= _MAX_COLUMNS or not found.held:
        return ReportTable("", (), ())
    rows = []
    for first in places:
        held = found.held_by_archive(first)
        cells = [
            "" if first == second or not held else format_share(found.held_by_both(first, second) / held)
            for second in places
        ]
        rows.append((found.archives[first], f"{held:,}", *cells))
    note = "Of the pages that the archive of a row holds, the share that the archive of the column holds, too."
    return ReportTable("Two by two", ("archive", "held", *found.archives), rows, note)


def _covers_table(figures: OverlapStats) -> ReportTable:
    rows = [
        (
            str(len(each.archives)),
            f"{each.covered:,}",
            format_share(each.covered / figures.membership.held),
            "yes" if each.is_proven else "no",
            ", ".join(each.archives),
        )
        for each in figures.covers
    ]
    note = "The archives that together hold most, for each number of them. Proven: no other set of so many holds more."
    heads = ("archives", "pages", "of what is held", "proven", "which")
    return ReportTable("The best sets of archives", heads, rows, note, frozenset({0, 4}))


def _mementos_table(figures: OverlapStats) -> ReportTable:
    total = figures.mementos
    rows = [
        (str(number), archive, f"{so_far:,}", format_share(so_far / total))
        for number, (archive, so_far) in enumerate(figures.memento_covers, 1)
    ]
    note = "A memento is in one archive, so the fewest archives for a share of them are those with most."
    heads = ("archives", "and", "mementos so far", "share")
    return ReportTable("The same for mementos", heads, rows, note, frozenset({0, 1}))


def _tlds_table(figures: OverlapStats) -> ReportTable:
    archives = figures.archives if len(figures.archives) <= _MAX_COLUMNS else ()
    listed = {tld for tld, _, _ in figures.tlds}
    rows = []
    for tld, pages, held in figures.tlds:
        cells = []
        for each in archives:
            others = sum(count for name, count in each.held_tlds.items() if name not in listed)
            count = others if tld == "other" else each.held_tlds[tld]
            cells.append(format_share(count / pages))
        rows.append((tld, f"{pages:,}", format_share(held / pages), *cells))
    heads = ("domain", "pages", "held", *(each.archive for each in archives))
    return ReportTable(
        "Top-level domains", heads, rows, "Held by anybody, then the share of its pages that each archive holds."
    )


def _years_table(figures: OverlapStats) -> ReportTable:
    archives = figures.archives if len(figures.archives) <= _MAX_COLUMNS else ()
    rows = []
    for year, counts in figures.years.items():
        pages = figures.year_pages.get(year, 0)
        mementos = sum(copies for _, copies in counts.values())
        cells = (f"{counts.get(each.archive, (0, 0))[1]:,}" for each in archives)
        rows.append((year, f"{pages:,}", format_share(pages / figures.size), f"{mementos:,}", *cells))
    heads = ("year", "pages", "hit rate", "mementos", *(each.archive for each in archives))
    note = "Pages of which any archive lists a copy of that year, and how many copies; then copies by archive."
    return ReportTable("Copies by year", heads, rows, note)


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
            each.archive, f"{same.total:,}", format_share(same.value), f"{found.count:,}", *numbers,
            format_correlation(live.points)
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

    >>> format_correlation([(1, 1.0), (2, 0.5), (3, 0.0)]), format_correlation([(1, 1.0), (1, 0.5)])
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
            each.archive, f"{live.html:,}", format_share(Proportion(live.noarchive, live.html).value),
            f"{live.answered:,}",
            format_share(refusing.value), format_share(kept.value),
        ))  # fmt: skip
    heads = ("archive", "live HTML", "noarchive", "live pages", "no cache", "of these kept")
    return ReportTable("Live pages that ask not to be kept", heads, rows)


def overlap_to_json(figures: OverlapStats) -> dict[str, object]:
    """Return all numbers, as JSON has them."""
    found = figures.membership
    total = figures.mementos
    return {
        "pages": figures.size,
        "compared": found.total,
        "held": found.held,
        "unsettled": figures.unsettled,
        "without_answer": list(figures.unresponsive),
        "archives": [_archive_to_json(each, figures) for each in figures.archives],
        "sets": [{"archives": list(found.archive_ids(held)), "pages": count} for held, count in found.sets()],
        "by_number": dict(found.by_archive_count()),
        "best": [
            {"archives": list(each.archives), "pages": each.covered, "proven": each.is_proven}
            for each in figures.covers
        ],
        "fewest": [
            {
                "level": each.level,
                "archives": list(each.cover.archives),
                "pages": each.cover.covered,
                "proven": each.is_proven,
            }
            for each in figures.minimum_covers
        ],
        "best_for_mementos": [
            {"archive": archive, "so_far": so_far, "share": so_far / total}
            for archive, so_far in figures.memento_covers
        ],
        "tlds": [{"tld": tld, "pages": pages, "held": held} for tld, pages, held in figures.tlds],
        "years": {
            year: {
                "pages": figures.year_pages.get(year, 0),
                "archives": {
                    archive: {"pages": pages, "mementos": copies} for archive, (pages, copies) in each.items()
                },
            }
            for year, each in figures.years.items()
        },
    }


def _archive_to_json(each: ArchiveOverlapStats, figures: OverlapStats) -> dict[str, object]:
    found = figures.membership
    place = found.archives.index(each.archive) if each.archive in found.archives else None
    return {
        "archive": each.archive,
        "answered": each.answered,
        "held": each.hit_rate.to_json(),
        "alone": None if place is None else found.held_only_by(place),
        "mementos": each.mementos,
        "only_errors": each.only_errors,
        "excluded": each.excluded,
        "cut": each.cut_lists,
        "without_answer": {reason or "not-asked": count for reason, count in each.failed.items()},
        "days_behind": asdict(summarize_values(each.ages)),
        "copies": {
            "fetched": each.fetched,
            "missed": each.miss_rate.to_json(),
            "misses": dict(each.misses),
            "failed": dict(each.failed_fetches),
            "errors": each.error_captures,
            "types": dict(each.types),
            "bytes": asdict(summarize_values(each.sizes)),
            "truncated": Proportion(each.truncated, len(each.sizes)).to_json(),
            "noarchive": Proportion(each.noarchive, each.html).to_json(),
            "robots": dict(each.robots),
            "cache_control": Proportion(each.no_cache, len(each.sizes)).to_json(),
        },
        "live": _live_to_json(each) if figures.has_live else None,
    }


def _live_to_json(each: ArchiveOverlapStats) -> dict[str, object]:
    live = each.live
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


def render_overlap_page(figures: OverlapStats, name: str) -> str:
    """Return the page: HTML with everything in it, the same for the same figures. Everything in it is escaped.

    name: what the list of pages is called.
    """
    pairs = [(each.archive, draw_similarity(each.live.points)) for each in figures.archives if each.live.points]
    return (
        make_template_environment("unlost.research")
        .get_template("overlap.html")
        .render(
            name=name,
            headline=overlap_headline(figures),
            remarks=overlap_remarks(figures),
            membership=figures.membership,
            drawing=draw_overlap(figures.membership),
            described=describe_overlap(figures.membership),
            years=draw_years(figures.years, figures.size, figures.year_pages) if figures.years else "",
            pairs=pairs,
            holdings=holdings_tables(figures),
            copies=capture_tables(figures),
        )
    )
