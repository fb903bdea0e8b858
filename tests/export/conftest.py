"""A recovery of the village, made once by the command for all tests that export it."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.export.recovered import recovered
from tests.recover.command import Command
from tests.recover.conftest import running_archives
from tests.recover.site import ROOT, Site
from tests.recover.village import running, village

__all__ = ["running_archives"]


@dataclass(frozen=True, slots=True)
class Recovered:
    """A site, and the folder that it was recovered into."""

    site: Site
    folder: Path


@pytest.fixture(scope="session")
def recovered_village(tmp_path_factory: pytest.TempPathFactory) -> Recovered:
    """Recover the village; its archives are gone afterwards."""
    place = tmp_path_factory.mktemp("village")
    with running(village()) as lost:
        command = Command(lost.registry(place), place / "village.recovery", place / "home")
        assert command.run(ROOT).code == 0
    return Recovered(lost.site, command.folder)


@pytest.fixture(scope="session")
def recovery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recover a small site with revisits and a parked page."""
    return recovered(tmp_path_factory.mktemp("recovered") / "r")
