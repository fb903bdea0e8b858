"""TLS: certificates are verified, also through proxies."""

import asyncio
import ssl
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.external.fault_server import Exchange
from tests.http.event_loops import Run, run
from tests.http.handlers import OK, script, send_and_hang
from tests.http.harness import TableResolver, kind_of, run_server, status_and_body
from tests.virtual_clock import VirtualClock
from unlost.errors import FailedError
from unlost.http import ArchiveHttpClient, HttpRequest, MemoryLimitStore, pool
from unlost.registry import Archive, ArchiveKind, RequestKind

__all__ = ["run"]

CERTIFICATE = Path(__file__).parent / "files" / "untrusted.pem"


@pytest.fixture
def trusted_context(monkeypatch: pytest.MonkeyPatch) -> Iterator[ssl.SSLContext]:
    """Return the server context of a temporarily trusted certificate."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    pool.default_ssl_context.cache_clear()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(CERTIFICATE)
    yield tls
    pool.default_ssl_context.cache_clear()


def test_tls_connections_are_reused(run: Run, trusted_context: ssl.SSLContext) -> None:
    """Small and large bodies arrive unchanged."""
    large = bytes(range(256)) * 20_000

    async def answering(exchange: Exchange) -> None:
        await exchange.respond(200, large if exchange.number else b"ok")

    async def ask() -> None:
        async with run_server(answering, tls=trusted_context) as it:
            assert await status_and_body(it) == (200, b"ok")
            assert await status_and_body(it) == (200, large)
            assert it.server.connections == 1

    run(ask)


async def _splice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


def tunnelling_proxy(said: bytes, over: asyncio.Event) -> Callable[..., Coroutine[Any, Any, None]]:
    """Return a proxy that responds and then tunnels.

    Args:
        over: Set when the tunnel has ended.
    """

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        behind, there = await asyncio.open_connection("127.0.0.1", int(head.split()[1].rpartition(b":")[2]))
        await asyncio.gather(_splice(reader, there), _splice(behind, writer))
        over.set()

    return proxy


@pytest.mark.parametrize("status", [200, 407])
def test_tls_through_a_proxy(
    run: Run, trusted_context: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """The proxy gets host and credentials only; its refusal is reported."""
    heads: list[bytes] = []
    over = asyncio.Event()

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 %d Whatever\r\n\r\n" % status)
        if status == 200:
            port = int(heads[-1].split()[1].rpartition(b":")[2])
            behind, there = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(_splice(reader, there), _splice(behind, writer))
        writer.close()
        over.set()

    async def ask() -> None:
        async with (
            run_server(script(OK), tls=trusted_context) as it,
            await asyncio.start_server(proxy, "127.0.0.1", 0) as server,
        ):
            port = server.sockets[0].getsockname()[1]
            monkeypatch.setenv("HTTPS_PROXY", f"http://me:s%40cret@127.0.0.1:{port}")
            async with ArchiveHttpClient(
                MemoryLimitStore(), VirtualClock(), "me@example.com", use_proxies=True
            ) as http_client:
                question = HttpRequest(f"{it.server.url}/page", RequestKind.INDEX)
                archive = Archive("a", "A", ArchiveKind.MEMENTO, timemap=it.server.url)
                if status == 200:
                    for _ in range(2):
                        assert (await http_client.send(archive, question)).body.read() == b"ok"
                    assert it.server.connections == 1
                else:
                    with pytest.raises(FailedError) as failed:
                        await http_client.send(archive, question)
                    assert failed.value.kind == "proxy"
                    assert it.server.connections == 0
            await over.wait()
        assert len(heads) == 1
        assert heads[0].startswith(f"CONNECT 127.0.0.1:{it.server.port} HTTP/1.1\r\n".encode())
        assert b"Proxy-Authorization: Basic bWU6c0BjcmV0\r\n" in heads[0]
        assert b"page" not in heads[0]

    run(ask)


@pytest.mark.parametrize("more", [b"", b"content-length: 8\r\n"])
def test_data_of_a_proxy_before_tls_is_rejected(
    run: Run, trusted_context: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch, more: bytes
) -> None:
    """An attacker could inject it as a response of the archive."""
    over = asyncio.Event()
    proxy = tunnelling_proxy(b"HTTP/1.1 200 OK\r\n" + more + b"\r\ninserted", over)

    async def ask() -> None:
        async with (
            run_server(script(OK), tls=trusted_context) as it,
            await asyncio.start_server(proxy, "127.0.0.1", 0) as server,
        ):
            monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
            async with ArchiveHttpClient(
                MemoryLimitStore(), VirtualClock(), "me@example.com", use_proxies=True
            ) as http_client:
                archive = Archive("a", "A", ArchiveKind.MEMENTO, timemap=it.server.url)
                with pytest.raises(FailedError) as failed:
                    await http_client.send(archive, HttpRequest(it.server.url, RequestKind.INDEX))
                assert failed.value.kind == "proxy"
            await over.wait()

    run(ask)


def test_trailing_dot_of_a_host_is_ignored_for_certificates(
    run: Run, trusted_context: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Certificates have names without it."""
    server_names: list[str | None] = []
    trusted_context.sni_callback = lambda _, name, __: server_names.append(name)
    monkeypatch.setattr(pool.default_ssl_context(), "check_hostname", False)

    async def ask() -> None:
        async with run_server(script(OK), tls=trusted_context, resolver=TableResolver("127.0.0.1")) as it:
            url = f"https://a.example.:{it.server.port}/"
            archive = Archive("a", "A", ArchiveKind.MEMENTO, timemap=url)
            assert (await it.http_client.send(archive, HttpRequest(url, RequestKind.INDEX))).status == 200
        assert server_names == ["a.example"]

    run(ask)


@pytest.mark.parametrize("through_proxy", [False, True])
def test_certificate_of_another_name_is_refused(
    run: Run, trusted_context: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch, through_proxy: bool
) -> None:
    """Although it is trusted."""
    over = asyncio.Event()
    proxy = tunnelling_proxy(b"HTTP/1.0 200 OK\r\n\r\n", over)

    async def ask() -> None:
        async with (
            run_server(
                script(OK), tls=trusted_context, resolver=TableResolver("127.0.0.1"), use_proxies=through_proxy
            ) as it,
            await asyncio.start_server(proxy, "127.0.0.1", 0) as server,
        ):
            monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
            url = f"https://a.example:{it.server.port}/"
            with pytest.raises(FailedError) as failed:
                await it.http_client.send(
                    Archive("a", "A", ArchiveKind.MEMENTO, timemap=url), HttpRequest(url, RequestKind.INDEX)
                )
            assert failed.value.kind == "tls"
            assert it.server.requests == []
            if through_proxy:
                await over.wait()

    run(ask)


def test_untrusted_certificate_is_not_retried() -> None:
    """Nothing is sent, and the failure is `tls`."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(CERTIFICATE)

    async def run() -> None:
        async with run_server(send_and_hang(OK), tls=tls) as it:
            assert await kind_of(it) == "tls"
            assert (it.server.requests, it.clock.slept) == ([], [])

    asyncio.run(run())


def test_server_without_tls_is_a_tls_failure() -> None:
    """It responds in plain text."""

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def run() -> None:
        async with run_server(send_and_hang(OK)) as it, await asyncio.start_server(plain, "127.0.0.1", 0) as server:
            it.server.scheme, it.server.port = "https", server.sockets[0].getsockname()[1]
            it.archive = Archive("a", "A", ArchiveKind.MEMENTO, timemap=it.server.url)
            assert await kind_of(it) == "tls"

    asyncio.run(run())
