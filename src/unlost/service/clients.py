"""Whence requests come, as a code: it tells whether two come from the same place, and nothing else."""

import re
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address

from starlette.requests import HTTPConnection

from unlost.service.jobs.keys import LinkSigner
from unlost.service.jobs.pending import OrderOrigin
from unlost.service.network import client_network, wider_networks

_WITH_PORT = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::[0-9]+)?|([0-9.]+):[0-9]+")

TrustedProxies = Sequence[IPv4Network | IPv6Network]
"""The networks in which our own proxies are."""


class ClientIdentifier:
    """Knows whence requests come. proxies: whose word is taken for whom they ask for."""

    def __init__(self, signer: LinkSigner, *, proxies: TrustedProxies) -> None:
        self._signer = signer
        self._proxies = proxies

    def client_hash(self, request: HTTPConnection) -> str:
        """Return 64 characters at most that are the same for requests from the same network address."""
        return self._signer.digest("client", client_network(self._host(request)))

    def order_origin(self, request: HTTPConnection) -> OrderOrigin:
        """Return where a request comes from, as hashes."""
        network, wide = wider_networks(self._host(request))
        hashed = self._signer.digest("network", network), self._signer.digest("network", wide) if wide else ""
        return OrderOrigin(self.client_hash(request), *hashed)

    def _host(self, request: HTTPConnection) -> str:
        found = "" if request.client is None else request.client.host
        # Each proxy says whom it has seen, behind what there is or in a line of its own. So the last that is none of
        # ours was seen by one of ours; whatever stands before it is what strangers say.
        said = [each for line in request.headers.getlist("x-forwarded-for") for each in line.split(",")]
        while said and self._is_proxy(found):
            found = strip_port(said.pop().strip()) or found
        return found

    def _is_proxy(self, host: str) -> bool:
        """Return whether somebody is a proxy of ours: everybody else can write whatever they like."""
        try:
            address = ip_address(host)
        except ValueError:
            return False
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self._proxies)


def strip_port(host: str) -> str:
    """Return an IP address as proxies write it without the port that some add; anything else unchanged.

    >>> without_port("192.0.2.1:4711"), without_port("[2001:db8::1]:80"), without_port("2001:db8::1")
    ('192.0.2.1', '2001:db8::1', '2001:db8::1')
    """
    found = _WITH_PORT.fullmatch(host)
    return (found[1] or found[2]) if found else host
