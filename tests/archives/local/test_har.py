"""HAR files as an archive, including one written by a real Chromium."""

import asyncio
import gzip
import json
from pathlib import Path

import pytest

from tests.archives.local.cached_pages import HOSTS, check_damage, check_pages, entry, list_prefixes
from tests.external import chromium
from tests.external.lost_site import HOME
from unlost.archives import HarClient
from unlost.registry import ArchiveKind


@pytest.fixture(scope="module")
def har_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the HAR file of a visit to the lost site."""
    folder = tmp_path_factory.mktemp("har")
    chromium.visit(folder / "profile", har=folder / "files" / "visit.har")
    return folder / "files"


@pytest.mark.browser
def test_har_pages_are_returned_byte_for_byte(har_folder: Path) -> None:
    """Also for charsets other than UTF-8."""
    repository = HarClient(entry(ArchiveKind.HAR, har_folder / "visit.har"))
    results = check_pages(repository)
    assert results[f"{HOME}old"].redirect in ("/new.html", f"{HOME}new.html")
    assert repository.excluded_counts == {"other-method": 2, "part": 1}


@pytest.mark.browser
def test_compressed_file_is_equivalent(har_folder: Path, tmp_path: Path) -> None:
    """Compressed files in subfolders are read."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "visit.har.gz").write_bytes(gzip.compress((har_folder / "visit.har").read_bytes(), 1))
    check_pages(HarClient(entry(ArchiveKind.HAR, tmp_path)))


@pytest.mark.browser
def test_file_without_bodies_lists_pages_only(har_folder: Path, tmp_path: Path) -> None:
    """Tools can be configured to omit bodies."""
    document = json.loads((har_folder / "visit.har").read_text())
    for each in document["log"]["entries"]:
        each["response"]["content"].pop("text", None)
    (tmp_path / "visit.har").write_text(json.dumps(document))
    repository = HarClient(entry(ArchiveKind.HAR, tmp_path / "visit.har"))

    async def query() -> None:
        captures = {capture.uri: capture for capture in await list_prefixes(repository, *HOSTS)}
        assert await repository.fetch(captures[HOME]) is None
        assert await repository.get(HOME) is None

    asyncio.run(query())


@pytest.mark.browser
def test_damaged_har_raises_only_archive_errors(har_folder: Path, tmp_path: Path) -> None:
    """Real files are changed at random."""
    check_damage(HarClient, ArchiveKind.HAR, har_folder, tmp_path, seed=3, has_checksums=False)
