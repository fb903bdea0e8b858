"""HTTP URLs as sent, the hosts of an archive, and the test for public IP addresses."""

import ipaddress
import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote_from_bytes, urljoin

from yarl import URL

from unlost.registry.models import Archive

_VISIBLE_ASCII = "".join(map(chr, range(0x21, 0x7F)))  # sent unchanged; everything else is percent-encoded
_HTTP_URL = re.compile(r"(https?)://(?:[^/?#@]*@)?([^/?#@]+)([^#]*)", re.IGNORECASE)
_VISIBLE_ONLY = re.compile(r"[!-~]*")
# NAT64 (RFC 6052), IPv4-translated (RFC 2765) and IPv4-compatible addresses (RFC 4291): the last 32 bits are IPv4.
_IPV4_EMBEDDING_NETWORKS = tuple(ipaddress.ip_network(each) for each in ("64:ff9b::/96", "::ffff:0:0:0/96", "::/96"))


class HostPort(NamedTuple):
    """A host, in lower case, and a port."""

    host: str
    port: int


class HttpUrl(NamedTuple):
    """An http or https URL as sent.

    Attributes:
        origin: Scheme, host and port, without the scheme's default port.
        target: Path and query.
    """

    scheme: str
    host_port: HostPort
    origin: str
    target: str

    def __str__(self) -> str:
        """Return the URL as a string."""
        return self.origin + self.target

    @property
    def host_header(self) -> str:
        """The value of the Host header."""
        return self.origin.partition("://")[2]


def parse_url(url: str) -> HttpUrl:
    """Parse an http or https URL. Characters that a URL cannot contain are percent-encoded; nothing else is changed.

    Raises:
        ValueError: It is not an http or https URL.

    >>> str(parse_url("http://a.example/web/2014id_/http://b.example/../%zz ü#top"))
    'http://a.example/web/2014id_/http://b.example/../%zz%20%C3%BC'
    """
    match = _HTTP_URL.match(url.strip(" \t\r\n"))
    if not match:
        raise ValueError("not an address of http or https")
    scheme, host, tail = match.groups()
    host_port, origin = _parse_origin(scheme.lower(), host)
    if not _VISIBLE_ONLY.fullmatch(tail):
        tail = quote_from_bytes(tail.encode("utf-8", "surrogateescape"), _VISIBLE_ASCII)
    return HttpUrl(scheme.lower(), host_port, origin, tail if tail.startswith("/") else "/" + tail)


@lru_cache(maxsize=4096)
def _parse_origin(scheme: str, host: str) -> tuple[HostPort, str]:
    """Return host and port, and the normalized origin. Path and query are the archive's own and are not normalized."""
    origin = URL(f"{scheme}://{host}").origin()
    if not origin.raw_host:
        raise ValueError("no host")
    _check_host_name(origin)
    return HostPort(origin.raw_host.lower(), origin.port or 0), str(origin)


def _check_host_name(origin: URL) -> None:
    """Raise ValueError for a host name that would otherwise fail later, in name resolution or in a message."""
    name = origin.raw_host or ""
    try:
        name.encode("idna")
        _ = origin.host
    except UnicodeError as error:
        raise ValueError("no name that a host can have") from error
    if not _VISIBLE_ONLY.fullmatch(name):
        raise ValueError("no name that a host can have")


def resolve_redirect(location: str, base: HttpUrl) -> HttpUrl:
    """Return the target of a redirect. Raises ValueError if it is not an http or https URL."""
    return parse_url(urljoin(str(base), location.strip(" \t\r\n")))


@lru_cache(maxsize=1024)
def registered_hosts(archive: Archive) -> frozenset[HostPort]:
    """Return the hosts and ports of an archive's URLs in the registry."""
    hosts = set()
    for url in (
        archive.timemap,
        archive.timegate,
        archive.cdx,
        archive.replay,
        archive.search,
        archive.mementomap,
        *archive.filters,
    ):
        try:
            hosts.add(parse_url(url or "").host_port)
        except ValueError:
            continue  # not set, or a local file
    return frozenset(hosts)


def is_public_ip(address: str) -> bool:
    """Return whether an IP address is public. An IPv6 address that embeds an IPv4 address is as public as that one.

    >>> [is_public_ip(each) for each in ("93.184.215.14", "10.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254")]
    [True, False, False, False, False]
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.is_site_local:
            return False
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo or (None, None))[1]
        if any(ip in network for network in _IPV4_EMBEDDING_NETWORKS):
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public_ip(str(inner))
    return ip.is_global and not ip.is_multicast


def may_be_public_host(host: str) -> bool:
    """Return whether a host may be public: any name, and IP addresses that are public.

    >>> [may_be_public_host(each) for each in ("a.example", "10.0.0.1", "2130706433", "localhost")]
    [True, False, False, True]
    """
    # Resolvers parse digits and dots as an IPv4 address in any notation, such as `2130706433` for 127.0.0.1. Only the
    # canonical notation can be checked here.
    return is_public_ip(host) if ":" in host or host.replace(".", "").isdigit() else True


def is_ip_literal(host: str) -> bool:
    """Return whether a host is an IP address rather than a name."""
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
