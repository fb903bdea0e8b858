"""Clients are created from registry entries."""

from pathlib import Path

import pytest

from tests.archives.stubs import StubHttpClient
from unlost.archives import create_client
from unlost.errors import UsageError
from unlost.registry import Archive, ArchiveKind


@pytest.mark.parametrize("kind", [kind for kind in ArchiveKind if kind is not ArchiveKind.LIVE])
def test_every_kind_has_a_client(kind: ArchiveKind, tmp_path: Path) -> None:
    """The client belongs to its archive and has sent no request."""
    archive = Archive(
        "a",
        "A",
        kind,
        timemap="http://a.example/timemap/",
        cdx="http://a.example/cdx",
        replay="http://a.example/{filename}"
        if kind is ArchiveKind.COMMON_CRAWL
        else "http://a.example/{datetime}/{uri}",
        folder=str(tmp_path),
    )
    http_client = StubHttpClient()
    assert create_client(archive, http_client).archive is archive
    assert http_client.requests == []


def test_live_web_is_not_a_registry_archive() -> None:
    """A registry cannot contain it, so jobs of the service never send requests to live sites."""
    with pytest.raises(UsageError, match="no client for"):
        create_client(Archive("live", "Live", ArchiveKind.LIVE), StubHttpClient())
