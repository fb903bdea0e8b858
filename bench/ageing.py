"""How maps and filters age: what they miss, and how often they are right, when the archive grows after they were made.

The real dates are those of the link list: a page counts as captured on the day on which it was first posted. Seven in
ten of the pages are the archive's; the others stand for pages of the same sites that it never captures. Both are asked
for.
"""

import gzip
import tempfile
import zlib
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from tests.real_data import DATA

from bench.measure import Report
from unlost.errors import UriError
from unlost.mementomap import (
    NO_LIMIT,
    REBUILD_AFTER_DAYS,
    Compaction,
    Filter,
    FilterOptions,
    Map,
    MapOptions,
    build_filter,
    build_map,
)
from unlost.uri import key_many

LINKS = DATA / "urls" / "reddit2013-links.tsv.gz"
MADE = [date(2012, 7, 1), date(2012, 10, 1), date(2013, 1, 1), date(2013, 4, 1)]
"""The days on which maps and filters are made: no figure hangs on one of them."""

AGES = [0, 1, 3, 7, 14, 30, 60, 90]  # days; the list ends in the summer of 2013
BITS = 8

Pages = dict[str, date]
Figures = tuple[float, float, float]
Says = Callable[[list[str]], list[bool]]


def main() -> None:
    """Measure, report, judge."""
    if not LINKS.exists():
        print(f"bench ageing: skipped, {LINKS.name} is not there (UNLOST_DATA)")
        return
    report = Report("ageing", "How maps and filters age")
    held, foreign = read_pages()
    report.line(
        f"{len(held):,} pages of an archive, {len(foreign):,} of the same sites that it never captures (real addresses "
        f"and dates, made-up captures). Maps and filters of {', '.join(map(str, MADE))}; figures are their means."
    )
    found = [measure(made, held, foreign) for made in MADE]
    names = list(found[0][0][1])
    grown = [mean(run[n][0] for run in found) for n in range(len(AGES))]
    tables: dict[str, Callable[[Figures], float]] = {
        "Misses: of the pages that are held on that day": lambda figures: 1 - figures[0],
        "Misses: of the pages that are new": lambda figures: 1 - figures[1],
        "Accuracy, with as many pages that are not held": lambda figures: (figures[0] + figures[2]) / 2,
    }
    means: dict[tuple[str, str, int], float] = {}
    for title, figure in tables.items():
        report.line("")
        report.line(f"| {title} | new | {' | '.join(names)} |")
        report.line("|---|---|" + "---|" * len(names))
        for n, age in enumerate(AGES):
            for name in names:
                means[title, name, age] = mean(figure(run[n][1][name]) for run in found)
            cells = (f"{means[title, name, age]:.2%}" for name in names)
            report.line(f"| after {age} days | {grown[n]:.2%} | {' | '.join(cells)} |")
    report.line("")
    missed, _, right = tables
    report.gate("pages found on the first day, at worst", 1 - max(means[missed, name, 0] for name in names), at_least=1)
    report.gate("accuracy of map and filter on the first day", means[right, names[4], 0], at_least=0.98)
    report.gate(
        f"misses of map and filter after {REBUILD_AFTER_DAYS} days, of one page in a hundred",
        means[missed, names[4], REBUILD_AFTER_DAYS] * 100,
        at_most=2,
    )
    report.finish()


def read_pages() -> tuple[Pages, Pages]:
    """Return the first day of every page, of the archive and of the others. Which it is hangs on its key alone."""
    with gzip.open(LINKS, "rt", encoding="utf-8", newline="\n") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    first: Pages = {}
    for row, key in zip(rows, key_many(row[2] for row in rows), strict=True):
        if not isinstance(key, UriError):
            page, day = key.partition("?")[0], datetime.fromtimestamp(int(row[0]), UTC).date()
            first[page] = min(day, first.get(page, day))
    parts: tuple[Pages, Pages] = {}, {}
    for page, day in first.items():
        parts[zlib.crc32(page.encode()) % 10 >= 7][page] = day
    return parts


def measure(made: date, held: Pages, foreign: Pages) -> list[tuple[float, dict[str, Figures]]]:
    """Return for each age the share of new archived pages, and three shares for each routing method.

    Those of archived pages that are found, of new pages that are found, and of foreign pages that are denied.
    """
    found = []
    with tempfile.TemporaryDirectory(prefix="unlost-bench-") as folder:
        ways = ask(Path(folder), [page for page, day in held.items() if day <= made])
        for age in AGES:
            day = made + timedelta(days=age)
            now = [page for page, first in held.items() if first <= day]
            new = [page for page in now if held[page] > made]
            others = [page for page, first in foreign.items() if first <= day]
            figures = {}
            for name, says in ways.items():
                denied = 1 - mean(says(others))
                figures[name] = mean(says(now)), mean(says(new)) if new else 1.0, denied
            found.append((len(new) / len(now), figures))
    return found


def ask(folder: Path, pages: list[str]) -> dict[str, Says]:
    """Make maps and a filter of pages, and return by name how they are asked."""
    listed = folder / "pages.txt"
    listed.write_text("".join(f"{page}\n" for page in pages))
    options = {
        "whole map": None,
        "map W 1,1": Compaction(1, 1),
        "map of hosts": Compaction(NO_LIMIT, 0),
    }
    maps = {}
    for number, (name, compaction) in enumerate(options.items()):
        build_map([listed], folder / f"{number}.ukvs", MapOptions(kind="urls", compaction=compaction))
        maps[name] = Map.load(folder / f"{number}.ukvs")
    build_filter([listed], folder / "a.filter", FilterOptions(kind="urls", bits=BITS))
    filtered = Filter.open(folder / "a.filter")

    def by(name: str) -> Says:
        return lambda keys: [answer.held for answer in maps[name].lookup_keys_many(keys)]

    def both(name: str) -> Says:
        return lambda keys: [a and b for a, b in zip(by(name)(keys), filtered.lookup_keys_many(keys), strict=True)]

    def newer(name: str) -> Says:
        """Where the filter says no, a wildcard says perhaps: asked all the same."""

        def says(keys: list[str]) -> list[bool]:
            answers = maps[name].lookup_keys_many(keys)
            return [
                answer.held and (yes or (answer.matched or "").endswith("*"))
                for answer, yes in zip(answers, filtered.lookup_keys_many(keys), strict=True)
            ]

        return says

    return {
        **{name: by(name) for name in options},
        "filter": filtered.lookup_keys_many,
        "W 1,1 and filter": both("map W 1,1"),
        "hosts and filter": both("map of hosts"),
        "W 1,1 and filter, perhaps newer asked": newer("map W 1,1"),
        "hosts and filter, perhaps newer asked": newer("map of hosts"),
    }


def mean(values: Iterable[float]) -> float:
    """Return the mean of some numbers, or the share of those that are true."""
    found = list(values)
    return sum(found) / len(found)


if __name__ == "__main__":
    main()
