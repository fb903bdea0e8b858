"""The archives of the lost site, started once for all tests that ask them."""

from collections.abc import Iterator

import pytest

from tests.recover.archives import Archives, archives
from tests.recover.reference_site import reference_site


@pytest.fixture(scope="session")
def running_archives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archives]:
    """Run three pywb that hold the lost site."""
    with archives(reference_site(), tmp_path_factory.mktemp("archives")) as running:
        yield running
