"""A service that takes orders by pages, with archives of a small site and a mail server, and a browser."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.neighbours import chromium
from tests.service.pages.place import Place, running_place


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Run Chromium, which reaches nothing but this machine; no longer than a file, since its loop forbids others."""
    with chromium.browser() as started:
        yield started


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Run the service, its worker, the archives and the mail server, once for all tests of pages."""
    with running_place(tmp_path_factory.mktemp("pages")) as found:
        yield found
