"""Recall and accuracy of maps and filters of an archive that grows after they were built.

Dates are those of the real link list: a page counts as captured on the day on which it was first posted. Seven in ten
pages belong to the archive; the others represent pages of the same sites that it never captures. Both are queried.
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
BUILD_DATES = [date(2012, 7, 1), date(2012, 10, 1), date(2013, 1, 1), date(2013, 4, 1)]
"""Build dates of maps and filters; several, so that no figure depends on a single date."""

AGES = [0, 1, 3, 7, 14, 30, 60, 90]  # days; the link list ends in summer 2013
BITS = 8

Pages = dict[str, date]
Figures = tuple[float, float, float]
Predictor = Callable[[list[str]], list[bool]]


def main() -> None:
    """Measure and write the report."""
    if not LINKS.exists():
        print(f"bench ageing: skipped, {LINKS.name} is not there (UNLOST_DATA)")
        return
    report = Report("ageing", "How maps and filters age")
    held, foreign = read_pages()
    report.line(
        f"{len(held):,} pages of an archive, {len(foreign):,} of the same sites that it never captures (real "
        f"addresses and dates, made-up captures). Maps and filters of {', '.join(map(str, BUILD_DATES))}; "
        "figures are their means."
    )
    found = [measure(built, held, foreign) for built in BUILD_DATES]
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
    """Return the first day of every page, for archived and for foreign pages; the key alone decides which one it is."""
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


def measure(built: date, held: Pages, foreign: Pages) -> list[tuple[float, dict[str, Figures]]]:
    """Return for each age the share of new archived pages, and three shares for each routing method.

    They are the shares of archived pages that are found, of new pages that are found, and of foreign pages that are
    rejected.
    """
    found = []
    with tempfile.TemporaryDirectory(prefix="unlost-bench-") as folder:
        predictors = build_predictors(Path(folder), [page for page, day in held.items() if day <= built])
        for age in AGES:
            day = built + timedelta(days=age)
            now = [page for page, first in held.items() if first <= day]
            new = [page for page in now if held[page] > built]
            others = [page for page, first in foreign.items() if first <= day]
            figures = {}
            for name, predict in predictors.items():
                rejected = 1 - mean(predict(others))
                figures[name] = mean(predict(now)), mean(predict(new)) if new else 1.0, rejected
            found.append((len(new) / len(now), figures))
    return found


def build_predictors(folder: Path, pages: list[str]) -> dict[str, Predictor]:
    """Build maps and a filter of pages; return the look-up function of each combination by name."""
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

    def map_only(name: str) -> Predictor:
        return lambda keys: [answer.held for answer in maps[name].lookup_keys_many(keys)]

    def map_and_filter(name: str) -> Predictor:
        return lambda keys: [
            a and b for a, b in zip(map_only(name)(keys), filtered.lookup_keys_many(keys), strict=True)
        ]

    def or_wildcard(name: str) -> Predictor:
        """Return a look-up that treats a wildcard match as a possible hit even if the filter rejects the key."""

        def predict(keys: list[str]) -> list[bool]:
            answers = maps[name].lookup_keys_many(keys)
            return [
                answer.held and (yes or (answer.matched or "").endswith("*"))
                for answer, yes in zip(answers, filtered.lookup_keys_many(keys), strict=True)
            ]

        return predict

    return {
        **{name: map_only(name) for name in options},
        "filter": filtered.lookup_keys_many,
        "W 1,1 and filter": map_and_filter("map W 1,1"),
        "hosts and filter": map_and_filter("map of hosts"),
        "W 1,1 and filter, perhaps newer asked": or_wildcard("map W 1,1"),
        "hosts and filter, perhaps newer asked": or_wildcard("map of hosts"),
    }


def mean(values: Iterable[float]) -> float:
    """Return the mean of numbers, or the share of true values."""
    found = list(values)
    return sum(found) / len(found)


if __name__ == "__main__":
    main()
