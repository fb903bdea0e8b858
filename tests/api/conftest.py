"""A home for each test, so that nothing of the user is read or modified."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a home in the test's folder."""
    monkeypatch.setenv("UNLOST_HOME", str(tmp_path / "home"))
