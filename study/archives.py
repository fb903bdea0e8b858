"""The two archives of the study and their queries: real URLs, synthetic captures, and held-out pages."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from study.lists import read_hosts, read_links
from unlost.problems import Problems
from unlost.research import SynthIndexOptions, SynthQueryOptions, write_synthetic_index, write_synthetic_queries

SEED = 1
ARCHIVED_SHARE = 0.7  # share of a list in the archive; the rest is held out
CAPTURES_PER_URL = 2.77  # mean captures of a URL, from the second paper
QUERIES = 60_000
HELD_SHARE, NEAR_SHARE = 0.05, 0.35  # shares of the queries; fewer than one in twenty were held in the papers' logs


@dataclass(frozen=True, slots=True)
class StudyArchive:
    """An index with queries for archived pages, held-out pages, and pages of the other archive.

    Attributes:
        name: Name of the archive.
        index: CDXJ index.
        queries: File of queries.
        unrelated_queries: File of queries without held-out pages.
        held: Archived part of the list.
        hidden: Held-out part of the list.
    """

    name: str
    index: Path
    queries: Path
    unrelated_queries: Path
    held: Sequence[str]
    hidden: Sequence[str]

    @property
    def description(self) -> str:
        """Description in a line."""
        return f"{self.name}: {len(self.held):,} addresses in the archive, {len(self.hidden):,} held out"


def make_archives(folder: Path) -> list[StudyArchive]:
    """Return the deep and the broad archive; each is also queried for pages of the other."""
    hosts = read_hosts()
    links = list(dict.fromkeys(url for _, url in read_links()))
    return [make_archive("deep", hosts, links, folder), make_archive("broad", links, hosts, folder)]


def make_archive(name: str, listed: Sequence[str], others: Sequence[str], folder: Path) -> StudyArchive:
    """Create an archive from most of a list: an index with captures, and queries."""
    order = list(listed)
    random.Random(SEED).shuffle(order)  # noqa: S311  not a secret
    cut = round(len(order) * ARCHIVED_SHARE)
    held, hidden = order[:cut], order[cut:]
    files = {part: folder / f"{name}-{part}.txt" for part in ("held", "hidden", "others")}
    for part, urls in (("held", held), ("hidden", hidden), ("others", others)):
        files[part].write_text("".join(f"{url}\n" for url in urls))
    index, queries = folder / f"{name}.cdxj", folder / f"{name}-queries.txt"
    write_synthetic_index(SynthIndexOptions(round(CAPTURES_PER_URL * cut), SEED, files["held"]), index, Problems())
    options = SynthQueryOptions(
        count=QUERIES,
        held=HELD_SHARE,
        near=NEAR_SHARE,
        seed=SEED,
        near_urls=files["hidden"],
        unrelated_urls=files["others"],
    )
    write_synthetic_queries([index], options, queries, Problems())
    unrelated = folder / f"{name}-unrelated.txt"
    write_synthetic_queries([index], replace(options, near=0.0), unrelated, Problems())
    return StudyArchive(name, index, queries, unrelated, held, hidden)
