"""From an entry of the registry to its client."""

from pathlib import Path

import pytest

from tests.archives.stubs import Answers
from unlost.archives.archive import Archive, Kind
from unlost.archives.opening import open_repository
from unlost.errors import UsageError


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.LIVE])
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


def test_the_live_web_is_not_opened_as_an_archive() -> None:
    """No registry can have it, so that no job of the service sends requests to a site."""
    with pytest.raises(UsageError, match="no client for"):
        open_repository(Archive("live", "Live", Kind.LIVE), Answers())
