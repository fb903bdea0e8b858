"""Document readers shared by the tests of a module."""

from collections.abc import Iterator

import pytest

from unlost.documents import DocumentLimits, DocumentReader


@pytest.fixture(scope="module")
def documents() -> Iterator[DocumentReader]:
    """Provide a reader with the default limits except for the time."""
    with DocumentReader(limits=DocumentLimits(seconds=10)) as opened:
        yield opened
