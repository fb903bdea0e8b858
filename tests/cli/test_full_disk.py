"""A full disk, and one that may only be read: what is made is there whole or not at all, and the message helps."""

from pathlib import Path

import pytest

from tests.cli.chores import CHORES, NETWORKED, prepare
from tests.crawl.live_site import Page, html, serve_live_site
from tests.recover.background_server import run_in_background
from tests.small_disk import run_on_small_disk
from unlost.testing import FakeArchive, write_registry


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make what commands read."""
    folder = tmp_path_factory.mktemp("read")
    prepare(folder)
    return folder


def tried(name: str, read: Path, folder: Path, *more: str) -> None:
    """Try a command on a disk of its own, which is there for it alone."""
    run_on_small_disk(folder, "2m", "tests.cli.full_disk", str(read), "{disk}", name, *more)


@pytest.mark.parametrize("name", CHORES)
def test_commands_that_write_files(name: str, read: Path, tmp_path: Path) -> None:
    """Nothing half-written has a final name, the code is 3, the file is named; with room again all is as ever."""
    tried(name, read, tmp_path)


@pytest.mark.parametrize("name", NETWORKED)
def test_commands_that_ask_and_keep(name: str, tmp_path: Path) -> None:
    """The same of those that keep what comes from others: what they have begun, they go on with."""
    pages: dict[str, Page] = {f"/{number}": html("/", more=f"<p>{number}</p>" * 900) for number in range(12)}
    pages["/"] = html(*pages)
    with run_in_background(serve_live_site(pages)) as site:
        held = {f"{site.url}{path}": [("2014-02-10", page.body)] for path, page in pages.items()}
        with FakeArchive(held) as archive:
            write_registry(tmp_path / "archives.toml", archive.registry_entry())
            tried(name, tmp_path, tmp_path, site.url)
