"""Redirects: number, forbidden targets and headers."""

import asyncio

import pytest

from tests.external.fault_server import Exchange, Handler
from tests.http.handlers import ok
from tests.http.harness import TableResolver, kind_of, run_server
from tests.http.rate_limits.windows import most_within
from unlost.errors import FailedError, NotNowError
from unlost.http import HttpRequest, pool
from unlost.registry import Archive, ArchiveKind, RateLimit, RequestKind


def redirect_handler(places: dict[str, str], status: int = 302) -> Handler:
    """Return a handler that redirects some paths, and responds to others."""

    async def answering(exchange: Exchange) -> None:
        if exchange.path in places:
            await exchange.respond(status, b"elsewhere", location=places[exchange.path])
        else:
            await exchange.respond(200, b"here")

    return answering


def test_redirects_are_followed_and_counted() -> None:
    """Each hop counts towards the limits; the response has the final URL."""
    places = {"/a": "/b?x=http://c.example//d", "/b?x=http://c.example//d": "e"}

    async def run() -> None:
        async with run_server(
            redirect_handler(places), limits=(RateLimit(1, 60, (RequestKind.INDEX,), "a test"),)
        ) as it:
            reply = await it.send("/a")
            assert (reply.url, reply.body.read()) == (f"{it.server.url}/e", b"here")
            assert it.server.paths == ["/a", "/b?x=http://c.example//d", "/e"]
            assert most_within(it.server.times, 74) == 1
            assert it.server.connections == 1

    asyncio.run(run())


def test_without_allowed_redirects_the_redirect_is_returned() -> None:
    """With body and Location."""

    async def run() -> None:
        async with run_server(redirect_handler({"/a": "http://127.0.0.1:1/"})) as it:
            reply = await it.send("/a", max_redirects=0)
            assert (reply.status, reply.header("LOCATION"), reply.body.read()) == (
                302,
                "http://127.0.0.1:1/",
                b"elsewhere",
            )

    asyncio.run(run())


@pytest.mark.parametrize(
    ("places", "requests"),
    [
        ({"/": "/"}, 1),
        ({"/": "/a", "/a": "/b", "/b": "/a"}, 3),
        ({"/": "/1", **{f"/{n}": f"/{n + 1}" for n in range(1, 50)}}, 6),
        ({"/": "javascript:alert(1)"}, 1),
        ({"/": "file:///etc/passwd"}, 1),
        ({"/": "http://"}, 1),
        ({"/": "http://[::1"}, 1),
        ({"/": "http://127.0.0.1:99999/"}, 1),
        ({"/": "ftp://a.example/"}, 1),
        ({"/": f"http://{'a' * 64}.example/"}, 1),
        ({"/": "http://a..example/"}, 1),
        ({"/": "http://xn--a/"}, 1),
    ],
    ids=[
        "itself", "circle", "endless", "script", "file", "no host", "bad host", "bad port", "ftp", "long name",
        "empty name", "no name",
    ],
)  # fmt: skip
def test_endless_redirects_end(places: dict[str, str], requests: int) -> None:
    """A loop, too many hops, or an invalid URL."""

    async def run() -> None:
        async with run_server(redirect_handler(places)) as it:
            assert await kind_of(it) == "redirects"
            assert len(it.server.requests) == requests
            assert it.clock.slept == []

    asyncio.run(run())


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0.0.0.0",  # noqa: S104  nobody binds to it here
        "10.1.2.3",
        "192.168.1.1",
        "169.254.169.254",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[fe80::1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "localhost",
        "0x7f.1",
        "inside.example",
    ],
)
def test_redirect_to_a_private_network_is_refused(host: str) -> None:
    """By IP address in any spelling, or by name: no connection is opened."""

    async def run() -> None:
        async with run_server(ok, resolver=TableResolver("127.0.0.1")) as it:
            it.server.handler = redirect_handler({"/": f"http://{host}:{it.server.port}/inside"})
            own = Archive("a", "A", ArchiveKind.MEMENTO, timemap=f"http://archive.example:{it.server.port}/")
            with pytest.raises(FailedError) as caught:
                await it.http_client.send(
                    own, HttpRequest(f"http://archive.example:{it.server.port}/", RequestKind.INDEX)
                )
            assert caught.value.kind == "redirects"
            assert it.server.paths == ["/"]

    asyncio.run(run())


def test_redirect_to_a_private_network_is_refused_without_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for clients that may use proxies of the environment."""
    monkeypatch.setenv("NO_PROXY", "*")

    async def run() -> None:
        async with run_server(ok, resolver=TableResolver("127.0.0.1"), use_proxies=True) as it:
            it.server.handler = redirect_handler({"/": f"http://inside.example:{it.server.port}/inside"})
            with pytest.raises(FailedError) as caught:
                await it.send()
            assert caught.value.kind == "redirects"
            assert it.server.paths == ["/"]

    asyncio.run(run())


def test_dns_rebinding_does_not_reach_a_private_network() -> None:
    """The connection uses the checked address; a second look-up is checked again."""

    async def run() -> None:
        names = TableResolver("127.0.0.1")
        async with run_server(ok, resolver=names) as it:
            port = it.server.port
            inside = Archive("i", "I", ArchiveKind.MEMENTO, timemap=f"http://inside.example:{port}/")
            await it.http_client.send(inside, HttpRequest(f"http://inside.example:{port}/", RequestKind.INDEX))
            # Another archive may not use the connection that is open there now, nor what was looked up for it.
            with pytest.raises(FailedError) as caught:
                await it.http_client.send(it.archive, HttpRequest(f"http://inside.example:{port}/", RequestKind.INDEX))
            assert caught.value.kind == "redirects"
            assert len(it.server.requests) == 1

    asyncio.run(run())


def test_credentials_are_sent_only_to_their_host() -> None:
    """Other headers are sent to redirect targets."""
    heads: list[dict[str, str]] = []

    async def run() -> None:
        async with run_server(ok, resolver=TableResolver("127.0.0.1")) as it:
            other = f"http://other.example:{it.server.port}/b"

            async def answering(exchange: Exchange) -> None:
                heads.append(exchange.headers)
                await (exchange.respond(302, location=other) if exchange.path == "/a" else ok(exchange))

            it.server.handler = answering
            it.archive = Archive("a", "A", ArchiveKind.MEMENTO, timemap=it.server.url, timegate=other)
            await it.send("/a", headers={"Authorization": "secret", "Accept-Datetime": "x"})

    asyncio.run(run())
    assert ["authorization" in head for head in heads] == [True, False]
    assert ["accept-datetime" in head for head in heads] == [True, True]


@pytest.mark.parametrize(("status", "host", "waits"), [(429, "other", True), (503, "other", False), (503, "a", True)])
def test_throttling_after_a_redirect(monkeypatch: pytest.MonkeyPatch, status: int, host: str, waits: bool) -> None:
    """429 counts at any host, 503 only at the archive's own host, on any port."""
    # The same server stands for the registered place and for one that is not.
    monkeypatch.setattr(pool, "is_public_ip", lambda _: True)

    async def run() -> None:
        async with run_server(ok, resolver=TableResolver("127.0.0.1"), max_wait=5) as it:

            async def answering(exchange: Exchange) -> None:
                if exchange.number == 0:
                    await exchange.respond(302, location=f"http://{host}.example:{it.server.port}/b")
                else:
                    await exchange.respond(status)

            it.server.handler = answering
            own = f"http://a.example:{it.server.port}/a"
            it.archive = Archive("a", "A", ArchiveKind.MEMENTO, timemap=own, timegate="http://a.example:1/")
            with pytest.raises(NotNowError if waits else FailedError):
                await it.http_client.send(it.archive, HttpRequest(own, RequestKind.INDEX))

    asyncio.run(run())
