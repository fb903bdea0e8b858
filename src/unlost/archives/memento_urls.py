"""URLs of mementos (URI-Ms): built from an archive's registry entry, and parsed."""

import re
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from unlost import dates
from unlost.errors import DateError, UriError
from unlost.registry.models import Archive
from unlost.uri import keys
from unlost.uri.normalize import escape_url, normalize_input_url

_MODIFIER = re.compile(r"\{datetime\}[a-z]{2}_/")
# 14 digits are a date whatever follows; fewer digits are a date only if a URL with a scheme follows.
_MEMENTO_PATH = re.compile(
    r"/(?:(\d{14})(?:[a-z]{2}_)?/|(\d{1,13})(?:[a-z]{2}_)?/(?=https?:/))(.+)", re.DOTALL | re.ASCII
)
_SCHEME = re.compile(r"(https?):/*(?=[^/])", re.IGNORECASE)


class MementoUrl(NamedTuple):
    """The parts of a URI-M.

    Attributes:
        datetime: 1 to 14 digits, or empty.
        uri: The URI-R.
    """

    datetime: str
    uri: str


def raw_memento_url(archive: Archive, datetime: str, uri: str) -> str | None:
    """Return the URL of a capture as it was archived, without rewriting; None if the registry has no such URL."""
    if archive.replay is None:
        return None
    return archive.replay.replace("{datetime}", datetime).replace("{uri}", normalize_input_url(uri))


def memento_url(archive: Archive, datetime: str, uri: str) -> str | None:
    """Return the URL of a capture for display: that of the raw capture without its modifier (`id_`).

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
    """Parse a URI-M of the usual form, a date between slashes followed by a URL; None for others.

    >>> parse_memento_url("https://a.org/web/20140210000001id_/http:/example.com/x?y")
    MementoUrl(datetime='20140210000001', uri='http://example.com/x?y')
    >>> parse_memento_url("https://a.org/2014/report.html") is None
    True
    """
    match = _MEMENTO_PATH.search(url, url.find("://") + 3)
    if not match:
        return None
    date, original = match[1] or match[2], match[3]
    try:
        dates.pad(date)
    except DateError:
        return None
    if not _SCHEME.match(original):
        return MementoUrl(date, f"http://{original}")
    # Some servers normalize paths and merge the two slashes of the scheme.
    return MementoUrl(date, _SCHEME.sub(r"\1://", original, count=1))


def join_url(base: str, link: str) -> str:
    """Resolve a link; return it unchanged if it cannot be resolved.

    >>> join_url("http://a.org/x/y", "../z"), join_url("http://a.org/", "http://[b")
    ('http://a.org/z', 'http://[b')
    """
    try:
        return urljoin(base, link)
    except ValueError:
        return link


def is_same_page(one: str, other: str) -> bool:
    """Return whether two URLs have the same key, ignoring scheme, case and `www`."""
    try:
        return keys.key(one) == keys.key(other)
    except UriError:
        return one == other


def archive_hosts(archive: Archive) -> set[str]:
    """Return the hosts of an archive's URLs in the registry, in lower case, without ports."""
    urls = (archive.timemap, archive.timegate, archive.cdx, archive.replay, archive.search)
    return {host for url in urls if url and (host := url_host(url))}


def url_host(url: str) -> str | None:
    """Return the host of an http or https URL in lower case, without its port; None for others."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return parts.hostname if parts.scheme in ("http", "https") else None
