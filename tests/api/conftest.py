"""A home of its own for every test, so that nothing of the user's is read or changed."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Count limits, and keep maps, in the test's folder."""
    monkeypatch.setenv("UNLOST_HOME", str(tmp_path / "home"))
