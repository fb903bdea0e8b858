"""A full disk, and a read-only one: output is complete or absent, and the message helps."""

from pathlib import Path

import pytest

from tests.cli.writing_commands import LOCAL_COMMANDS, NETWORK_COMMANDS, prepare
from tests.crawl.live_site import Page, html, serve_live_site
from tests.recovery.background_server import run_in_background
from tests.small_disk import run_on_small_disk
from unlost.testing import FakeArchive, write_registry


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the inputs of the commands."""
    folder = tmp_path_factory.mktemp("read")
    prepare(folder)
    return folder


def run_on_own_disk(name: str, inputs: Path, folder: Path, *more: str) -> None:
    """Run the trial of a command on its own small disk."""
    run_on_small_disk(folder, "2m", "tests.cli.full_disk", str(inputs), "{disk}", name, *more)


@pytest.mark.parametrize("name", LOCAL_COMMANDS)
def test_commands_that_write_files(name: str, inputs: Path, tmp_path: Path) -> None:
    """No partial output has the final name, the exit code is 3, the message has the file; later runs succeed."""
    run_on_own_disk(name, inputs, tmp_path)


@pytest.mark.parametrize("name", NETWORK_COMMANDS)
def test_commands_that_query_and_store(name: str, tmp_path: Path) -> None:
    """The same for commands that store responses: they resume."""
    pages: dict[str, Page] = {f"/{number}": html("/", more=f"<p>{number}</p>" * 900) for number in range(12)}
    pages["/"] = html(*pages)
    with run_in_background(serve_live_site(pages)) as site:
        captures = {f"{site.url}{path}": [("2014-02-10", page.body)] for path, page in pages.items()}
        with FakeArchive(captures) as archive:
            write_registry(tmp_path / "archives.toml", archive.registry_entry())
            run_on_own_disk(name, tmp_path, tmp_path, site.url)
