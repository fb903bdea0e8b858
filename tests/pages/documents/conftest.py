"""Processes that read documents, shared by the tests of a module."""

from collections.abc import Iterator

import pytest

from unlost.pages.documents import Documents, Limits


@pytest.fixture(scope="module")
def documents() -> Iterator[Documents]:
    """Give documents with the usual limits but for the time."""
    with Documents(limits=Limits(seconds=10)) as opened:
        yield opened
