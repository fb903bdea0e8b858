"""From an archive of the registry to the client that can ask it: one table. A client is imported when it is needed."""

from collections.abc import Callable

from unlost.archives.archive import Archive, Kind
from unlost.archives.asking.question import Asks
from unlost.archives.repository import Repository
from unlost.errors import UsageError

# ruff: noqa: PLC0415  whoever asks one archive does not load the clients of all


def open_repository(archive: Archive, courier: Asks) -> Repository:
    """Return the client for an archive. Nothing is requested yet, and a folder on this machine is not read yet.

    Raises UsageError for a kind that no registry has.
    """
    if archive.kind not in _CLIENTS:
        raise UsageError(f"{archive.id}: there is no client for an archive of the kind {archive.kind}")
    return _CLIENTS[archive.kind](archive, courier)


def _wayback(archive: Archive, courier: Asks) -> Repository:
    from unlost.archives.clients.wayback import WaybackArchive

    return WaybackArchive(archive, courier)


def _pywb(archive: Archive, courier: Asks) -> Repository:
    from unlost.archives.clients.pywb import PywbArchive

    return PywbArchive(archive, courier)


def _memento(archive: Archive, courier: Asks) -> Repository:
    from unlost.archives.clients.memento import MementoArchive

    return MementoArchive(archive, courier)


def _common_crawl(archive: Archive, courier: Asks) -> Repository:
    from unlost.archives.clients.commoncrawl import CommonCrawl

    return CommonCrawl(archive, courier)


def _archive_today(archive: Archive, courier: Asks) -> Repository:
    from unlost.archives.clients.archivetoday import ArchiveToday

    return ArchiveToday(archive, courier)


def _files(archive: Archive, _: Asks) -> Repository:
    from unlost.archives.local.files import ArchiveFiles

    return ArchiveFiles(archive)


def _har(archive: Archive, _: Asks) -> Repository:
    from unlost.archives.local.har import HarFiles

    return HarFiles(archive)


def _chromium(archive: Archive, _: Asks) -> Repository:
    from unlost.archives.local.chromium import ChromiumCache

    return ChromiumCache(archive)


def _firefox(archive: Archive, _: Asks) -> Repository:
    from unlost.archives.local.firefox import FirefoxCache

    return FirefoxCache(archive)


_CLIENTS: dict[Kind, Callable[[Archive, Asks], Repository]] = {
    Kind.WAYBACK: _wayback,
    Kind.PYWB: _pywb,
    Kind.MEMENTO: _memento,
    Kind.COMMON_CRAWL: _common_crawl,
    Kind.ARCHIVE_TODAY: _archive_today,
    Kind.FILES: _files,
    Kind.HAR: _har,
    Kind.CHROMIUM: _chromium,
    Kind.FIREFOX: _firefox,
}
