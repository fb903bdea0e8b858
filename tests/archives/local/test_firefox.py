"""Firefox's cache as an archive, made by a real Firefox."""

import shutil
from pathlib import Path

import pytest

from tests.archives.local.cached_pages import check_damage, check_pages, check_vanishing, entry
from tests.neighbours import firefox
from tests.neighbours.lost_site import HOME
from unlost.archives import FirefoxCacheClient, firefox_data_folder
from unlost.registry import ArchiveKind

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a profile that visited the lost site, twice: a browser that is busy may end before it has kept all."""
    folder = tmp_path_factory.mktemp("firefox") / "profile"
    firefox.visit(folder)
    firefox.visit(folder)
    return folder


def test_every_page_is_returned_byte_for_byte(profile: Path) -> None:
    """With status, type and date; forms and heads are no pages. This Firefox keeps no redirect of a frame."""
    repository = FirefoxCacheClient(entry(ArchiveKind.FIREFOX, profile))
    check_pages(repository, frozenset({f"{HOME}old"}))
    assert repository.excluded_counts["other-method"] >= 1


def test_damage_does_not_crash(profile: Path, tmp_path: Path) -> None:
    """Real files, changed at random."""
    check_damage(
        FirefoxCacheClient, ArchiveKind.FIREFOX, firefox_data_folder(profile), tmp_path, seed=2, has_checksums=True
    )


def test_deleted_entry_is_missing(profile: Path, tmp_path: Path) -> None:
    """As a browser deletes while it runs."""
    folder = Path(shutil.copytree(firefox_data_folder(profile), tmp_path / "cache"))
    check_vanishing(FirefoxCacheClient(entry(ArchiveKind.FIREFOX, folder)), folder)
