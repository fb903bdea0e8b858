"""Identifies clients by their networks, also behind trusted reverse proxies.

All IP addresses that one customer of a provider controls count as one client.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

    from unlost.jobs.auth import LinkSigner

_SITE_BITS = {4: 24, 6: 56}  # unit for limits of unconfirmed orders: a small provider, or a household
_WIDE_BITS = 40  # prefix of an IPv6 address that a hosting provider assigns to one customer
_NETWORK_BITS = 64  # prefix of an IPv6 address that one customer has at least; a machine can use any address in it
_WITH_PORT = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::[0-9]+)?|([0-9.]+):[0-9]+")
TrustedProxies = Sequence[IPv4Network | IPv6Network]
"""Networks of trusted reverse proxies."""


def client_network(host: str) -> str:
    """Return a key that is equal for all addresses of one customer, or `?` if `host` is not an IP address.

    >>> client_network("192.0.2.1"), client_network("me")
    ('192.0.2.1', '?')
    >>> client_network("2001:db8::1") == client_network("2001:db8::2")
    True
    """
    address = parse_ip(host)
    if address is None:
        return "?"
    return str(address) if isinstance(address, IPv4Address) else f"{int(address) >> (128 - _NETWORK_BITS):x}"


def wider_networks(host: str) -> tuple[str, str]:
    """Return the IPv4 /24 or IPv6 /56 of an address, and its IPv6 /40 (empty for IPv4).

    >>> wider_networks("192.0.2.1"), wider_networks("2001:db8:1234:5678::1"), wider_networks("me")
    (('192.0.2.0/24', ''), ('2001:db8:1234:5600::/56', '2001:db8:1200::/40'), ('?', ''))
    """
    address = parse_ip(host)
    if address is None:
        return "?", ""
    network = str(ip_network((address, _SITE_BITS[address.version]), strict=False))
    if isinstance(address, IPv4Address):
        return network, ""
    return network, str(ip_network((address, _WIDE_BITS), strict=False))


def parse_ip(host: str) -> IPv4Address | IPv6Address | None:
    """Return an IP address, an IPv4-mapped one as IPv4, or None if the text is not an IP address."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


@dataclass(frozen=True, slots=True)
class OrderOrigin:
    """The client networks that an order comes from, as hashes; empty where unknown.

    Attributes:
        client: The network that daily limits count.
        network: The IPv4 /24 or IPv6 /56.
        wide_network: The IPv6 /40; empty for IPv4.
    """

    client: str = ""
    network: str = ""
    wide_network: str = ""


class ClientIdentifier:
    """Determines the client of a request.

    Args:
        signer: Hashes client networks.
        proxies: Proxies whose `X-Forwarded-For` header is trusted.
    """

    def __init__(self, signer: "LinkSigner", *, proxies: TrustedProxies) -> None:
        self._signer = signer
        self._proxies = proxies

    def client_hash(self, request: "HTTPConnection") -> str:
        """Return a hash of the client's network, of at most 64 characters."""
        return self._signer.digest("client", client_network(self._host(request)))

    def order_origin(self, request: "HTTPConnection") -> OrderOrigin:
        """Return the client networks of an order, as hashes."""
        network, wide_network = wider_networks(self._host(request))
        return OrderOrigin(
            self.client_hash(request),
            self._signer.digest("network", network),
            self._signer.digest("network", wide_network) if wide_network else "",
        )

    def _host(self, request: "HTTPConnection") -> str:
        host = "" if request.client is None else request.client.host
        # Each proxy appends the address that it received the request from. The last address that is not a trusted proxy
        # was therefore seen by a trusted proxy; everything before it was supplied by the client and is not trustworthy.
        forwarded = [each for line in request.headers.getlist("x-forwarded-for") for each in line.split(",")]
        while forwarded and self._is_proxy(host):
            host = strip_port(forwarded.pop().strip()) or host
        return host

    def _is_proxy(self, host: str) -> bool:
        """Return whether a host is a trusted proxy."""
        address = parse_ip(host)
        return address is not None and any(address in network for network in self._proxies)


def strip_port(host: str) -> str:
    """Return an IP address without the port that some proxies add. Anything else is returned unchanged.

    >>> strip_port("192.0.2.1:4711"), strip_port("[2001:db8::1]:80"), strip_port("2001:db8::1")
    ('192.0.2.1', '2001:db8::1', '2001:db8::1')
    """
    match = _WITH_PORT.fullmatch(host)
    return (match[1] or match[2]) if match else host
