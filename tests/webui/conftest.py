"""A service with pages, archives of a small site and a mail server."""

from collections.abc import Iterator

import pytest

from tests.webui.environment import PagesEnvironment, run_environment


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PagesEnvironment]:
    """Run the service, its worker, the archives and the mail server once for all tests of pages."""
    with run_environment(tmp_path_factory.mktemp("pages")) as found:
        yield found
