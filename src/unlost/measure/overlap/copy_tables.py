"""What the copies of a sample are like, and the live pages beside them, as tables for people."""

from itertools import pairwise

from unlost.measure.intervals import Share
from unlost.measure.overlap.figures import Figures
from unlost.measure.overlap.standing import Spread, Standing, spread
from unlost.measure.overlap.tables import interval
from unlost.shown.table import Table
from unlost.shown.words import share

_AGES = (0, 1, 10, 100, 1_000, 10**9)  # days, below which groups end
_KINDS = ("HTML", "PDF", "plain text", "Office", "images", "other", "unknown")
_MISSES = {
    "absent": "not there after all",
    "http-4xx": "an error (4xx)",
    "http-5xx": "an error (5xx)",
    "malformed": "no copy that can be read",
    "redirect": "redirects that lead nowhere",
    "excluded": "not shown",
    "archive-error": "a page by which the archive says that it has none",
}


def copies_tables(figures: Figures) -> list[Table]:
    """Return the tables about copies, and about live pages if anybody looked at them; without empty ones."""
    archives = [each for each in figures.archives if each.fetched or each.failed_fetches]
    tables = [_misses(archives), _types(archives), _sizes(archives), _directives(archives)]
    if figures.has_live:
        looked = [each for each in archives if _pages(each)]
        tables += [_states(looked), _staleness(looked), _likeness(looked), _by_age(looked), _live_directives(looked)]
    return [table for table in tables if table.rows]


def _misses(archives: list[Standing]) -> Table:
    rows = []
    for each in archives:
        why = ", ".join(f"{_MISSES.get(reason, reason)} {count:,}" for reason, count in each.misses.most_common())
        rows.append((
            each.archive, f"{each.fetched:,}", f"{each.misses.total():,}", share(each.miss_rate.value),
            interval(each.miss_rate), f"{each.bad:,}", f"{each.failed_fetches.total():,}", why,
        ))  # fmt: skip
    note = (
        "Copies that are listed as stored, and were fetched at random, one of a page: missed are those that did not "
        "come. Errors kept: copies that came and are errors or redirects of the original server. No answer: these say "
        "nothing about the archive, and are asked for again."
    )
    heads = ("archive", "fetched", "missed", "miss rate", "of all", "errors kept", "no answer", "why")
    return Table("Listed, but there?", heads, rows, note, frozenset({0, 7}))


def _types(archives: list[Standing]) -> Table:
    held = [each for each in archives if each.types]
    rows = [
        (kind, *(share(each.types[kind] / each.types.total()) for each in held))
        for kind in _KINDS
        if any(each.types[kind] for each in held)
    ]
    heads = ("type", *(each.archive for each in held))
    return Table("Types of the copies", heads, rows, "Shares of the copies that were fetched.")


def _sizes(archives: list[Standing]) -> Table:
    rows = []
    for each in archives:
        if each.sizes:
            found = spread(each.sizes)
            cut = Share(each.truncated, len(each.sizes))
            rows.append((each.archive, *_bytes(found), f"{each.truncated:,}", share(cut.value), interval(cut)))
    heads = ("archive", "copies", "mean", "middle", "largest", "not whole", "share", "of all")
    note = "Bytes without codings. Not whole: the archive says so, or the body breaks off."
    return Table("Sizes of the copies", heads, rows, note)


def _bytes(found: Spread) -> tuple[str, ...]:
    return (f"{found.count:,}", *(f"{value or 0:,.0f}" for value in (found.mean, found.median, found.most)))


def _directives(archives: list[Standing]) -> Table:
    rows = []
    for each in archives:
        if each.sizes:
            kept_out, refusing = Share(each.noarchive, each.html), Share(each.refusing, len(each.sizes))
            whom = ", ".join(f"{name} {count:,}" for name, count in sorted(each.robots.items()))
            rows.append((
                each.archive, f"{each.html:,}", f"{each.noarchive:,}", share(kept_out.value), whom,
                f"{each.refusing:,}", share(refusing.value), interval(refusing),
            ))  # fmt: skip
    heads = ("archive", "HTML", "noarchive", "share", "for", "no cache", "share", "of all")
    note = "No cache: copies whose headers had Cache-Control no-cache, no-store or private when they were captured."
    return Table("Copies of pages that ask not to be kept", heads, rows, note, frozenset({0, 4}))


def _pages(standing: Standing) -> int:
    live = standing.live
    return live.replicated + live.endangered + live.vulnerable + live.unrecoverable + live.unseen.total()


def _states(archives: list[Standing]) -> Table:
    rows = []
    for each in archives:
        live = each.live
        total = _pages(each) - live.unseen.total()
        counts = (live.replicated, live.endangered, live.vulnerable, live.unrecoverable)
        shares = (share(Share(count, total).value) for count in counts)
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
    return Table("Copies and live pages", heads, rows, note)


def _staleness(archives: list[Standing]) -> Table:
    rows = []
    for each in archives:
        found = spread(each.live.staleness)
        stale = Share(found.count, each.live.dated)
        values = (found.mean, found.median, found.deviation, found.least, found.most)
        numbers = ("" if value is None else f"{value:,.1f}" for value in values)
        rows.append((each.archive, f"{stale.of:,}", share(stale.value), interval(stale), *numbers))
    note = (
        "Days by which the live page is newer than the copy, by its Last-Modified, of copies that are a day behind or "
        "more; a copy that was made after the last change is not stale."
    )
    heads = ("archive", "dated", "stale", "of all", "mean", "middle", "deviation", "least", "most")
    return Table("Staleness", heads, rows, note)


def _likeness(archives: list[Standing]) -> Table:
    rows = []
    for each in archives:
        live, found = each.live, spread(each.live.alike)
        same = Share(live.identical, live.pairs)
        numbers = (share(found.mean), share(found.median)) if found.count else ("", "")
        rows.append((
            each.archive, f"{same.of:,}", share(same.value), f"{found.count:,}", *numbers, correlation(live.points)
        ))  # fmt: skip
    note = (
        "Identical: byte for byte. Text in common: the share of runs of ten words, markup removed. The last column "
        "tells whether staler copies differ more: -1 always, 0 not at all."
    )
    heads = ("archive", "pairs", "identical", "texts", "in common", "middle", "with staleness")
    return Table("Copies and live pages: how alike", heads, rows, note)


def _by_age(archives: list[Standing]) -> Table:
    points = [point for each in archives for point in each.live.points]
    rows = []
    for least, most in pairwise(_AGES):
        alike = [value for days, value in points if least <= days < most]
        if alike:
            name = "0" if most == 1 else f"{least:,} to {most - 1:,}" if most < _AGES[-1] else f"{least:,} or more"
            found = spread(alike)
            same = sum(value == 1 for value in alike)
            rows.append((name, f"{found.count:,}", share(found.mean), share(found.median), share(same / found.count)))
    heads = ("days stale", "pairs", "in common", "middle", "all in common")
    note = "Text in common of live pages and copies, by how stale the copies are, in all archives together."
    return Table("Likeness against staleness", heads, rows, note)


def correlation(points: list[tuple[float, float]]) -> str:
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


def _live_directives(archives: list[Standing]) -> Table:
    rows = []
    for each in archives:
        live = each.live
        refusing = Share(live.refusing, live.answered)
        kept = Share(live.refusing_held, live.refusing)
        rows.append((
            each.archive, f"{live.html:,}", share(Share(live.noarchive, live.html).value), f"{live.answered:,}",
            share(refusing.value), share(kept.value),
        ))  # fmt: skip
    heads = ("archive", "live HTML", "noarchive", "live pages", "no cache", "of these kept")
    return Table("Live pages that ask not to be kept", heads, rows)
