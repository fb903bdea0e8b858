"""URLs of requests and redirects."""

import asyncio
import socket

import pytest

from unlost.http import (
    AddressInfo,
    HostPort,
    SystemResolver,
    is_public_ip,
    literal_address_info,
    may_be_public_host,
    parse_url,
    registered_hosts,
    resolve_redirect,
)
from unlost.registry import Archive, ArchiveKind


@pytest.mark.parametrize(
    ("address", "parsed"),
    [
        ("HTTP://A.Example:80", "http://a.example/"),
        ("https://b\u00fccher.example?q", "https://xn--bcher-kva.example/?q"),
        ("http://u:p@a.example/x", "http://a.example/x"),
        ("http://a.example/http://b.example/a//../c#d", "http://a.example/http://b.example/a//../c"),
        (" http://a.example/a b\n", "http://a.example/a%20b"),
        ("http://a.example/\udcff", "http://a.example/%FF"),
        ("http://[::1]:8080/", "http://[::1]:8080/"),
    ],
)
def test_url_is_normalized_as_sent(address: str, parsed: str) -> None:
    """The host is normalized, credentials are removed, the rest is unchanged."""
    assert str(parse_url(address)) == parsed


@pytest.mark.parametrize(
    "address",
    [
        "", "a", "//a.example/", "http:/a", "http:///a", "http://a:b/", "http://a.example:70000/",
        "http://a..example/", "http://./", f"http://{'a' * 64}.example/", "http://xn--a/",
        "http://a b.example/", "http://a\0.example/", "http://a\x7f.example/",
    ],
)  # fmt: skip
def test_invalid_url_is_rejected(address: str) -> None:
    """With ValueError, whatever the parser raises."""
    with pytest.raises(ValueError, match=r"."):
        parse_url(address)


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("b", "http://a.example/x/b"),
        ("/b", "http://a.example/b"),
        ("//b.example", "http://b.example/"),
        ("?q", "http://a.example/x/y?q"),
        (" https://b.example/ ", "https://b.example/"),
        ("/web/2014/http://c.example/", "http://a.example/web/2014/http://c.example/"),
    ],
)
def test_redirect_is_relative_to_its_url(location: str, target: str) -> None:
    """As browsers read it."""
    assert str(resolve_redirect(location, parse_url("http://a.example/x/y"))) == target


def test_registered_hosts_are_those_of_the_urls() -> None:
    """Of templates and files too; the default port is that of the scheme."""
    archive = Archive(
        "a",
        "A",
        ArchiveKind.MEMENTO,
        timemap="http://a.example/timemap/",
        cdx="https://b.example:8443/cdx",
        replay="https://A.example/{datetime}id_/{uri}",
        mementomap="/a/file.ukvs",
        filters=("/a/file.filter", "http://c.example/a.filter"),
    )
    of_addresses = {HostPort("a.example", 80), HostPort("b.example", 8443), HostPort("a.example", 443)}
    assert registered_hosts(archive) == of_addresses | {HostPort("c.example", 80)}
    assert parse_url("http://A.EXAMPLE/x").host_port in registered_hosts(archive)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104  nobody binds to it here
        "224.0.0.1",
        "255.255.255.255",
        "192.0.2.1",
        "::1",
        "::",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "ff02::1",
        "2001:db8::1",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "2002:a00:1::",
        "::127.0.0.1",
        "::ffff:0:10.0.0.1",
        "fec0::1",
        "rubbish",
    ],
)
def test_private_address_is_not_public(address: str) -> None:
    """Private, loopback, link-local, shared, multicast, reserved, and addresses that embed one."""
    assert not is_public_ip(address)


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "::ffff:93.184.215.14"])
def test_public_address_is_public(address: str) -> None:
    """Also IPv6."""
    assert is_public_ip(address)
    assert may_be_public_host(address)


def test_concurrent_lookups_of_one_name_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hanging look-up must not occupy all resolver threads."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        looked: list[str] = []
        response = asyncio.Event()

        async def getaddrinfo(host: str, port: int, **_: object) -> list[AddressInfo]:
            looked.append(host)
            await response.wait()
            if host == "c.example":
                raise socket.gaierror("no such name")
            return [literal_address_info(HostPort("127.0.0.1", port))]

        monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
        resolver = SystemResolver()
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(resolver.resolve("a.example", 80), 0.001)
        lookups = [asyncio.create_task(resolver.resolve(f"{name}.example", 80)) for name in "aabc"]
        await asyncio.sleep(0)
        lookups[0].cancel()
        await asyncio.sleep(0)
        response.set()
        found = await asyncio.gather(*lookups, return_exceptions=True)
        assert looked == ["a.example", "b.example", "c.example"]
        assert [type(each) for each in found] == [asyncio.CancelledError, list, list, socket.gaierror]
        await resolver.resolve("a.example", 80)
        assert len(looked) == 4

    asyncio.run(run())
