"""The two archives of the study, and what they are asked: real addresses, made-up captures, parts held out."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from study.lists import read_hosts, read_links
from unlost.problems import Problems
from unlost.research import SynthIndexOptions, SynthQueryOptions, write_synthetic_index, write_synthetic_queries

SEED = 1
HELD_PART = 0.7  # of a list, in the archive; the rest is held out
CAPTURES = 2.77  # of an address, on average: the second paper's
QUESTIONS = 60_000
HELD, NEAR = 0.05, 0.35  # of the questions; fewer than one in twenty were held in the papers' logs


@dataclass(frozen=True, slots=True)
class Archive:
    """An index, and questions: some for what it holds, some for held-out pages, some for the other archive's.

    held, hidden: the two parts of the list. strangers: questions without any for held-out pages.
    """

    name: str
    index: Path
    queries: Path
    strangers: Path
    held: Sequence[str]
    hidden: Sequence[str]

    @property
    def description(self) -> str:
        """What it is, in a line."""
        return f"{self.name}: {len(self.held):,} addresses in the archive, {len(self.hidden):,} held out"


def both_archives(folder: Path) -> list[Archive]:
    """Return the deep archive and the broad one, each asked for some of the other's pages."""
    hosts = read_hosts()
    links = list(dict.fromkeys(url for _, url in read_links()))
    return [archive("deep", hosts, links, folder), archive("broad", links, hosts, folder)]


def archive(name: str, listed: Sequence[str], others: Sequence[str], folder: Path) -> Archive:
    """Make an archive of most of a list: an index with captures, and questions."""
    order = list(listed)
    random.Random(SEED).shuffle(order)  # noqa: S311  not a secret
    cut = round(len(order) * HELD_PART)
    held, hidden = order[:cut], order[cut:]
    files = {part: folder / f"{name}-{part}.txt" for part in ("held", "hidden", "others")}
    for part, urls in (("held", held), ("hidden", hidden), ("others", others)):
        files[part].write_text("".join(f"{url}\n" for url in urls))
    index, queries = folder / f"{name}.cdxj", folder / f"{name}-asked.txt"
    write_synthetic_index(SynthIndexOptions(round(CAPTURES * cut), SEED, files["held"]), index, Problems())
    plan = SynthQueryOptions(
        count=QUESTIONS, held=HELD, near=NEAR, seed=SEED, near_urls=files["hidden"], unrelated_urls=files["others"]
    )
    write_synthetic_queries([index], plan, queries, Problems())
    strangers = folder / f"{name}-strangers.txt"
    write_synthetic_queries([index], replace(plan, near=0.0), strangers, Problems())
    return Archive(name, index, queries, strangers, held, hidden)
