"""Whence requests come, as a code: it tells whether two come from the same place, and nothing else."""

from starlette.requests import HTTPConnection

from unlost.service.jobs.keys import Keys
from unlost.service.network import network_of


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
        return network_of(found)
