"""The dissertation's experiments: each archive alone and all together, under three policies; and week by week."""

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from study.lost.habits import HABITS, Keeping
from study.lost.items import LAST, Item, Kind
from study.lost.outcome import Outcome
from study.lost.profiles import Profile
from study.lost.recovering import Shelf, recovered, write_original
from study.lost.site import MadeSite
from unlost.comparison import open_site
from unlost.recovery import SELECTABLE_POLICIES, RecoverPolicy

SEED = 2006
"""What all sites and habits are drawn from."""

ALL = tuple(habit.id for habit in HABITS)
SETS: tuple[tuple[str, ...], ...] = (*((name,) for name in ALL), ALL)
"""The repositories that a site is recovered from: each alone, then all together."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Life:
    """What became of a site's files in the weeks that were looked at.

    first: how many it had in the first week. left: how many of these are there in the last.
    born: for each week but the first, which share of its files was never seen before.
    looked: how many files were there in at least two weeks; changed: how many of these were not the same in all.
    pages, changed_pages, restless_pages: of pages; restless ones were never the same twice.
    """

    site: str
    first: int
    left: int
    born: tuple[float, ...]
    looked: int
    changed: int
    pages: int
    changed_pages: int
    restless_pages: int


@dataclass(frozen=True, slots=True)
class Weeks:
    """What came of a site that was recovered every week, and what became of it meanwhile."""

    outcomes: tuple[Outcome, ...]
    life: Life


def lost_once(profile: Profile, seed: int = SEED) -> list[Outcome]:
    """Recover a site as it is in week 0: under each policy, from each repository alone and from all together."""
    site = MadeSite(profile, seed)
    shelves = _shelves(site, seed, 0)
    found = []
    with tempfile.TemporaryDirectory(prefix="unlost-study-") as name:
        folder = Path(name)
        original = open_site(write_original(site, 0, folder / "original.warc"))
        for policy in SELECTABLE_POLICIES:
            for number, names in enumerate(SETS):
                chosen = [shelves[each] for each in names]
                place = folder / f"{policy.value}{number}"
                found.append(recovered(site, 0, policy, chosen, original, place))
    return found


def lost_weekly(profile: Profile, seed: int = SEED, weeks: int = LAST) -> Weeks:
    """Recover a site in each of some weeks as it is then, from all repositories, under the knowledgeable policy."""
    site = MadeSite(profile, seed)
    keepings = [Keeping(habit, site, seed) for habit in HABITS]
    found = []
    for week in range(1, weeks + 1):
        with tempfile.TemporaryDirectory(prefix="unlost-study-") as name:
            folder = Path(name)
            original = open_site(write_original(site, week, folder / "original.warc"))
            shelves: list[Shelf] = [(keeping.habit, keeping.held(week)) for keeping in keepings]
            found.append(recovered(site, week, RecoverPolicy.KNOWLEDGEABLE, shelves, original, folder / "recovery"))
    return Weeks(tuple(found), life_of(site, range(1, weeks + 1)))


def _shelves(site: MadeSite, seed: int, week: int) -> dict[str, Shelf]:
    return {habit.id: (habit, Keeping(habit, site, seed).held(week)) for habit in HABITS}


def life_of(site: MadeSite, weeks: range) -> Life:
    """Return what became of a site's files in some weeks."""
    first = site.at(weeks[0])
    seen = set(first)
    born = []
    for week in weeks[1:]:
        now = site.at(week)
        born.append(sum(each not in seen for each in now) / len(now))
        seen.update(now)
    bodies = {each: _bodies(site, each, weeks) for each in seen}
    looked = {each: found for each, found in bodies.items() if len(found) > 1}
    changed = [each for each, found in looked.items() if len(set(found)) > 1]
    pages = [each for each in looked if each.kind is Kind.PAGE]
    return Life(
        site.profile.name,
        len(first),
        sum(each.is_there(weeks[-1]) for each in first),
        tuple(born),
        len(looked),
        len(changed),
        len(pages),
        sum(each.kind is Kind.PAGE for each in changed),
        sum(all(one != other for one, other in zip(looked[each], looked[each][1:], strict=False)) for each in pages),
    )


def _bodies(site: MadeSite, item: Item, weeks: range) -> list[bytes]:
    return [site.file(item, week).body for week in weeks if item.is_there(week)]


def of_all(profiles: Sequence[Profile], experiment: Callable[[Profile], T], workers: int | None = None) -> list[T]:
    """Do an experiment with each site, some at once in processes of their own; return what came of them, in order."""
    return list(_in_turn(profiles, experiment, workers or os.cpu_count() or 1))


def _in_turn(profiles: Sequence[Profile], experiment: Callable[[Profile], T], workers: int) -> Iterator[T]:
    # Processes begin anew: a fork would have the threads and locks of this one.
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        # The largest first, so that at the end nobody waits long for one.
        order = sorted(profiles, key=lambda profile: -profile.size)
        waiting = {profile.name: pool.submit(experiment, profile) for profile in order}
        for profile in profiles:
            yield waiting[profile.name].result()
            print(f"{profile.name}: {profile.size:,} files", file=sys.stderr)


def once_of_all(profiles: Sequence[Profile], seed: int = SEED, workers: int | None = None) -> list[Outcome]:
    """Return what comes of `lost_once` for each site, one after the other."""
    return [each for found in of_all(profiles, partial(lost_once, seed=seed), workers) for each in found]


def weekly_of_all(
    profiles: Sequence[Profile], seed: int = SEED, weeks: int = LAST, workers: int | None = None
) -> list[Weeks]:
    """Return what comes of `lost_weekly` for each site."""
    return of_all(profiles, partial(lost_weekly, seed=seed, weeks=weeks), workers)
