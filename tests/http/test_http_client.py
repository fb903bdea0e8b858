"""The HTTP client: limits at the server, connections, user agent."""

import asyncio
import gzip
import random
import time
from pathlib import Path

import pytest

from tests.external.fault_server import Exchange, Handler
from tests.external.process import free_port
from tests.http.handlers import ok
from tests.http.harness import HASTY, run_server
from tests.http.rate_limits.windows import most_within
from unlost._core import VERSION
from unlost.clock import SystemClock
from unlost.errors import ArchiveError, FailedError, NotNowError, UsageError
from unlost.http import ArchiveHttpClient, FileLimitStore, HttpRequest, HttpResponse, MemoryLimitStore
from unlost.registry import Archive, ArchiveKind, RateLimit, RequestKind

A_MINUTE = RateLimit(30, 60, (RequestKind.INDEX,), "a test")


async def _miss(exchange: Exchange) -> None:
    await exchange.respond(404, b"not here")


@pytest.mark.parametrize("at_once", [1, 50])
def test_thousand_misses_use_few_connections(at_once: int) -> None:
    """Bodies are drained and connections reused, also by concurrent requests."""

    async def run() -> None:
        async with run_server(_miss) as it:
            for begin in range(0, 1000, at_once):
                replies = await asyncio.gather(*(it.send(f"/{begin + each}") for each in range(at_once)))
                assert {reply.status for reply in replies} == {404}
            assert len(it.server.requests) == 1000
            assert it.server.connections <= (1 if at_once == 1 else 6)

    asyncio.run(run())


def test_limit_is_never_exceeded_at_the_server() -> None:
    """100 concurrent requests to an archive with 30 a minute, counted there in virtual time; others do not wait."""

    async def run() -> None:
        async with run_server(ok, limits=(A_MINUTE,), max_wait=600) as it:
            many = asyncio.gather(*(it.send(f"/{each}") for each in range(100)))
            replay = [await it.send("/replay", kind=RequestKind.REPLAY) for _ in range(10)]
            assert len(replay) == 10
            assert len(await many) == 100
            times = [when for when, path in it.server.requests if path != "/replay"]
            assert most_within(times, 60) <= 30
            assert times[-1] - times[0] < 100 / 20 * 60, "and it does not dawdle"

    asyncio.run(run())


def test_limit_is_never_exceeded_at_the_server_in_real_time(tmp_path: Path) -> None:
    """Two clients that share a folder respect a limit of 50 a second together."""
    limit = RateLimit(50, 1, (RequestKind.INDEX,), "a test")

    async def run() -> None:
        async with run_server(ok, limits=(limit,)) as it:
            it.server.clock = SystemClock()
            async with (
                ArchiveHttpClient(FileLimitStore(tmp_path), SystemClock(), "me@example.com") as one,
                ArchiveHttpClient(FileLimitStore(tmp_path), SystemClock(), "me@example.com") as two,
            ):
                question = HttpRequest(it.server.url + "/", RequestKind.INDEX)
                await asyncio.gather(*(each.send(it.archive, question) for each in (one, two) * 50))
            assert len(it.server.requests) == 100
            assert most_within(it.server.times, 1) <= 50

    asyncio.run(run())


def test_without_wait_budget_not_now_error_has_a_date() -> None:
    """A request that would wait longer than its budget is not sent."""

    async def run() -> None:
        async with run_server(ok, limits=(RateLimit(1, 60, (RequestKind.INDEX,), "a test"),), max_wait=10) as it:
            await it.send()
            with pytest.raises(NotNowError) as caught:
                await it.send()
            assert caught.value.reason == "rate"
            assert caught.value.until == pytest.approx(it.clock.now() + 75, abs=0.1)
            assert len(it.server.requests) == 1

    asyncio.run(run())


def test_cancelled_wait_delays_no_other_request() -> None:
    """Whether it waits or is in flight, it leaves the queue."""

    async def run() -> None:
        hanging = asyncio.Event()

        async def answering(exchange: Exchange) -> None:
            if exchange.path == "/hang":
                hanging.set()
                await exchange.wait_closed()
            await ok(exchange)

        async with run_server(answering, connections_per_host=1) as it:
            first = asyncio.create_task(it.send("/hang"))
            await hanging.wait()
            waiting = asyncio.create_task(it.send("/waiting"))
            await asyncio.sleep(0)
            waiting.cancel()
            first.cancel()
            await asyncio.gather(first, waiting, return_exceptions=True)
            assert (await it.send("/next")).status == 200
            assert "/waiting" not in it.server.paths

    asyncio.run(run())


def test_without_contact_rate_is_halved_and_warned_once() -> None:
    """For all archives."""

    async def seconds(contact: str | None, said: list[str]) -> float:
        async with run_server(ok, limits=(A_MINUTE,), contact=contact, max_wait=9999, warn=said.append) as it:
            for _ in range(100):
                await it.send()
            return it.clock.now()

    async def run() -> None:
        said: list[str] = []
        began = 1_700_000_000.0
        with_contact = await seconds("me@example.com", said) - began
        assert said == []
        assert await seconds(None, said) - began > 1.8 * with_contact
        assert len(said) == 1
        assert "--contact" in said[0]

    asyncio.run(run())


def test_user_agent_is_sent_and_cookies_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has name, version and contact; proxies of the environment are not used."""
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    heads: list[dict[str, str]] = []

    async def answering(exchange: Exchange) -> None:
        heads.append(exchange.headers)
        await exchange.respond(200, b"", set_cookie="a=b")

    async def run() -> None:
        async with run_server(answering) as it:
            await it.send()
            await it.send(headers={"Accept-Datetime": "Tue, 14 Nov 2023 22:13:40 GMT"})
        async with run_server(answering, contact=None, warn=lambda _: None) as it:
            await it.send()

    asyncio.run(run())
    assert [head["user-agent"] for head in heads] == [f"unlost/{VERSION} (+me@example.com)"] * 2 + [f"unlost/{VERSION}"]
    assert all("cookie" not in head for head in heads)
    assert "accept-datetime" in heads[1]
    assert heads[0]["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize("contact", ["a\r\nX: y", "", " ", "jörg", "me) (you"])
def test_invalid_contact_is_rejected(contact: str) -> None:
    """It could inject headers."""
    with pytest.raises(UsageError):
        ArchiveHttpClient(MemoryLimitStore(), SystemClock(), contact)


def test_proxies_of_the_environment_are_used_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy gets the absolute URL; an unreachable proxy does not block the archive."""

    async def run() -> None:
        async with run_server(ok, use_proxies=True) as it:
            monkeypatch.setenv("HTTP_PROXY", it.server.url)
            archive = Archive("b", "B", ArchiveKind.MEMENTO, timemap="http://archive.example/")
            await it.http_client.send(archive, HttpRequest("http://archive.example/x", RequestKind.INDEX))
            assert it.server.paths == ["http://archive.example/x"]
            monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
            for _ in range(2):
                with pytest.raises(FailedError) as caught:
                    await it.http_client.send(archive, HttpRequest("http://archive.example/x", RequestKind.INDEX))
                assert caught.value.kind == "proxy"

    asyncio.run(run())


def test_url_is_sent_unchanged() -> None:
    """URLs inside URLs are not normalized; only invalid characters are escaped."""

    async def run() -> None:
        async with run_server(ok) as it:
            await it.send("/web/2014id_/http://a.example//b/../%zz?x=a+b&y=%2f|ü #top")
            assert it.server.paths == ["/web/2014id_/http://a.example//b/../%zz?x=a+b&y=%2f|%C3%BC%20"]

    asyncio.run(run())


@pytest.mark.parametrize("url", ["", "a.example", "ftp://a.example/", "http://"])
def test_invalid_url_is_not_requested(url: str) -> None:
    """It may come from an archive's response, so it is a failure of that archive."""

    async def run() -> None:
        async with run_server(ok) as it:
            with pytest.raises(FailedError) as caught:
                await it.http_client.send(it.archive, HttpRequest(url, RequestKind.INDEX))
            assert caught.value.kind == "malformed"

    asyncio.run(run())


BOMB = gzip.compress(bytes(1 << 22))
MIXED: list[Handler] = [
    lambda exchange: exchange.reset(),
    lambda exchange: exchange.send(b"rubbish\r\n\r\n" * 1000),
    lambda exchange: exchange.send(b"HTTP/1.1 200 OK\r\n\r\nabc"),
    lambda exchange: exchange.send(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"),
    lambda exchange: exchange.respond(500, b"x" * 1000),
    lambda exchange: exchange.respond(503, b"", retry_after="7"),
    lambda exchange: exchange.respond(429),
    lambda exchange: exchange.respond(200, BOMB, content_encoding="gzip"),
    lambda exchange: exchange.respond(302, b"", location=exchange.path),
    lambda exchange: exchange.respond(302, b"", location=exchange.path + "/more"),
    lambda exchange: exchange.respond(301, b"", location="http://10.0.0.1/"),
    lambda exchange: exchange.wait_closed(),
]


@pytest.mark.parametrize("seed", range(4))
def test_mixed_faults_break_no_limit_and_hang_no_request(seed: int) -> None:
    """Each request ends, and no limit is exceeded, for any sequence of faults."""
    rng = random.Random(seed)  # noqa: S311  not for secrets

    async def answering(exchange: Exchange) -> None:
        if rng.random() < 0.4:
            await exchange.respond(200, b"ok")
        else:
            await rng.choice(MIXED)(exchange)
            exchange.writer.close() if rng.random() < 0.5 else None

    async def run() -> None:
        async with run_server(answering, limits=(A_MINUTE,), max_wait=3600, timeouts=HASTY) as it:
            start = time.monotonic()
            ended = await asyncio.gather(
                *(it.send(f"/{each}", max_bytes=1 << 20) for each in range(60)), return_exceptions=True
            )
            assert all(isinstance(each, HttpResponse | ArchiveError) for each in ended), ended
            assert sum(isinstance(each, HttpResponse) for each in ended) > 10
            assert {each.kind for each in ended if isinstance(each, FailedError)} >= {"redirects"}
            assert most_within(it.server.times, 60) <= 30
            assert it.server.max_open <= 6
            assert time.monotonic() - start < 30

    asyncio.run(run())


def test_response_frees_its_file_with_the_last_reference() -> None:
    """A body of several megabytes is in a temporary file."""

    async def answering(exchange: Exchange) -> None:
        await exchange.respond(200, bytes(3 << 20))

    async def run() -> None:
        async with run_server(answering) as it:
            for _ in range(5):
                assert (await it.send()).size == 3 << 20

    asyncio.run(run())
