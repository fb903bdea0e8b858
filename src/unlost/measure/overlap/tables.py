"""Who holds what, as tables for people."""

from unlost.measure.intervals import Proportion
from unlost.measure.overlap.covering import MinimumCover
from unlost.measure.overlap.drawings import MAX_SETS
from unlost.measure.overlap.figures import OverlapStats
from unlost.shown.table import ReportTable
from unlost.shown.words import format_count, format_share

_MAX_COLUMNS = 16  # archives that have a column each: more are no table that anybody reads


def overlap_headline(figures: OverlapStats) -> str:
    """Return in a sentence how much is held."""
    found = figures.membership
    if not found.total:
        return f"Nothing is known yet about who holds the {format_count(figures.size, 'page')}."
    least, most = min(1, len(found.archives)), len(found.archives)
    several = sum(count for number, count in found.by_archive_count() if number > least)
    archives = "the archive" if most == 1 else f"{most} archives"
    text = f"{found.held:,} of {format_count(found.total, 'page')} ({format_share(found.held / found.total)}) are held by {archives}"
    return text + ("." if most == 1 else f", {several:,} of them by more than one.")


def overlap_remarks(figures: OverlapStats) -> list[str]:
    """Return what must be known to read the numbers."""
    found = []
    if figures.unresponsive:
        found.append(f"No answer at all came from {', '.join(figures.unresponsive)}: not counted below.")
    if figures.unsettled:
        found.append(
            f"{format_count(figures.unsettled, 'page')} of {figures.size:,} not counted where archives are compared, since "
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
        _archives_table(figures), _sets_table(figures), _archive_counts_table(figures), _pairs_table(figures), _covers_table(figures),
        _mementos_table(figures), _tlds_table(figures), _years_table(figures),
    ]  # fmt: skip
    return [table for table in tables if table.rows]


def format_interval(value: Proportion) -> str:
    """Return the interval of a share in words.

    >>> interval(Share(8, 10)), interval(Share(0, 0))
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
            each.archive, f"{each.answered:,}", f"{each.held:,}", format_share(each.hit_rate.value), format_interval(each.hit_rate),
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
