"""From an archive of the registry to the client that can ask it: one table. A client is imported when it is needed."""

from collections.abc import Callable

from unlost.archives.archive import Archive, ArchiveKind
from unlost.archives.asking.question import HttpClient
from unlost.archives.repository import ArchiveClient
from unlost.errors import UsageError

# ruff: noqa: PLC0415  whoever asks one archive does not load the clients of all


def create_client(archive: Archive, client: HttpClient) -> ArchiveClient:
    """Return the client for an archive. Nothing is requested yet, and a folder on this machine is not read yet.

    Raises UsageError for a kind that no registry has.
    """
    if archive.kind not in _CLIENTS:
        raise UsageError(f"{archive.id}: there is no client for an archive of the kind {archive.kind}")
    return _CLIENTS[archive.kind](archive, client)


def _wayback(archive: Archive, client: HttpClient) -> ArchiveClient:
    from unlost.archives.clients.wayback import WaybackClient

    return WaybackClient(archive, client)


def _pywb(archive: Archive, client: HttpClient) -> ArchiveClient:
    from unlost.archives.clients.pywb import PywbClient

    return PywbClient(archive, client)


def _memento(archive: Archive, client: HttpClient) -> ArchiveClient:
    from unlost.archives.clients.memento import MementoClient

    return MementoClient(archive, client)


def _common_crawl(archive: Archive, client: HttpClient) -> ArchiveClient:
    from unlost.archives.clients.commoncrawl import CommonCrawlClient

    return CommonCrawlClient(archive, client)


def _archive_today(archive: Archive, client: HttpClient) -> ArchiveClient:
    from unlost.archives.clients.archivetoday import ArchiveTodayClient

    return ArchiveTodayClient(archive, client)


def _files(archive: Archive, _: HttpClient) -> ArchiveClient:
    from unlost.archives.local.files import ArchiveFiles

    return ArchiveFiles(archive)


def _har(archive: Archive, _: HttpClient) -> ArchiveClient:
    from unlost.archives.local.har import HarFiles

    return HarFiles(archive)


def _chromium(archive: Archive, _: HttpClient) -> ArchiveClient:
    from unlost.archives.local.chromium import ChromiumCache

    return ChromiumCache(archive)


def _firefox(archive: Archive, _: HttpClient) -> ArchiveClient:
    from unlost.archives.local.firefox import FirefoxCache

    return FirefoxCache(archive)


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
