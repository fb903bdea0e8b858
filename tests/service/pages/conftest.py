"""A service that takes orders by pages, with archives of a small site and a mail server."""

from collections.abc import Iterator

import pytest

from tests.service.pages.place import Place, running_place


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Run the service, its worker, the archives and the mail server, once for all tests of pages."""
    with running_place(tmp_path_factory.mktemp("pages")) as found:
        yield found
