"""One service for all tests that only read from it."""

from collections.abc import Iterator

import pytest

from tests.web.client import Client, run_fixed_service


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Run the service with fixed results."""
    with run_fixed_service(tmp_path_factory.mktemp("service")) as client:
        yield client
