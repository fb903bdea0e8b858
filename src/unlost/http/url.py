"""HTTP URLs as they are sent, the hosts of an archive, and the test for public IP addresses."""

import ipaddress
import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote_from_bytes, urljoin

from yarl import URL

from unlost.registry.models import Archive

_VISIBLE_ASCII = "".join(map(chr, range(0x21, 0x7F)))  # what an address may have: everything else is escaped
_HTTP_URL = re.compile(r"(https?)://(?:[^/?#@]*@)?([^/?#@]+)([^#]*)", re.IGNORECASE)
_VISIBLE_ONLY = re.compile(r"[!-~]*")
# Of NAT64, of translated addresses, and the old form `::10.0.0.1`: the last 32 bits are an address of version 4.
_IPV4_EMBEDDING_NETWORKS = tuple(ipaddress.ip_network(each) for each in ("64:ff9b::/96", "::ffff:0:0:0/96", "::/96"))


class HostPort(NamedTuple):
    """A host, in lower case, and a port."""

    host: str
    port: int


class HttpUrl(NamedTuple):
    """An address of http or https, as it will be sent.

    origin: scheme, host and port, without the port that the scheme means. target: path and query.
    """

    scheme: str
    host_port: HostPort
    origin: str
    target: str

    def __str__(self) -> str:
        """Return it whole."""
        return self.origin + self.target

    @property
    def host_header(self) -> str:
        """The host, and the port unless the scheme means it, as a request names them."""
        return self.origin.partition("://")[2]


def parse_url(url: str) -> HttpUrl:
    """Return an http or https address as it will be sent: unchanged, but what no address may have is escaped.

    Raises ValueError for everything else.

    >>> str(parse_url("http://a.example/web/2014id_/http://b.example/../%zz ü#top"))
    'http://a.example/web/2014id_/http://b.example/../%zz%20%C3%BC'
    """
    found = _HTTP_URL.match(url.strip(" \t\r\n"))
    if not found:
        raise ValueError("not an address of http or https")
    scheme, host, tail = found.groups()
    place, origin = _parse_origin(scheme.lower(), host)
    if not _VISIBLE_ONLY.fullmatch(tail):
        tail = quote_from_bytes(tail.encode("utf-8", "surrogateescape"), _VISIBLE_ASCII)
    return HttpUrl(scheme.lower(), place, origin, tail if tail.startswith("/") else "/" + tail)


@lru_cache(maxsize=4096)
def _parse_origin(scheme: str, host: str) -> tuple[HostPort, str]:
    """Return where a host is, and its usual form: the rest of an address is the archive's own."""
    origin = URL(f"{scheme}://{host}").origin()
    if not origin.raw_host:
        raise ValueError("no host")
    _check_host_name(origin)
    return HostPort(origin.raw_host.lower(), origin.port or 0), str(origin)


def _check_host_name(origin: URL) -> None:
    """Raise ValueError for a name that would fail outside all that catches failures: when it is looked up, or shown."""
    name = origin.raw_host or ""
    try:
        name.encode("idna")
        _ = origin.host
    except UnicodeError as error:
        raise ValueError("no name that a host can have") from error
    if not _VISIBLE_ONLY.fullmatch(name):
        raise ValueError("no name that a host can have")


def resolve_redirect(location: str, base: HttpUrl) -> HttpUrl:
    """Return where a redirect leads. Raises ValueError if that is no address of http or https."""
    return parse_url(urljoin(str(base), location.strip(" \t\r\n")))


@lru_cache(maxsize=1024)
def registered_hosts(archive: Archive) -> frozenset[HostPort]:
    """Return the places of the registered addresses of an archive."""
    found = set()
    for address in (
        archive.timemap,
        archive.timegate,
        archive.cdx,
        archive.replay,
        archive.search,
        archive.mementomap,
        *archive.filters,
    ):
        try:
            found.add(parse_url(address or "").host_port)
        except ValueError:
            continue  # there is none, or it is a file
    return frozenset(found)


def is_public_ip(address: str) -> bool:
    """Return whether an IP address is one of the public Internet, also if it only carries one that is not.

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
    """Return whether a host can be public: a name can, until it is looked up; an address only if it is.

    >>> may_be_public_host("a.example"), may_be_public_host("10.0.0.1"), may_be_public_host("2130706433"), may_be_public_host("localhost")
    (True, False, False, True)
    """
    # What is only digits and dots is taken for an address and not looked up, also in forms that nobody should write.
    return is_public_ip(host) if ":" in host or host.replace(".", "").isdigit() else True


"""What `socket.getaddrinfo` returns of one address: family, type, protocol, name; host and port first in the rest."""


def is_ip_literal(host: str) -> bool:
    """Return whether a host is an IP address, which nobody has to look up."""
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
