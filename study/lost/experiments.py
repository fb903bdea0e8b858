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

from study.lost.profiles import SiteProfile
from study.lost.recovery import RepositoryHoldings, recover_site, write_original
from study.lost.repository_models import REPOSITORY_MODELS, SiteHoldings
from study.lost.result import RecoveryResult
from study.lost.site import SimulatedSite
from study.lost.site_files import LAST_WEEK, FileKind, SiteFile
from unlost.comparison import open_site
from unlost.recovery import SELECTABLE_POLICIES, RecoverPolicy

SEED = 2006
"""Seed of all sites and repositories."""

ALL_ARCHIVES = tuple(habit.id for habit in REPOSITORY_MODELS)
ARCHIVE_SETS: tuple[tuple[str, ...], ...] = (*((name,) for name in ALL_ARCHIVES), ALL_ARCHIVES)
"""Sets of repositories for recoveries: each alone, then all together."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SiteHistory:
    """Changes of a site's files during the observed weeks.

    Attributes:
        site: Name of the site.
        first: Number of files in the first week.
        remaining: Number of these files that exist in the last week.
        new_shares: Share of new files in each week after the first.
        observed: Number of files that exist in at least two weeks.
        changed: Number of observed files that changed.
        pages: Number of observed pages.
        changed_pages: Number of pages that changed.
        restless_pages: Number of pages that changed every week.
    """

    site: str
    first: int
    remaining: int
    new_shares: tuple[float, ...]
    observed: int
    changed: int
    pages: int
    changed_pages: int
    restless_pages: int


@dataclass(frozen=True, slots=True)
class WeeklyRecoveries:
    """Weekly recoveries of a site, and the changes of the site."""

    results: tuple[RecoveryResult, ...]
    history: SiteHistory


def recover_once(profile: SiteProfile, seed: int = SEED) -> list[RecoveryResult]:
    """Recover a site as it is in week 0: under each policy, from each repository alone and from all together."""
    site = SimulatedSite(profile, seed)
    holdings = _all_holdings(site, seed, 0)
    found = []
    with tempfile.TemporaryDirectory(prefix="unlost-study-") as name:
        folder = Path(name)
        original = open_site(write_original(site, 0, folder / "original.warc"))
        for policy in SELECTABLE_POLICIES:
            for number, names in enumerate(ARCHIVE_SETS):
                selected = [holdings[each] for each in names]
                target = folder / f"{policy.value}{number}"
                found.append(recover_site(site, 0, policy, selected, original, target))
    return found


def recover_weekly(profile: SiteProfile, seed: int = SEED, weeks: int = LAST_WEEK) -> WeeklyRecoveries:
    """Recover a site in each of some weeks as it is then, from all repositories, under the knowledgeable policy."""
    site = SimulatedSite(profile, seed)
    site_holdings = [SiteHoldings(habit, site, seed) for habit in REPOSITORY_MODELS]
    found = []
    for week in range(1, weeks + 1):
        with tempfile.TemporaryDirectory(prefix="unlost-study-") as name:
            folder = Path(name)
            original = open_site(write_original(site, week, folder / "original.warc"))
            holdings: list[RepositoryHoldings] = [(each.model, each.captures_at(week)) for each in site_holdings]
            found.append(recover_site(site, week, RecoverPolicy.KNOWLEDGEABLE, holdings, original, folder / "recovery"))
    return WeeklyRecoveries(tuple(found), summarize_history(site, range(1, weeks + 1)))


def _all_holdings(site: SimulatedSite, seed: int, week: int) -> dict[str, RepositoryHoldings]:
    return {habit.id: (habit, SiteHoldings(habit, site, seed).captures_at(week)) for habit in REPOSITORY_MODELS}


def summarize_history(site: SimulatedSite, weeks: range) -> SiteHistory:
    """Summarize the changes of a site's files in some weeks."""
    first = site.files_in(weeks[0])
    seen = set(first)
    new_shares = []
    for week in weeks[1:]:
        current = site.files_in(week)
        new_shares.append(sum(each not in seen for each in current) / len(current))
        seen.update(current)
    bodies = {each: _bodies(site, each, weeks) for each in seen}
    observed = {each: found for each, found in bodies.items() if len(found) > 1}
    changed = [each for each, found in observed.items() if len(set(found)) > 1]
    pages = [each for each in observed if each.kind is FileKind.PAGE]
    return SiteHistory(
        site.profile.name,
        len(first),
        sum(each.exists_in(weeks[-1]) for each in first),
        tuple(new_shares),
        len(observed),
        len(changed),
        len(pages),
        sum(each.kind is FileKind.PAGE for each in changed),
        sum(
            all(one != other for one, other in zip(observed[each], observed[each][1:], strict=False)) for each in pages
        ),
    )


def _bodies(site: SimulatedSite, item: SiteFile, weeks: range) -> list[bytes]:
    return [site.version_in(item, week).body for week in weeks if item.exists_in(week)]


def run_for_sites(
    profiles: Sequence[SiteProfile], experiment: Callable[[SiteProfile], T], workers: int | None = None
) -> list[T]:
    """Run an experiment for each site in parallel processes; return the results in order."""
    return list(_run_parallel(profiles, experiment, workers or os.cpu_count() or 1))


def _run_parallel(profiles: Sequence[SiteProfile], experiment: Callable[[SiteProfile], T], workers: int) -> Iterator[T]:
    # Spawned, since a fork would inherit threads and locks.
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        # Largest sites first, for an even load.
        order = sorted(profiles, key=lambda profile: -profile.size)
        futures = {profile.name: pool.submit(experiment, profile) for profile in order}
        for profile in profiles:
            yield futures[profile.name].result()
            print(f"{profile.name}: {profile.size:,} files", file=sys.stderr)


def recover_all_once(
    profiles: Sequence[SiteProfile], seed: int = SEED, workers: int | None = None
) -> list[RecoveryResult]:
    """Run `recover_once` for each site; return all results."""
    return [each for found in run_for_sites(profiles, partial(recover_once, seed=seed), workers) for each in found]


def recover_all_weekly(
    profiles: Sequence[SiteProfile], seed: int = SEED, weeks: int = LAST_WEEK, workers: int | None = None
) -> list[WeeklyRecoveries]:
    """Run `recover_weekly` for each site."""
    return run_for_sites(profiles, partial(recover_weekly, seed=seed, weeks=weeks), workers)
