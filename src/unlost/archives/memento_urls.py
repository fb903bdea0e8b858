"""URLs of mementos (URI-Ms): made from an archive's registry entry, and parsed."""

import re
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from unlost import dates
from unlost import uri as addresses
from unlost.errors import DateError, UriError
from unlost.registry.models import Archive
from unlost.uri.normalize import escape_url, normalize_input_url

_MODIFIER = re.compile(r"\{datetime\}[a-z]{2}_/")
# Fourteen digits are a date whatever follows; fewer only before an address with its scheme.
_MEMENTO_PATH = re.compile(
    r"/(?:(\d{14})(?:[a-z]{2}_)?/|(\d{1,13})(?:[a-z]{2}_)?/(?=https?:/))(.+)", re.DOTALL | re.ASCII
)
_SCHEME = re.compile(r"(https?):/*(?=[^/])", re.IGNORECASE)


class MementoUrl(NamedTuple):
    """What an address of a stored copy says. datetime: 1 to 14 digits, or nothing; uri: the original address."""

    datetime: str
    uri: str


def raw_memento_url(archive: Archive, datetime: str, uri: str) -> str | None:
    """Return where an archive gives a copy as it was captured; None if the registry knows no such place."""
    if archive.replay is None:
        return None
    return archive.replay.replace("{datetime}", datetime).replace("{uri}", normalize_input_url(uri))


def memento_url(archive: Archive, datetime: str, uri: str) -> str | None:
    """Return the address of a copy for people: that of the raw copy without its modifier (`id_`).

    >>> from unlost.registry.models import ArchiveKind
    >>> archive = Archive("a", "A", ArchiveKind.WAYBACK, replay="http://a.org/web/{datetime}id_/{uri}")
    >>> memento_url(archive, "20140210000001", "http://example.com/?a=b")
    'http://a.org/web/20140210000001/http://example.com/?a=b'
    """
    if archive.replay is None:
        return None
    template = _MODIFIER.sub("{datetime}/", archive.replay)
    return template.replace("{datetime}", datetime).replace("{uri}", escape_url(uri))


def parse_memento_url(url: str) -> MementoUrl | None:
    """Return what an address of a stored copy says, if it is one: a date between slashes, then an address.

    >>> parse_memento_url("https://a.org/web/20140210000001id_/http:/example.com/x?y")
    MementoUrl(datetime='20140210000001', uri='http://example.com/x?y')
    >>> parse_memento_url("https://a.org/2014/report.html") is None
    True
    """
    found = _MEMENTO_PATH.search(url, url.find("://") + 3)
    if not found:
        return None
    date, original = found[1] or found[2], found[3]
    try:
        dates.pad(date)
    except DateError:
        return None
    if not _SCHEME.match(original):
        return MementoUrl(date, f"http://{original}")
    # Servers that tidy paths make one slash of two.
    return MementoUrl(date, _SCHEME.sub(r"\1://", original, count=1))


def join_url(base: str, link: str) -> str:
    """Return where a link leads; what cannot be an address is returned as it is.

    >>> join_url("http://a.org/x/y", "../z"), join_url("http://a.org/", "http://[b")
    ('http://a.org/z', 'http://[b')
    """
    try:
        return urljoin(base, link)
    except ValueError:
        return link


def is_same_page(one: str, other: str) -> bool:
    """Return whether two addresses have one key: scheme, case and `www` do not count."""
    try:
        return addresses.key(one) == addresses.key(other)
    except UriError:
        return one == other


def archive_hosts(archive: Archive) -> set[str]:
    """Return the hosts at which the registry says that an archive is, in lower case, without ports."""
    places = (archive.timemap, archive.timegate, archive.cdx, archive.replay, archive.search)
    return {host for place in places if place and (host := url_host(place))}


def url_host(url: str) -> str | None:
    """Return the host of a web address in lower case, without its port; None if it has none or is none."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return parts.hostname if parts.scheme in ("http", "https") else None
