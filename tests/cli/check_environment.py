"""A home, a small decaying web and an archive of it, for checks and watches."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.cli.run import unlost
from tests.external.nginx import serve_site as served
from tests.external.wayback_cdx import FakeWayback, StoredCapture, fake_wayback
from tests.recovery.registry import registry
from tests.watch.decaying.archives import file_url
from tests.watch.decaying.web import DecayingWeb

Completed = subprocess.CompletedProcess[bytes]
WEB = DecayingWeb(bins=2, last=4)


class Home:
    """A user's home folder with a registry."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.registry = folder / "archives.toml"
        self.environment = {"UNLOST_HOME": str(folder), "UNLOST_CONTACT": "me@example.org"}

    async def run(self, *arguments: str) -> Completed:
        """Run a command while the servers of the test run."""
        options = ["--judge", "0"] if arguments[0] == "check" and "--judge" not in arguments else []
        options = [*arguments, *options, "--archives", str(self.registry), "--delay", "0"]
        return await asyncio.to_thread(unlost, *options, env=self.environment)

    @property
    def unfinished(self) -> list[Path]:
        """The unfinished checks."""
        return list((self.folder / "state" / "checks").glob("*"))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Make a home."""
    folder = tmp_path / "home"
    folder.mkdir()
    return Home(folder)


@pytest.fixture
def base(tmp_path: Path) -> Iterator[str]:
    """Serve a small decaying web on its first day."""
    for name in ("web", "work"):
        (tmp_path / name).mkdir()
    WEB.write(tmp_path / "web", 0)
    with served(tmp_path / "web", tmp_path / "work") as url:
        yield url


def captures(base: str, end: str = ".html") -> list[StoredCapture]:
    """Return captures of all files with an extension."""
    return [StoredCapture(file_url(base, path), "20240101000000") for path in WEB.files(0) if path.endswith(end)]


@asynccontextmanager
async def archives(home: Home, stored: list[StoredCapture]) -> AsyncIterator[FakeWayback]:
    """Run an archive that lists URLs, and write the registry."""
    async with fake_wayback(stored) as server:
        registry(home.registry, server.archive())
        yield server
