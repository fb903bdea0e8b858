"""A recovery of the sample site, made once for all export tests."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.export.small_recovery import recover_small_site
from tests.recovery.command import Command
from tests.recovery.sample_site import sample_site, serve_site
from tests.recovery.site import ROOT, Site


@dataclass(frozen=True, slots=True)
class SampleRecovery:
    """A site and the folder of its recovery."""

    site: Site
    folder: Path


@pytest.fixture(scope="session")
def sample_recovery(tmp_path_factory: pytest.TempPathFactory) -> SampleRecovery:
    """Recover the sample site; its archives are stopped afterwards."""
    place = tmp_path_factory.mktemp("sample")
    with serve_site(sample_site()) as lost:
        command = Command(lost.registry(place), place / "sample.recovery", place / "home")
        assert command.run(ROOT).code == 0
    return SampleRecovery(lost.site, command.folder)


@pytest.fixture(scope="session")
def recovery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recover a small site with revisits and a parked page."""
    return recover_small_site(tmp_path_factory.mktemp("recovered") / "r")
