"""Whence requests come, as a code: it tells whether two come from the same place, and nothing else."""

from ipaddress import IPv6Address, ip_address

from starlette.requests import HTTPConnection

from unlost.service.jobs.keys import Keys

_NETWORK_BITS = 64  # of an IPv6 address: what one customer of a provider has, of which each machine has millions


class Clients:
    """Knows whence requests come. is_behind_proxy: whether our own proxy says whom it asks for."""

    def __init__(self, keys: Keys, *, is_behind_proxy: bool) -> None:
        self._keys = keys
        self._is_behind_proxy = is_behind_proxy

    def code(self, request: HTTPConnection) -> str:
        """Return 64 characters at most that are the same for requests from the same network address."""
        return self._keys.digest("client", self._network(request))

    def _network(self, request: HTTPConnection) -> str:
        found = "" if request.client is None else request.client.host
        if self._is_behind_proxy:
            # The last one is what our own proxy has seen; those before it are what strangers say.
            # Some proxies write it behind what there is, others add a line of their own.
            found = ",".join([found, *request.headers.getlist("x-forwarded-for")]).rpartition(",")[2].strip()
        try:
            address = ip_address(found)
        except ValueError:
            return "?"
        if not isinstance(address, IPv6Address):
            return str(address)
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return f"{int(address) >> (128 - _NETWORK_BITS):x}"
