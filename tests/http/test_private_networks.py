"""No request reaches a private network, unless the host was named: one class decides for all clients."""

import asyncio
import re
from pathlib import Path

import pytest

from unlost.http import AddressInfo, ConnectionPools, HostPort, NotPublicError, literal_address_info, parse_url

SOURCE = Path(__file__).parents[2] / "src" / "unlost"


class FixedResolver:
    """A resolver that returns one address for every name."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def resolve(self, host: str, port: int) -> list[AddressInfo]:
        """Return the address."""
        del host
        return [literal_address_info(HostPort(self._address, port))]


@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "2130706433", "::ffff:10.0.0.1"])
def test_private_address_is_rejected_unless_named(host: str) -> None:
    """Before a connection is attempted."""
    pools = ConnectionPools(None, use_proxies=False)
    with pytest.raises(NotPublicError, match="inside a network"):
        pools.for_host(host, is_named=False)
    pools.for_host(host, is_named=True)


@pytest.mark.parametrize("address", ["127.0.0.1", "192.168.0.1", "169.254.169.254", "::1"])
def test_name_that_resolves_to_a_private_address_is_rejected(address: str) -> None:
    """When it is resolved, so that DNS rebinding has no effect."""

    async def run() -> None:
        pools = ConnectionPools(FixedResolver(address), use_proxies=False)
        pool = pools.for_host("a.example", is_named=False)
        with pytest.raises(NotPublicError):
            await pool.open(parse_url("http://a.example/"), None, 5.0)

    asyncio.run(run())


def test_only_the_two_clients_open_connections() -> None:
    """Crawl, check, watch, harvest, vault, overlap and live recoveries all use `crawl.fetcher.Fetcher`."""
    openers = re.compile(r"\b(ConnectionPools?|HttpExchange|PublicResolver|may_be_public_host)\b")
    modules = {
        file.relative_to(SOURCE).as_posix()
        for file in SOURCE.rglob("*.py")
        if file.parent != SOURCE / "http" and openers.search(file.read_text())
    }
    assert modules == {"crawl/fetcher.py"}
