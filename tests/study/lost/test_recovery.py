"""Tests of recoveries of generated sites against figures computed by hand."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from study.lost.experiments import ARCHIVE_SETS, recover_once, recover_weekly, summarize_history
from study.lost.profiles import ChangeRate, SiteProfile
from study.lost.recovery import RepositoryHoldings, recover_site, write_captures, write_original
from study.lost.repository_models import ARCHIVE, BROAD, FRESH, PATCHY, RepositoryCapture, SiteHoldings
from study.lost.result import RecoveryResult
from study.lost.site import FileVersion, SimulatedSite, week_timestamp
from study.lost.site_files import FileKind, SiteFile

from unlost.archives import WarcFilesClient
from unlost.clock import SystemClock
from unlost.comparison import ResourceCounts, open_site
from unlost.recovery import SELECTABLE_POLICIES, RecoverOptions, RecoverPolicy, RecoveryScheduler, WarcStore
from unlost.recovery.state import RecoveryState, StateReader
from unlost.registry import Archive, ArchiveKind

SITE = SiteProfile("tiny", 5, 3, 2, 5, ChangeRate.STILL, documents=1.0)
SMALL = SiteProfile("small", 12, 8, 3, 6, ChangeRate.LIVELY, documents=0.0)


class PlantedSite:
    """A still site of five pages, three images and two documents, and what repositories have of it.

    The broad engine has four of its pages, one of them in another version, and a fifth page that is gone and that
    nothing leads to; the archive has two images; the patchy engine has a document as a page, and lists the other, which
    it does not have; the fresh engine has nothing.
    """

    def __init__(self, folder: Path) -> None:
        self.site = SimulatedSite(SITE, 4)
        self.original = open_site(write_original(self.site, 0, folder / "original.warc"))
        self._folder = folder
        files = self.site.files_in(0)
        pages, images, documents = (
            [each for each in files if each.kind is kind] for kind in (FileKind.PAGE, FileKind.IMAGE, FileKind.DOCUMENT)
        )
        leaves = [each for each in pages if not any(below.exists_in(0) for below in each.children)]
        self.missing, self.changed = leaves[0], leaves[1]
        other = FileVersion("text/html", b"<p>quite another page than the one that is there now")
        gone = RepositoryCapture(
            "http://tiny.example/gone.html", week_timestamp(-9), other, migrated=False, is_miss=False
        )
        self.holdings: list[RepositoryHoldings] = [
            (ARCHIVE, [self._capture(each) for each in images[:2]]),
            (BROAD, [*(self._capture(each) for each in pages if each is not self.missing), gone]),
            (FRESH, []),
            (PATCHY, [self._capture(documents[0]), replace(self._capture(documents[1]), is_miss=True)]),
        ]
        page = next(each for each in self.holdings[1][1] if each.uri == self.site.uri(self.changed))
        self.holdings[1] = (
            BROAD,
            [replace(each, content=other) if each is page else each for each in self.holdings[1][1]],
        )

    def _capture(self, item: SiteFile) -> RepositoryCapture:
        is_document = item.kind is FileKind.DOCUMENT
        file = self.site.engine_version(item, 0) if is_document else self.site.version_in(item, 0)
        return RepositoryCapture(self.site.uri(item), week_timestamp(-1), file, migrated=is_document, is_miss=False)

    def recover(self, policy: RecoverPolicy) -> RecoveryResult:
        """Recover the site."""
        return recover_site(self.site, 0, policy, self.holdings, self.original, self._folder / policy.value)


@pytest.fixture
def planted_site(tmp_path: Path) -> PlantedSite:
    """Return the planted site."""
    return PlantedSite(tmp_path)


def test_counts_equal_planted_ones(planted_site: PlantedSite) -> None:
    """Five of ten files are identical, two changed, one of them similar, and three missing."""
    found = planted_site.recover(RecoverPolicy.KNOWLEDGEABLE)
    assert found.counts == ResourceCounts(identical=5, changed=2, missing=3, added=0)
    assert (found.texts, found.similar) == (2, 1)
    assert found.groups == {"HTML": (5, 4), "images": (3, 2), "other": (2, 1)}
    assert found.resources_by_archive == {"broad": 4, "archive": 2, "patchy": 1}
    assert found.recovered == 0.7
    # A failed capture counts as not held, so s5 equals s4.
    assert [round(level, 3) for level in found.levels] == [0.5, 0.5, 0.4, 0.3, 0.3]


def test_listing_and_capture_requests_are_counted(planted_site: PlantedSite) -> None:
    """One listing per repository, one request per file, and one for a failed capture."""
    found = planted_site.recover(RecoverPolicy.KNOWLEDGEABLE)
    assert found.requests_by_archive == {"archive": 1 + 2, "broad": 1 + 4, "fresh": 1, "patchy": 1 + 2}
    assert found.total_requests == 12
    assert found.efficiency == found.efficiency_without_added == 7 / 12


def test_exhaustive_policy_adds_unlinked_pages(planted_site: PlantedSite) -> None:
    """The unlinked page takes one more request."""
    found = planted_site.recover(RecoverPolicy.EXHAUSTIVE)
    assert found.counts == ResourceCounts(identical=5, changed=2, missing=3, added=1)
    assert found.total_requests == 13
    assert (found.efficiency, found.efficiency_without_added) == (8 / 13, 7 / 13)


def test_naive_policy_queries_all_repositories(planted_site: PlantedSite) -> None:
    """Pages and default lists are looked up in all four repositories, images until one has them."""
    found = planted_site.recover(RecoverPolicy.NAIVE)
    assert found.counts == ResourceCounts(identical=5, changed=2, missing=3, added=0)
    pages, documents, lists = 5, 2, 2
    lookups = {"archive": 3, "broad": 1, "fresh": 1, "patchy": 1}  # for images: two are in the first
    captures = {"archive": 2, "broad": 4, "fresh": 0, "patchy": 2}
    assert found.requests_by_archive == {
        name: pages + documents + lists + lookups[name] + captures[name] for name in lookups
    }


def test_empty_repository_recovers_nothing(planted_site: PlantedSite) -> None:
    """All resources are missing."""
    found = recover_site(
        planted_site.site,
        0,
        RecoverPolicy.KNOWLEDGEABLE,
        planted_site.holdings[2:3],
        planted_site.original,
        planted_site._folder / "none",
    )
    assert found.counts == ResourceCounts(missing=10)
    assert (found.resources_by_archive, found.requests_by_archive) == ({}, {"fresh": 1})


def test_simulated_archive_equals_warc_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same captures in memory and in a WARC yield the same site."""
    monkeypatch.setenv("UNLOST_HOME", str(tmp_path / "home"))
    site = SimulatedSite(SMALL, 4)
    held = SiteHoldings(replace(ARCHIVE, miss_rate=0.0), site, 4).captures_at(0)
    assert len(held) > 20
    original = open_site(write_original(site, 0, tmp_path / "original.warc"))
    recover_site(site, 0, RecoverPolicy.EXHAUSTIVE, [(ARCHIVE, held)], original, tmp_path / "ours")
    warc = write_captures(((each.uri, each.datetime, each.content) for each in held), tmp_path / "archive.warc")
    files = WarcFilesClient(Archive("archive", "files", ArchiveKind.FILES, folder=str(warc)))
    clock = SystemClock()
    (tmp_path / "theirs").mkdir()
    with RecoveryState(tmp_path / "theirs") as state:
        warcs = WarcStore(tmp_path / "theirs" / "warc", clock, "test")
        plan = RecoverOptions(site.url, policy=RecoverPolicy.EXHAUSTIVE)
        asyncio.run(RecoveryScheduler(plan, state, warcs, {"archive": files}, clock, lambda *_: None).run())
        warcs.close()
    with StateReader(tmp_path / "theirs") as reference, StateReader(tmp_path / "ours") as ours:
        found = {(each.name, each.datetime, each.digest) for each in ours.chosen_captures()}
        assert found == {(each.name, each.datetime, each.digest) for each in reference.chosen_captures()}
    assert len(found) == len({each.uri for each in held})


def test_short_study_is_reproducible() -> None:
    """Each repository alone and all together, with three policies."""
    found = recover_once(SMALL, 5)
    assert [(each.policy, each.archives) for each in found] == [
        (p.value, names) for p in SELECTABLE_POLICIES for names in ARCHIVE_SETS
    ]
    assert found == recover_once(SMALL, 5)
    together = [each for each in found if each.archives == ARCHIVE_SETS[-1]]
    for each in found:
        best = next(other for other in together if other.policy == each.policy)
        assert each.counts.back <= best.counts.back


def test_weekly_outcomes_follow_the_site() -> None:
    """Each week is compared with the site of that week, and its changes are counted from the same files."""
    site = SimulatedSite(SMALL, 5)
    found = recover_weekly(SMALL, 5, weeks=3)
    assert [each.week for each in found.results] == [1, 2, 3]
    assert [each.counts.original for each in found.results] == [len(site.files_in(week)) for week in (1, 2, 3)]
    assert found.history == summarize_history(site, range(1, 4))
    first = {each.path for each in site.files_in(1)}
    assert found.history.remaining == len(first & {each.path for each in site.files_in(3)})
    new = len({each.path for each in site.files_in(2)} - first)
    assert found.history.new_shares[0] == new / len(site.files_in(2))
