"""From an entry of the registry to its client."""

from pathlib import Path

import pytest

from tests.archives.stubs import Answers
from unlost.archives.archive import Archive, Kind
from unlost.archives.opening import open_repository


@pytest.mark.parametrize("kind", Kind)
def test_there_is_a_client_for_every_kind(kind: Kind, tmp_path: Path) -> None:
    """It speaks for the archive that it was opened for, and has asked nobody yet."""
    archive = Archive(
        "a",
        "A",
        kind,
        timemap="http://a.example/timemap/",
        cdx="http://a.example/cdx",
        replay="http://a.example/{filename}" if kind is Kind.COMMON_CRAWL else "http://a.example/{datetime}/{uri}",
        folder=str(tmp_path),
    )
    courier = Answers()
    assert open_repository(archive, courier).archive is archive
    assert courier.asked == []
