"""Who holds what, as tables for people."""

from unlost.measure.intervals import Share
from unlost.measure.overlap.covering import Fewest
from unlost.measure.overlap.drawings import MOST_SETS
from unlost.measure.overlap.figures import Figures
from unlost.shown.table import Table
from unlost.shown.words import counted, share

_MOST_COLUMNS = 16  # archives that have a column each: more are no table that anybody reads


def headline(figures: Figures) -> str:
    """Return in a sentence how much is held."""
    found = figures.membership
    if not found.total:
        return f"Nothing is known yet about who holds the {counted(figures.size, 'page')}."
    least, most = min(1, len(found.archives)), len(found.archives)
    several = sum(count for number, count in found.by_number() if number > least)
    archives = "the archive" if most == 1 else f"{most} archives"
    text = (
        f"{found.held:,} of {counted(found.total, 'page')} ({share(found.held / found.total)}) are held by {archives}"
    )
    return text + ("." if most == 1 else f", {several:,} of them by more than one.")


def remarks(figures: Figures) -> list[str]:
    """Return what must be known to read the numbers."""
    found = []
    if figures.left_out:
        found.append(f"No answer at all came from {', '.join(figures.left_out)}: not counted below.")
    if figures.unsettled:
        found.append(
            f"{counted(figures.unsettled, 'page')} of {figures.size:,} not counted where archives are compared, since "
            "not all archives answered for them."
        )
    found += [_sentence(each, figures) for each in figures.fewest]
    if figures.choices and not all(each.is_best for each in figures.choices):
        found.append("There are too many sets to try them all: some of these are found by taking what adds most.")
    return found


def _sentence(fewest: Fewest, figures: Figures) -> str:
    names = ", ".join(fewest.choice.archives)
    covered = share(fewest.choice.covered / figures.membership.held)
    proof = "no fewer will do" if fewest.is_fewest else "perhaps fewer would do"
    number = counted(len(fewest.choice.archives), "archive")
    return f"For {share(fewest.level)} of what is held: {number} ({names}), with {covered}; {proof}."


def holdings_tables(figures: Figures) -> list[Table]:
    """Return the tables about lists; those without rows are left out."""
    tables = [
        _archives(figures), _sets(figures), _numbers(figures), _together(figures), _choices(figures),
        _mementos(figures), _tlds(figures), _years(figures),
    ]  # fmt: skip
    return [table for table in tables if table.rows]


def interval(value: Share) -> str:
    """Return the interval of a share in words.

    >>> interval(Share(8, 10)), interval(Share(0, 0))
    ('49 to 94 %', '')
    """
    low, high = value.interval()
    return f"{100 * low:.0f} to {100 * high:.0f} %" if value.of else ""


def _archives(figures: Figures) -> Table:
    places = {name: place for place, name in enumerate(figures.membership.archives)}
    rows = []
    for each in figures.archives:
        place = places.get(each.archive)
        alone = "" if place is None else f"{figures.membership.alone(place):,}"
        behind = f"{sorted(each.ages)[len(each.ages) // 2]:,.0f}" if each.ages else ""
        numbers = (each.mementos, each.only_bad, each.excluded, each.cut, each.failed.total())
        rows.append((
            each.archive, f"{each.asked:,}", f"{each.held:,}", share(each.hit_rate.value), interval(each.hit_rate),
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
    return Table("Archives", heads, rows, note)


def _sets(figures: Figures) -> Table:
    found = figures.membership
    sets = list(found.sets())
    rows = [(", ".join(found.names(held)), f"{count:,}", share(count / found.held)) for held, count in sets[:MOST_SETS]]
    rest = sum(count for _, count in sets[MOST_SETS:])
    if rest:
        rows.append((f"{len(sets) - MOST_SETS:,} other sets", f"{rest:,}", share(rest / found.held)))
    note = "Pages that exactly these archives hold, and no other."
    return Table("Who holds what, alone and together", ("archives", "pages", "of what is held"), rows, note)


def _numbers(figures: Figures) -> Table:
    total = figures.membership.total
    rows = [
        (str(number), f"{count:,}", share(count / total)) for number, count in figures.membership.by_number() if total
    ]
    return Table("By how many archives a page is held", ("archives", "pages", "share"), rows)


def _together(figures: Figures) -> Table:
    found = figures.membership
    places = range(len(found.archives))
    if not 2 <= len(found.archives) <= _MOST_COLUMNS or not found.held:
        return Table("", (), ())
    rows = []
    for first in places:
        held = found.held_by(first)
        cells = [
            "" if first == second or not held else share(found.together(first, second) / held) for second in places
        ]
        rows.append((found.archives[first], f"{held:,}", *cells))
    note = "Of the pages that the archive of a row holds, the share that the archive of the column holds, too."
    return Table("Two by two", ("archive", "held", *found.archives), rows, note)


def _choices(figures: Figures) -> Table:
    rows = [
        (
            str(len(each.archives)),
            f"{each.covered:,}",
            share(each.covered / figures.membership.held),
            "yes" if each.is_best else "no",
            ", ".join(each.archives),
        )
        for each in figures.choices
    ]
    note = "The archives that together hold most, for each number of them. Proven: no other set of so many holds more."
    heads = ("archives", "pages", "of what is held", "proven", "which")
    return Table("The best sets of archives", heads, rows, note, frozenset({0, 4}))


def _mementos(figures: Figures) -> Table:
    total = figures.mementos
    rows = [
        (str(number), archive, f"{so_far:,}", share(so_far / total))
        for number, (archive, so_far) in enumerate(figures.memento_choices, 1)
    ]
    note = "A memento is in one archive, so the fewest archives for a share of them are those with most."
    heads = ("archives", "and", "mementos so far", "share")
    return Table("The same for mementos", heads, rows, note, frozenset({0, 1}))


def _tlds(figures: Figures) -> Table:
    archives = figures.archives if len(figures.archives) <= _MOST_COLUMNS else ()
    listed = {tld for tld, _, _ in figures.tlds}
    rows = []
    for tld, pages, held in figures.tlds:
        cells = []
        for each in archives:
            others = sum(count for name, count in each.held_tlds.items() if name not in listed)
            count = others if tld == "other" else each.held_tlds[tld]
            cells.append(share(count / pages))
        rows.append((tld, f"{pages:,}", share(held / pages), *cells))
    heads = ("domain", "pages", "held", *(each.archive for each in archives))
    return Table(
        "Top-level domains", heads, rows, "Held by anybody, then the share of its pages that each archive holds."
    )


def _years(figures: Figures) -> Table:
    archives = figures.archives if len(figures.archives) <= _MOST_COLUMNS else ()
    rows = []
    for year, counts in figures.years.items():
        pages = figures.year_pages.get(year, 0)
        mementos = sum(copies for _, copies in counts.values())
        cells = (f"{counts.get(each.archive, (0, 0))[1]:,}" for each in archives)
        rows.append((year, f"{pages:,}", share(pages / figures.size), f"{mementos:,}", *cells))
    heads = ("year", "pages", "hit rate", "mementos", *(each.archive for each in archives))
    note = "Pages of which any archive lists a copy of that year, and how many copies; then copies by archive."
    return Table("Copies by year", heads, rows, note)
