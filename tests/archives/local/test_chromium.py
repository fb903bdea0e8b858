"""Chromium's cache as an archive, created by a real Chromium."""

import shutil
from pathlib import Path

import pytest

from tests.archives.local.cached_pages import check_damage, check_deletion_after_listing, check_pages, entry
from tests.external import chromium
from tests.external.lost_site import HOME
from unlost.archives import ChromiumCacheClient, chromium_data_folder
from unlost.registry import ArchiveKind

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module", params=["simple", "blockfile", "sql"])
def profile(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a profile that visited the lost site, with its cache in one of three formats."""
    folder = tmp_path_factory.mktemp(request.param) / "profile"
    chromium.visit(folder, request.param)
    names = {"simple": "index-dir", "blockfile": "data_1", "sql": "sqldb0"}
    assert (chromium_data_folder(folder) / names[request.param]).exists(), "the browser made a cache of another form"
    return folder


def test_chromium_pages_are_returned_byte_for_byte(profile: Path) -> None:
    """With status, type and date; redirects have targets; ranges, forms and HEAD requests are omitted."""
    repository = ChromiumCacheClient(entry(ArchiveKind.CHROMIUM, profile))
    results = check_pages(repository)
    assert results[f"{HOME}old"].redirect == "/new.html"
    assert repository.excluded_counts["part"] == 1


def test_damaged_chromium_cache_raises_only_archive_errors(profile: Path, tmp_path: Path) -> None:
    """Real files are changed at random."""
    folder = chromium_data_folder(profile)
    is_simple = (folder / "index-dir").exists()
    check_damage(ChromiumCacheClient, ArchiveKind.CHROMIUM, folder, tmp_path, seed=1, has_checksums=is_simple)


def test_deleted_entry_is_missing(profile: Path, tmp_path: Path) -> None:
    """A running browser deletes entries."""
    folder = Path(shutil.copytree(chromium_data_folder(profile), tmp_path / "cache"))
    check_deletion_after_listing(ChromiumCacheClient(entry(ArchiveKind.CHROMIUM, folder)), folder)
