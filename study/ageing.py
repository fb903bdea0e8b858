"""How maps, budgets and filters age: made of the older half of the posts, asked for the newer half."""

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
CAPTURED = 7  # of ten pages, whichever their keys say: the others the archive never has


def main() -> None:
    """Measure, write."""
    chapter = Chapter("ageing", "How they age")
    older, newer = halves()
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
        asked = [*older, *newer]
        trial = ConfigurationTrial([listed], folder, QuerySet(asked, asked, [1] * len(asked)))
        rows, kept = [], {}
        for one, (size, said) in tried(trial).items():
            before, after = list(zip(older, said, strict=False)), list(zip(newer, said[len(older) :], strict=True))
            then = share(yes for page, yes in before if is_captured(page))
            new = share(yes for page, yes in after if is_captured(page))
            denied = share(not yes for page, yes in after if not is_captured(page))
            right = share(yes == is_captured(page) for page, yes in after)
            rows.append((one, f"{size.compressed:,}", f"{then:.2%}", f"{new:.2%}", f"{denied:.2%}", f"{right:.2%}"))
            kept[one] = {"bytes": size.compressed, "then": then, "new": new, "denied": denied, "right": right}
    chapter.keep("ways", kept)
    heads = ("", "gzip bytes", "then", "new pages found", "others denied", "accuracy on the new half")
    chapter.table(heads, rows)
    chapter.gate(
        "held pages found on the day of making, at worst", min(one["then"] for one in kept.values()), at_least=1
    )
    chapter.line()
    wild, filtered = kept["weights 4,1"], kept[f"hosts + {BITS} bits"]
    chapter.line(
        f"A filter knows nothing of what is new: it finds {filtered['new']:.1%} of it, where the wildcards of weights "
        f"4, 1 find {wild['new']:.1%} and deny {wild['denied']:.1%} of the rest. Hence the age at which filters are "
        "not believed any more ([how maps age](map.md#age)): until then a filter, after that the map."
    )
    chapter.finish()


def halves() -> tuple[list[str], list[str]]:
    """Return the keys of pages of the older posts, and those that are new in the newer ones."""
    rows = read_links()
    keys = [None if isinstance(key, UriError) else key.partition("?")[0] for key in key_many(url for _, url in rows)]
    pages = [key for key in keys if key is not None]
    older = dict.fromkeys(pages[: len(pages) // 2])
    return list(older), [page for page in dict.fromkeys(pages[len(pages) // 2 :]) if page not in older]


def is_captured(page: str) -> bool:
    """Return whether the archive ever has a page, which hangs on its key alone."""
    return zlib.crc32(page.encode()) % 10 < CAPTURED


def tried(trial: ConfigurationTrial) -> dict[str, QueryDecisions]:
    """Return what each way costs and says."""
    said = {f"weights {pair[0]:g},{pair[1]:g}": each for pair, each in trial.try_weights(PAIRS)}
    hosts = dict(trial.try_weights([(float("inf"), 0.0)]))[float("inf"), 0.0]
    found = {"all keys": dict(trial.try_weights([(float("inf"),) * 2]))[(float("inf"),) * 2], **said}
    found["a map of hosts"] = hosts
    found[f"hosts + {BITS} bits"] = trial.try_filter(hosts, BITS)
    budget = MapBudget(said["weights 4,1"][0].compressed, "bytes")
    for one in (*divided(budget, with_filter=False), *divided(budget, with_filter=True)):
        found[f"{one.name} (those of weights 4,1)"] = trial.try_budget(one, ())
    return found


def divided(budget: MapBudget, *, with_filter: bool) -> list[RoutingConfiguration]:
    """Return a budget as a configuration."""
    return list_configurations(budgets=[budget], with_filter=with_filter)[1:]


def share(values: Iterable[bool]) -> float:
    """Return which share is true; 1 of nothing."""
    found = list(values)
    return sum(found) / len(found) if found else 1.0


if __name__ == "__main__":
    main()
