"""Databases for tests of jobs: SQLite and a real PostgreSQL, the same tests for both."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.external import postgresql
from tests.external.postgresql import Postgresql
from unlost.jobs import file_url


@pytest.fixture(scope="session")
def server() -> Iterator[Postgresql]:
    """Run PostgreSQL, once for all tests."""
    with postgresql.run_cluster() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of an empty database of either kind."""
    if request.param == "sqlite":
        return file_url(tmp_path / "jobs.sqlite")
    found: Postgresql = request.getfixturevalue("server")
    return found.create_database()
