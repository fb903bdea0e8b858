"""Firefox's cache as an archive, created by a real Firefox."""

import shutil
from pathlib import Path

import pytest

from tests.archives.local.cached_pages import check_damage, check_deletion_after_listing, check_pages, entry
from tests.external import firefox
from tests.external.lost_site import HOME
from unlost.archives import FirefoxCacheClient, firefox_data_folder
from unlost.registry import ArchiveKind

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a profile that visited the lost site twice, since a busy browser may exit before it stored everything."""
    folder = tmp_path_factory.mktemp("firefox") / "profile"
    firefox.visit(folder)
    firefox.visit(folder)
    return folder


def test_firefox_pages_are_returned_byte_for_byte(profile: Path) -> None:
    """With status, type and date; forms and HEAD requests are omitted. This Firefox stores no frame redirects."""
    repository = FirefoxCacheClient(entry(ArchiveKind.FIREFOX, profile))
    check_pages(repository, frozenset({f"{HOME}old"}))
    assert repository.excluded_counts["other-method"] >= 1


def test_damaged_firefox_cache_raises_only_archive_errors(profile: Path, tmp_path: Path) -> None:
    """Real files are changed at random."""
    check_damage(
        FirefoxCacheClient, ArchiveKind.FIREFOX, firefox_data_folder(profile), tmp_path, seed=2, has_checksums=True
    )


def test_deleted_entry_is_missing(profile: Path, tmp_path: Path) -> None:
    """A running browser deletes entries."""
    folder = Path(shutil.copytree(firefox_data_folder(profile), tmp_path / "cache"))
    check_deletion_after_listing(FirefoxCacheClient(entry(ArchiveKind.FIREFOX, folder)), folder)
