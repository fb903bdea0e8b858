"""Creates the client for an archive of the registry. Modules of clients are imported when needed.

A new archive kind needs a member of `unlost.registry.models.ArchiveKind`, a client module, and a line here.
"""

from collections.abc import Callable

from unlost.archives.base import ArchiveClient
from unlost.errors import UsageError
from unlost.http.models import HttpClient
from unlost.registry.models import Archive, ArchiveKind

# ruff: noqa: PLC0415  start-up: only the clients in use are loaded


def create_client(archive: Archive, client: HttpClient) -> ArchiveClient:
    """Return the client for an archive. It does not send a request or read a directory yet.

    Raises:
        UsageError: There is no client for this kind of archive.
    """
    if archive.kind not in _CLIENTS:
        raise UsageError(f"{archive.id}: there is no client for an archive of the kind {archive.kind}")
    return _CLIENTS[archive.kind](archive, client)


def _wayback(archive: Archive, client: HttpClient) -> ArchiveClient:
    from unlost.archives.cdx_client import WaybackClient

    return WaybackClient(archive, client)


def _pywb(archive: Archive, client: HttpClient) -> ArchiveClient:
    from unlost.archives.cdx_client import PywbClient

    return PywbClient(archive, client)


def _memento(archive: Archive, client: HttpClient) -> ArchiveClient:
    from unlost.archives.memento import MementoClient

    return MementoClient(archive, client)


def _common_crawl(archive: Archive, client: HttpClient) -> ArchiveClient:
    from unlost.archives.common_crawl import CommonCrawlClient

    return CommonCrawlClient(archive, client)


def _archive_today(archive: Archive, client: HttpClient) -> ArchiveClient:
    from unlost.archives.archive_today import ArchiveTodayClient

    return ArchiveTodayClient(archive, client)


def _files(archive: Archive, _: HttpClient) -> ArchiveClient:
    from unlost.archives.warc_files import WarcFilesClient

    return WarcFilesClient(archive)


def _har(archive: Archive, _: HttpClient) -> ArchiveClient:
    from unlost.archives.har import HarClient

    return HarClient(archive)


def _chromium(archive: Archive, _: HttpClient) -> ArchiveClient:
    from unlost.archives.chromium_cache import ChromiumCacheClient

    return ChromiumCacheClient(archive)


def _firefox(archive: Archive, _: HttpClient) -> ArchiveClient:
    from unlost.archives.firefox_cache import FirefoxCacheClient

    return FirefoxCacheClient(archive)


_CLIENTS: dict[ArchiveKind, Callable[[Archive, HttpClient], ArchiveClient]] = {
    ArchiveKind.WAYBACK: _wayback,
    ArchiveKind.PYWB: _pywb,
    ArchiveKind.MEMENTO: _memento,
    ArchiveKind.COMMON_CRAWL: _common_crawl,
    ArchiveKind.ARCHIVE_TODAY: _archive_today,
    ArchiveKind.FILES: _files,
    ArchiveKind.HAR: _har,
    ArchiveKind.CHROMIUM: _chromium,
    ArchiveKind.FIREFOX: _firefox,
}
