"""Accuracy of maps, budgets and filters that are built from the older half of the posts and queried for the newer."""

import tempfile
import zlib
from collections.abc import Iterable
from pathlib import Path

from study.chapter import Chapter
from study.lists import read_links
from unlost.errors import UriError
from unlost.mementomap import MapBudget
from unlost.research import ConfigurationTrial, QueryDecisions, QuerySet, RoutingConfiguration, list_configurations
from unlost.uri import key_many

PAIRS = ((4.0, 4.0), (4.0, 1.0), (1.0, 1.0), (4.0, 0.0))
BITS = 8
CAPTURED_TENTHS = 7  # of ten pages, selected by their keys; the archive never captures the others


def main() -> None:
    """Measure and write the chapter."""
    chapter = Chapter("ageing", "How they age")
    older, newer = split_by_date()
    held = [page for page in older if is_captured(page)]
    chapter.line(
        f"The broad list in the order of its posts. Seven in ten pages are the archive's, on the day of their post. "
        f"Maps and filters are made of the {len(held):,} that it has when half of the posts are over; asked is for "
        f"all {len(newer):,} pages that are new in the other half, of which the archive by then has seven in ten. "
        "*Then*: what was held when the map was made, of the older half. *New pages found*: of those captured since. "
        "*Others denied*: of those that it never has."
    )
    chapter.line()
    with tempfile.TemporaryDirectory(prefix="unlost-study-") as name:
        folder = Path(name)
        listed = folder / "held.txt"
        listed.write_text("".join(f"{page}\n" for page in held))
        queries = [*older, *newer]
        trial = ConfigurationTrial([listed], folder, QuerySet(queries, queries, [1] * len(queries)))
        rows, figures = [], {}
        for one, (size, decisions) in evaluate_configurations(trial).items():
            before, after = (
                list(zip(older, decisions, strict=False)),
                list(zip(newer, decisions[len(older) :], strict=True)),
            )
            then = true_share(yes for page, yes in before if is_captured(page))
            new = true_share(yes for page, yes in after if is_captured(page))
            denied = true_share(not yes for page, yes in after if not is_captured(page))
            right = true_share(yes == is_captured(page) for page, yes in after)
            rows.append((one, f"{size.compressed:,}", f"{then:.2%}", f"{new:.2%}", f"{denied:.2%}", f"{right:.2%}"))
            figures[one] = {"bytes": size.compressed, "then": then, "new": new, "denied": denied, "right": right}
    chapter.add_figure("ways", figures)
    heads = ("", "gzip bytes", "then", "new pages found", "others denied", "accuracy on the new half")
    chapter.table(heads, rows)
    chapter.gate(
        "held pages found on the day of making, at worst", min(one["then"] for one in figures.values()), at_least=1
    )
    chapter.line()
    by_weights, filtered = figures["weights 4,1"], figures[f"hosts + {BITS} bits"]
    chapter.line(
        f"A filter knows nothing of what is new: it finds {filtered['new']:.1%} of it, where the wildcards of weights "
        f"4, 1 find {by_weights['new']:.1%} and deny {by_weights['denied']:.1%} of the rest. Hence the age at which "
        "filters are not believed any more ([how maps age](map.md#age)): until then a filter, after that the map."
    )
    chapter.finish()


def split_by_date() -> tuple[list[str], list[str]]:
    """Return the keys of pages in older posts, and of pages that first occur in newer posts."""
    rows = read_links()
    keys = [None if isinstance(key, UriError) else key.partition("?")[0] for key in key_many(url for _, url in rows)]
    pages = [key for key in keys if key is not None]
    older = dict.fromkeys(pages[: len(pages) // 2])
    return list(older), [page for page in dict.fromkeys(pages[len(pages) // 2 :]) if page not in older]


def is_captured(page: str) -> bool:
    """Return whether the archive ever captures a page, which depends only on its key."""
    return zlib.crc32(page.encode()) % 10 < CAPTURED_TENTHS


def evaluate_configurations(trial: ConfigurationTrial) -> dict[str, QueryDecisions]:
    """Return the size and the decisions of each configuration."""
    decisions = {f"weights {pair[0]:g},{pair[1]:g}": each for pair, each in trial.try_weights(PAIRS)}
    hosts = dict(trial.try_weights([(float("inf"), 0.0)]))[float("inf"), 0.0]
    found = {"all keys": dict(trial.try_weights([(float("inf"),) * 2]))[(float("inf"),) * 2], **decisions}
    found["a map of hosts"] = hosts
    found[f"hosts + {BITS} bits"] = trial.try_filter(hosts, BITS)
    budget = MapBudget(decisions["weights 4,1"][0].compressed, "bytes")
    for one in (*budget_configurations(budget, with_filter=False), *budget_configurations(budget, with_filter=True)):
        found[f"{one.name} (those of weights 4,1)"] = trial.try_budget(one, ())
    return found


def budget_configurations(budget: MapBudget, *, with_filter: bool) -> list[RoutingConfiguration]:
    """Return a budget as a configuration."""
    return list_configurations(budgets=[budget], with_filter=with_filter)[1:]


def true_share(values: Iterable[bool]) -> float:
    """Return the share of true values; 1 if there are none."""
    found = list(values)
    return sum(found) / len(found) if found else 1.0


if __name__ == "__main__":
    main()
