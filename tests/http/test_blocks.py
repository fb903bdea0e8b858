"""Refused connections and throttling: duration, persistence and sharing of blocks."""

import asyncio
import errno
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from tests.external.fault_server import Exchange, Handler
from tests.external.process import free_port
from tests.http.handlers import OK, faulty_first, reset
from tests.http.harness import QUICK, TableResolver, kind_of, run_server
from tests.virtual_clock import VirtualClock
from unlost.errors import FailedError, NotNowError, OfflineError
from unlost.http import ArchiveHttpClient, Connectivity, FileLimitStore, HttpRequest, MemoryLimitStore, pool
from unlost.registry import Archive, ArchiveKind, RateLimit, RequestKind

LIMITS = (RateLimit(100, 1, (RequestKind.INDEX,), "the test"),)


def unreachable_archive(name: str = "a", host: str = "127.0.0.1") -> Archive:
    """Return an archive with limits where nothing listens."""
    return Archive(name, name.upper(), ArchiveKind.MEMENTO, timemap=f"http://{host}:{free_port()}/", limits=LIMITS)


async def query(http_client: ArchiveHttpClient, archive: Archive) -> None:
    """Request the TimeMap of an archive."""
    await http_client.send(archive, HttpRequest(archive.timemap or "", RequestKind.INDEX))


def test_refused_connection_blocks_and_survives_restart(tmp_path: Path) -> None:
    """While another archive responds, a block lasts an hour, then two, then four."""
    archive = unreachable_archive()

    async def run() -> None:
        async with run_server(faulty_first(reset, 0)) as it:
            clock = it.clock
            working = replace(it.archive, id="working")
            for hours in (1, 2, 4):
                async with ArchiveHttpClient(FileLimitStore(tmp_path), clock, "me@example.com", QUICK) as http_client:
                    await query(http_client, working)
                    with pytest.raises(FailedError) as failed:
                        await query(http_client, archive)
                    assert failed.value.kind == "refused"
                async with ArchiveHttpClient(FileLimitStore(tmp_path), clock, "me@example.com", QUICK) as http_client:
                    with pytest.raises(NotNowError) as refused:
                        await query(http_client, archive)
                    assert (refused.value.reason, refused.value.until) == ("blocked", clock.now() + 3600 * hours)
                clock.advance(3600 * hours)

    asyncio.run(run())


def test_response_after_refusal_makes_it_a_block() -> None:
    """The order does not matter: the archives of one run are queried at once."""
    store, archive = MemoryLimitStore(), unreachable_archive()

    async def run() -> None:
        async with run_server(faulty_first(reset, 0), store=store) as it:
            with pytest.raises(FailedError):
                await query(it.http_client, archive)
            assert blocked_for(store) == 0
            await query(it.http_client, replace(it.archive, id="working"))
            assert blocked_for(store) == 3600

    asyncio.run(run())


def blocked_for(store: MemoryLimitStore | FileLimitStore, archive: str = "a") -> float:
    """Return how long the block of an archive is; 0 without one."""
    return store.update(archive, lambda ledger: (ledger, ledger.blocked_for))


def test_unexplained_refusal_is_a_short_block() -> None:
    """With a single archive the cause is unknown: a minute, doubling, and nothing is sent meanwhile."""
    store, clock, archive = MemoryLimitStore(), VirtualClock(), unreachable_archive()

    async def run() -> None:
        for seconds in (60, 120, 240):
            async with ArchiveHttpClient(store, clock, "me@example.com", QUICK) as http_client:
                with pytest.raises(FailedError):
                    await query(http_client, archive)
                with pytest.raises(NotNowError, match="it refused a connection"):
                    await query(http_client, archive)
            assert blocked_for(store) == seconds
            clock.advance(seconds)

    asyncio.run(run())


def test_refusals_of_all_hosts_do_not_block() -> None:
    """A firewall that refuses everything is local: the next command queries all archives again."""
    store, clock = MemoryLimitStore(), VirtualClock()
    archives = [unreachable_archive("a", "a.example"), unreachable_archive("b", "b.example")]

    async def run() -> None:
        for _ in range(2):
            async with ArchiveHttpClient(
                store, clock, "me@example.com", QUICK, resolver=TableResolver("127.0.0.1")
            ) as http_client:
                for archive in archives:
                    with pytest.raises(FailedError, match="refused"):
                        await query(http_client, archive)
                assert not http_client.request_counts
        assert blocked_for(store, "a") == blocked_for(store, "b") == 0

    asyncio.run(run())


class FailingResolver:
    """A resolver that fails."""

    def __init__(self, cause: OSError) -> None:
        self._cause = cause

    async def resolve(self, host: str, port: int) -> list[pool.AddressInfo]:
        """Raise the cause."""
        del host, port
        raise self._cause


NO_NAMES = socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (NO_NAMES, "dns"),
        (OSError(errno.ENETUNREACH, "Network is unreachable"), "unreachable"),
        (OSError(errno.EHOSTUNREACH, "No route to host"), "unreachable"),
    ],
)
def test_local_cause_never_blocks(cause: OSError, kind: str) -> None:
    """Without name resolution or a route nothing is sent, no quota is charged, and nothing is blocked."""
    store = MemoryLimitStore()
    quotas = (RateLimit(10, 86_400, (RequestKind.INDEX,), "the test"),)
    archive = Archive("a", "A", ArchiveKind.MEMENTO, timemap="http://a.example/", limits=LIMITS, quotas=quotas)

    async def run() -> None:
        async with run_server(faulty_first(reset, 0), store=store, resolver=FailingResolver(cause)) as it:
            await query(it.http_client, replace(it.archive, id="working"))
            with pytest.raises(FailedError) as failed:
                await query(it.http_client, archive)
            assert failed.value.kind == kind
            assert it.http_client.request_counts == {("working", RequestKind.INDEX): 1}
        state = store.update("a", lambda found: (found, found))
        assert state.blocked_until == state.wait_until == 0
        assert [count for _, count in state.counted.values()] == [0]

    asyncio.run(run())


@pytest.mark.parametrize("headers", [{"location": "http://login.example/"}, {"content_type": "text/html"}])
def test_captive_portal_proves_nothing(headers: dict[str, str]) -> None:
    """Where one page responds in place of every host, an archive that refuses the connection is not blocked."""
    store = MemoryLimitStore()

    async def portal(exchange: Exchange) -> None:
        await exchange.respond(302 if "location" in headers else 200, b"<html>log in", **headers)

    async def run() -> None:
        async with run_server(portal, store=store, resolver=TableResolver("127.0.0.1")) as it:
            network = it.http_client.connectivity
            for name in ("b", "c"):
                other = Archive(name, name, ArchiveKind.MEMENTO, timemap=f"http://{name}.example:{it.server.port}/")
                question = HttpRequest(other.timemap or "", RequestKind.INDEX, max_redirects=0)
                await it.http_client.send(other, question)
            with pytest.raises(FailedError):
                await query(it.http_client, unreachable_archive("a", "a.example"))
            error = network.offline_error()
            assert error is not None
            assert str(error).startswith("You seem to be behind a login page: none of 3 archives could be reached")
        assert blocked_for(store) == 0

    asyncio.run(run())


def test_pages_of_several_archives_are_not_a_captive_portal() -> None:
    """Archives without TLS that say in HTML that they have nothing, or show pages of their own, were reached."""

    async def page(exchange: Exchange) -> None:
        status = 404 if exchange.path == "/nothing" else 200
        await exchange.respond(status, f"<html>{exchange.path}".encode(), content_type="text/html")

    async def run() -> None:
        network = Connectivity("bc")
        async with run_server(page, resolver=TableResolver("127.0.0.1"), connectivity=network) as it:
            for paths in ({"b": "b", "c": "c"}, {"b": "nothing", "c": "nothing"}):
                for name, path in paths.items():
                    url = f"http://{name}.example:{it.server.port}/{path}"
                    archive = Archive(name, name, ArchiveKind.MEMENTO, timemap=url)
                    await it.http_client.send(archive, HttpRequest(url, RequestKind.INDEX))
                assert network.offline_error() is None

    asyncio.run(run())


def test_run_ends_if_no_archive_can_be_reached() -> None:
    """One error is raised after the last required archive has failed."""
    clock = VirtualClock()
    archives = [Archive(name, name, ArchiveKind.MEMENTO, timemap=f"http://{name}.example/") for name in "abc"]

    async def run() -> None:
        network = Connectivity("abc")
        async with ArchiveHttpClient(
            MemoryLimitStore(), clock, "me@example.com", QUICK, resolver=FailingResolver(NO_NAMES), connectivity=network
        ) as http_client:
            for archive in archives[:2]:
                with pytest.raises(FailedError) as failed:
                    await query(http_client, archive)
                assert failed.value.kind == "dns"
            with pytest.raises(OfflineError) as offline:
                await query(http_client, archives[2])
            status_and_body = "You seem to be offline: none of 3 archives could be reached (name resolution failed)"
            assert (str(offline.value), offline.value.exit_code) == (status_and_body, 4)

    asyncio.run(run())


def test_own_server_is_not_blocked() -> None:
    """An archive without limits was only stopped: it is queried again at once."""
    store, clock = MemoryLimitStore(), VirtualClock()
    archive = Archive("a", "A", ArchiveKind.MEMENTO, timemap=f"http://127.0.0.1:{free_port()}/")

    async def run() -> None:
        async with ArchiveHttpClient(store, clock, "me@example.com", QUICK) as http_client:
            for _ in range(2):
                with pytest.raises(FailedError, match="refused"):
                    await http_client.send(archive, HttpRequest(archive.timemap or "", RequestKind.INDEX))
        assert store.is_known_empty("a")

    asyncio.run(run())


def test_response_after_block_clears_it() -> None:
    """The next refusal is a block of an hour, not a longer one."""
    store = MemoryLimitStore()

    async def run() -> None:
        async with run_server(faulty_first(reset, 0), store=store) as it:
            other = unreachable_archive()
            for hours in (1, 2, 4):
                await query(it.http_client, replace(it.archive, id="working"))
                with pytest.raises(FailedError):
                    await query(it.http_client, other)
                assert blocked_for(store) == 3600 * hours
                it.clock.advance(blocked_for(store))
            await it.send()
            assert blocked_for(store) == 0

    asyncio.run(run())


def test_refusal_after_redirect_does_not_block_the_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    """A memento may redirect to the lost site, which is not the archive's fault."""
    # Nothing but loopback may be connected to in tests.
    monkeypatch.setattr(pool, "is_public_ip", lambda _: True)
    gone = f"http://gone.example:{free_port()}/"

    async def answering(exchange: Exchange) -> None:
        await (exchange.respond(302, location=gone) if exchange.path == "/" else exchange.send(OK))

    async def run() -> None:
        async with run_server(answering, resolver=TableResolver("127.0.0.1")) as it:
            assert await kind_of(it) == "refused"
            assert (await it.send("/next")).status == 200

    asyncio.run(run())


def throttling_handler(status: int, times: int, **headers: str) -> Handler:
    """Return a handler that throttles the first requests."""

    async def fault(exchange: Exchange) -> None:
        await exchange.respond(status, b"slow down", **headers)

    return faulty_first(fault, times)


@pytest.mark.parametrize("status", [429, 503])
def test_throttling_without_retry_after_waits_one_minute_then_two(status: int) -> None:
    """The request is retried automatically on the same connection."""

    async def run() -> None:
        async with run_server(throttling_handler(status, 2)) as it:
            began = it.clock.now()
            assert (await it.send()).status == 200
            assert [round(when - began) for when in it.server.times] == [0, 60, 180]
            assert it.server.connections == 1

    asyncio.run(run())


@pytest.mark.parametrize("retry_after", ["20", "Tue, 14 Nov 2023 22:13:40 GMT"])
def test_retry_after_is_obeyed_in_both_formats(retry_after: str) -> None:
    """Seconds or a date: the request is retried exactly then."""

    async def run() -> None:
        async with run_server(throttling_handler(429, 1, retry_after=retry_after)) as it:
            began = it.clock.now()
            assert (await it.send()).status == 200
            assert [round(when - began) for when in it.server.times] == [0, 20]

    asyncio.run(run())


def test_wait_longer_than_budget_raises_and_is_stored() -> None:
    """The error has the date, and other requests fail without being sent."""

    async def run() -> None:
        async with run_server(throttling_handler(429, 99, retry_after="120"), max_wait=100) as it:
            until = it.clock.now() + 120
            for _ in range(5):
                with pytest.raises(NotNowError) as caught:
                    await it.send(kind=RequestKind.REPLAY)
                assert (caught.value.until, caught.value.reason) == (until, "told-to-wait")
            assert len(it.server.requests) == 1
            it.clock.advance(119)
            with pytest.raises(NotNowError):
                await it.send()
            assert len(it.server.requests) == 2

    asyncio.run(run())


def test_requests_in_flight_together_are_throttled_once() -> None:
    """Six concurrent 429 are one minute, not half an hour."""

    async def run() -> None:
        everybody = asyncio.Event()

        async def answering(exchange: Exchange) -> None:
            if exchange.number == 5:
                everybody.set()
            await everybody.wait()
            await (exchange.respond(429) if exchange.number < 6 else exchange.send(OK))

        async with run_server(answering) as it:
            replies = await asyncio.gather(*(it.send(f"/{number}") for number in range(6)))
            assert [reply.status for reply in replies] == [200] * 6
            # On this clock, one of them may wait while another is still being told; but nothing doubles.
            assert max(it.server.times) - min(it.server.times) <= 6 * 60

    asyncio.run(run())
