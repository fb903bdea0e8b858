"""Everything that an archive can do wrong, one by one: what comes of it, what is asked next, and when."""

import asyncio
import gzip
import ssl
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.archives.asking.asking import HASTY, QUICK, Asking, Names, asking
from tests.neighbours.faults import Answering, Talk
from tests.neighbours.process import free_port
from tests.virtual_clock import VirtualClock
from unlost.archives.archive import Archive, Kind, Limit, Work
from unlost.archives.asking import addresses
from unlost.archives.asking.courier import Courier
from unlost.archives.asking.exchange import Deadlines
from unlost.archives.asking.question import Question
from unlost.archives.manners.limit_store import FileLimitStore, MemoryLimitStore
from unlost.errors import FailedError, NotNowError

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
MIB = 1 << 20


async def kind_of(asking: Asking, path: str = "/", **fields: object) -> str:
    """Return how a question fails."""
    with pytest.raises(FailedError) as caught:
        await asking.ask(path, **fields)
    assert caught.value.archive == "a"
    return caught.value.kind


@contextmanager
def memory_below(limit: int) -> Iterator[None]:
    """Fail if Python ever holds more than so many bytes within the block."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


def first(fault: Answering, times: int = 1) -> Answering:
    """Return what does something wrong with the first requests, and answers the others."""

    async def answering(talk: Talk) -> None:
        await (fault(talk) if talk.number < times else talk.say(OK))

    return answering


def saying(*pieces: bytes) -> Answering:
    """Return what sends bytes and then hangs."""

    async def answering(talk: Talk) -> None:
        await talk.say(*pieces)
        await talk.gone()

    return answering


@pytest.mark.parametrize(
    "said",
    [
        [],
        [b"HTTP/1.1 200 O"],
        [b"HTTP/1.1 200 OK\r\nx: 1\r\n"],
        [b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"],
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"],
    ],
    ids=["before the head", "within its first line", "within the head", "within the body", "between chunks"],
)
def test_a_hang_ends_at_its_deadline_and_is_not_repeated(said: list[bytes]) -> None:
    """Whoever hangs is asked once; the next question goes out on a new connection."""

    async def run() -> None:
        async with asking(first(saying(*said)), deadlines=HASTY) as it:
            begun = time.monotonic()
            assert await kind_of(it) == "timeout"
            assert time.monotonic() - begun < 5
            assert it.server.paths == ["/"]
            assert (await it.ask("/next")).body.read() == b"ok"
            assert (it.server.paths, it.server.connections, it.clock.slept) == (["/", "/next"], 2, [])

    asyncio.run(run())


def test_a_kept_connection_that_went_dead_is_tried_once_more() -> None:
    """The other side may be gone without a word: a hang on a connection used before is asked again on a new one."""

    async def answering(talk: Talk) -> None:
        await (talk.gone() if talk.number == 1 else talk.say(OK))

    async def run() -> None:
        async with asking(answering, deadlines=HASTY) as it:
            await it.ask("/first")
            assert (await it.ask("/second")).status == 200
            assert it.server.paths == ["/first", "/second", "/second"]
            assert it.server.connections == 2

    asyncio.run(run())


STRAY = b"the rest of a page that was longer than it said</html>\r\n"


@pytest.mark.parametrize("heals", [True, False])
def test_stray_bytes_of_the_answer_before_are_asked_around(heals: bool) -> None:
    """What is no HTTP on a connection used before is asked once more, at once, on a new one; and no third time."""
    arrived: list[Talk] = []
    dirty: set[asyncio.StreamWriter] = set()

    async def answering(talk: Talk) -> None:
        if talk.path == "/first":
            arrived.append(talk)
            while len(arrived) < 3:
                await asyncio.sleep(0)
            dirty.add(talk.writer)
        strays = talk.path == "/second" and (talk.writer in dirty or not heals)
        await talk.say(*([STRAY] if strays else []), OK)

    async def run() -> None:
        async with asking(answering) as it:
            await asyncio.gather(*(it.ask("/first") for _ in range(3)))
            if heals:
                assert (await it.ask("/second")).status == 200
            else:
                assert await kind_of(it, "/second") == "malformed"
            assert it.server.paths == ["/first"] * 3 + ["/second"] * 2
            assert (it.server.connections, it.clock.slept) == (4, [])

    asyncio.run(run())


def test_what_is_no_http_on_a_new_connection_is_not_asked_again() -> None:
    """Then it is what the archive says."""

    async def run() -> None:
        async with asking(first(saying(STRAY))) as it:
            assert await kind_of(it) == "malformed"
            assert it.server.paths == ["/"]

    asyncio.run(run())


REDIRECT = (
    b"HTTP/1.1 301 Moved\r\nmemento-datetime: Mon, 10 Feb 2014 00:00:01 GMT\r\nlocation: /elsewhere\r\n"
    b"content-length: 99\r\n%s\r\nabc"
)


@pytest.mark.parametrize("coding", [b"", b"content-encoding: gzip\r\n"])
@pytest.mark.parametrize("hangs", [True, False])
def test_the_head_of_a_captured_redirect_is_enough(hangs: bool, coding: bytes) -> None:
    """A body that hangs, or is shorter than the length that was captured, takes nothing from it."""

    async def answering(talk: Talk) -> None:
        if talk.number:
            await talk.say(OK)
            return
        await talk.say(REDIRECT % coding)
        await (talk.gone() if hangs else talk.reset())

    async def run() -> None:
        async with asking(answering, deadlines=HASTY) as it:
            reply = await it.ask("/page", redirects=0)
            assert (reply.status, reply.header("location"), reply.size) == (301, "/elsewhere", 0)
            assert reply.body.read() == b""
            assert (await it.ask("/next")).status == 200
            assert it.server.paths == ["/page", "/next"]

    asyncio.run(run())


def test_a_captured_redirect_that_is_whole_keeps_its_body() -> None:
    """And one of the archive's own that hangs is no answer."""

    async def answering(talk: Talk) -> None:
        if talk.path == "/own":
            await talk.say(REDIRECT.replace(b"memento-datetime", b"x-other") % b"")
            await talk.gone()
        await talk.say(REDIRECT.replace(b"99", b"3") % b"")

    async def run() -> None:
        async with asking(answering, deadlines=HASTY) as it:
            assert (await it.ask("/page", redirects=0)).body.read() == b"abc"
            assert await kind_of(it, "/own", redirects=0) == "timeout"

    asyncio.run(run())


def test_a_kept_connection_that_was_closed_costs_a_counted_request() -> None:
    """Nothing is sent behind our back: what is sent again waits, and is admitted like the first."""

    async def answering(talk: Talk) -> None:
        if talk.number == 1:
            talk.writer.close()
        else:
            await talk.say(OK)

    async def run() -> None:
        async with asking(answering) as it:
            await it.ask("/first")
            await it.ask("/second")
            assert it.server.paths == ["/first", "/second", "/second"]
            assert it.clock.slept == [1.0]

    asyncio.run(run())


def test_who_is_in_a_hurry_sends_again_only_what_met_a_closed_connection() -> None:
    """At once; a reset on a new connection and a fault of the archive are told as they are."""

    async def answering(talk: Talk) -> None:
        if talk.path == "/500":
            await talk.answer(500)
        elif talk.number == 1 or talk.path == "/reset":
            await talk.reset()
        else:
            await talk.say(OK)

    async def run() -> None:
        async with asking(answering, retries=0) as it:
            await it.ask("/first")
            assert (await it.ask("/second")).status == 200
            assert await kind_of(it, "/500") == "status"
            assert await kind_of(it, "/reset") == "reset"
            assert it.server.paths == ["/first", "/second", "/second", "/500", "/reset", "/reset"]
            assert await kind_of(it, "/reset") == "reset"
            assert it.server.paths[6:] == ["/reset"]
            assert it.clock.slept == [0.0, 0.0]

    asyncio.run(run())


async def _drip(talk: Talk) -> None:
    await talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n")
    for _ in range(10):
        await talk.say(b"x")
        await asyncio.sleep(0.05)


def test_a_slow_body_is_waited_for_within_the_total() -> None:
    """What keeps coming is read to its end, if that comes before the last deadline."""

    async def run() -> None:
        async with asking(_drip) as it:
            assert (await it.ask()).body.read() == b"x" * 10
        async with asking(_drip, deadlines=Deadlines(5, 3, 3, 0.3)) as it:
            assert await kind_of(it) == "timeout"
            assert it.server.paths == ["/"]

    asyncio.run(run())


async def _reset(talk: Talk) -> None:
    await talk.reset()


async def _reset_within(talk: Talk) -> None:
    await talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc")
    await talk.reset()


async def _short(talk: Talk) -> None:
    await talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc")
    talk.writer.close()


async def _short_chunks(talk: Talk) -> None:
    await talk.say(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n")
    talk.writer.close()


async def _closed(talk: Talk) -> None:
    talk.writer.close()


async def _status_500(talk: Talk) -> None:
    await talk.answer(500, b"sorry")


BROKEN = {
    "reset": (_reset, "reset"),
    "reset within the body": (_reset_within, "reset"),
    "closed": (_closed, "reset"),
    "a body shorter than its length": (_short, "reset"),
    "chunks without an end": (_short_chunks, "reset"),
    "500": (_status_500, "status"),
}


@pytest.mark.parametrize(("fault", "kind"), BROKEN.values(), ids=BROKEN)
def test_what_may_pass_is_tried_again_with_growing_pauses(fault: Answering, kind: str) -> None:
    """Twice, after one second and four: then it is an answer, or a failure of its kind."""

    async def run() -> None:
        async with asking(first(fault, 2)) as it:
            assert (await it.ask()).body.read() == b"ok"
            assert (len(it.server.asked), it.clock.slept) == (3, [1.0, 4.0])
        async with asking(fault) as it:
            assert await kind_of(it) == kind
            assert (len(it.server.asked), it.clock.slept) == (3, [1.0, 4.0])
        async with asking(fault, deadlines=Deadlines(5, 3, 3, 3)) as it:
            assert await kind_of(it) == kind
            assert (len(it.server.asked), it.clock.slept) == (2, [1.0])

    asyncio.run(run())


def test_a_refused_connection_is_a_block_that_survives_a_restart(tmp_path: Path) -> None:
    """An hour without a word, then two; one answer later it begins at an hour again."""
    limits = (Limit(100, 1, (Work.INDEX,), "the test"),)
    archive = Archive("a", "A", Kind.MEMENTO, timemap=f"http://127.0.0.1:{free_port()}/", limits=limits)
    clock, question = VirtualClock(), Question(archive.timemap or "", Work.INDEX)

    async def run() -> None:
        for hours in (1, 2, 4):
            async with Courier(FileLimitStore(tmp_path), clock, "me@example.com", QUICK) as courier:
                with pytest.raises(FailedError) as failed:
                    await courier.ask(archive, question)
                assert failed.value.kind == "refused"
            async with Courier(FileLimitStore(tmp_path), clock, "me@example.com", QUICK) as courier:
                with pytest.raises(NotNowError) as refused:
                    await courier.ask(archive, question)
                assert (refused.value.reason, refused.value.until) == ("blocked", clock.now() + 3600 * hours)
            clock.advance(3600 * hours)

    asyncio.run(run())


def test_a_server_of_ones_own_is_not_blocked() -> None:
    """What has no limits was only not running: it is asked again as soon as somebody wants something of it."""
    store, clock = MemoryLimitStore(), VirtualClock()
    archive = Archive("a", "A", Kind.MEMENTO, timemap=f"http://127.0.0.1:{free_port()}/")

    async def run() -> None:
        async with Courier(store, clock, "me@example.com", QUICK) as courier:
            for _ in range(2):
                with pytest.raises(FailedError, match="refused"):
                    await courier.ask(archive, Question(archive.timemap or "", Work.INDEX))
        assert store.is_clear("a")

    asyncio.run(run())


def test_who_answers_after_a_block_is_trusted_again() -> None:
    """The next refusal is a block of an hour, not a longer one."""
    store = MemoryLimitStore()

    async def run() -> None:
        async with asking(first(_reset, 0), store=store) as it:
            limits = (Limit(100, 1, (Work.INDEX,), "the test"),)
            other = Archive("a", "A", Kind.MEMENTO, timemap=f"http://127.0.0.1:{free_port()}/", limits=limits)
            for _ in range(3):
                with pytest.raises(FailedError):
                    await it.courier.ask(other, Question(other.timemap or "", Work.INDEX))
                it.clock.advance(store.change("a", lambda ledger: (ledger, ledger.blocked_for)))
            await it.ask()
            assert store.change("a", lambda ledger: (ledger, ledger.blocked_for)) == 0

    asyncio.run(run())


def test_a_refusal_behind_a_redirect_does_not_block_the_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy may lead to the site that is gone: that is not the archive's doing."""
    # Nothing but loopback may be connected to in tests.
    monkeypatch.setattr(addresses, "is_public", lambda _: True)
    gone = f"http://gone.example:{free_port()}/"

    async def answering(talk: Talk) -> None:
        await (talk.answer(302, location=gone) if talk.path == "/" else talk.say(OK))

    async def run() -> None:
        async with asking(answering, resolver=Names("127.0.0.1")) as it:
            assert await kind_of(it) == "refused"
            assert (await it.ask("/next")).status == 200

    asyncio.run(run())


def throttling(status: int, times: int, **headers: str) -> Answering:
    """Return what tells the first questions to wait."""

    async def fault(talk: Talk) -> None:
        await talk.answer(status, b"slow down", **headers)

    return first(fault, times)


@pytest.mark.parametrize("status", [429, 503])
def test_without_retry_after_the_wait_is_a_minute_and_then_two(status: int) -> None:
    """The question is asked again by itself, on the same connection, when the time has come."""

    async def run() -> None:
        async with asking(throttling(status, 2)) as it:
            began = it.clock.now()
            assert (await it.ask()).status == 200
            assert [round(when - began) for when in it.server.times] == [0, 60, 180]
            assert it.server.connections == 1

    asyncio.run(run())


@pytest.mark.parametrize("retry_after", ["20", "Tue, 14 Nov 2023 22:13:40 GMT"])
def test_retry_after_is_obeyed_in_both_forms(retry_after: str) -> None:
    """Seconds or a date: nothing is asked before, and it is asked then."""

    async def run() -> None:
        async with asking(throttling(429, 1, retry_after=retry_after)) as it:
            began = it.clock.now()
            assert (await it.ask()).status == 200
            assert [round(when - began) for when in it.server.times] == [0, 20]

    asyncio.run(run())


def test_a_wait_longer_than_patience_is_said_and_kept() -> None:
    """Whoever has no patience learns at once until when, and so do all the others, without a request."""

    async def run() -> None:
        async with asking(throttling(429, 99, retry_after="120"), patience=100) as it:
            until = it.clock.now() + 120
            for _ in range(5):
                with pytest.raises(NotNowError) as caught:
                    await it.ask(work=Work.REPLAY)
                assert (caught.value.until, caught.value.reason) == (until, "told-to-wait")
            assert len(it.server.asked) == 1
            it.clock.advance(119)
            with pytest.raises(NotNowError):
                await it.ask()
            assert len(it.server.asked) == 2

    asyncio.run(run())


def test_questions_on_their_way_together_are_told_to_wait_once() -> None:
    """Six answers of 429 at once are one minute, not half an hour."""

    async def run() -> None:
        everybody = asyncio.Event()

        async def answering(talk: Talk) -> None:
            if talk.number == 5:
                everybody.set()
            await everybody.wait()
            await (talk.answer(429) if talk.number < 6 else talk.say(OK))

        async with asking(answering) as it:
            replies = await asyncio.gather(*(it.ask(f"/{number}") for number in range(6)))
            assert [reply.status for reply in replies] == [200] * 6
            # On this clock, one of them may wait while another is still being told; but nothing doubles.
            assert max(it.server.times) - min(it.server.times) <= 6 * 60

    asyncio.run(run())


@pytest.mark.parametrize("status", [429, 500, 503, 404])
def test_a_capture_is_an_answer_whatever_its_status(status: int) -> None:
    """With Memento-Datetime, 429 and 503 are what somebody else said long ago, not to us."""

    async def answering(talk: Talk) -> None:
        await talk.answer(status, b"then", memento_datetime="Tue, 14 Nov 2023 22:13:40 GMT", retry_after="1000")

    async def run() -> None:
        async with asking(answering) as it:
            for _ in range(3):
                reply = await it.ask()
                assert (reply.status, reply.body.read()) == (status, b"then")
            assert (len(it.server.asked), it.clock.slept) == (3, [])

    asyncio.run(run())


def test_rubbish_comes_back_as_it_is() -> None:
    """5 MB of it, under a charset that does not exist, are bytes like others: clients judge them."""
    rubbish = bytes(range(256)) * (5 * MIB // 256)

    async def answering(talk: Talk) -> None:
        await talk.answer(200, rubbish, content_type="text/html; charset=klingon")

    async def run() -> None:
        async with asking(answering) as it:
            with memory_below(4 * MIB):
                reply = await it.ask()
            assert (reply.size, reply.header("Content-Type")) == (5 * MIB, "text/html; charset=klingon")
            assert reply.body.read() == rubbish

    asyncio.run(run())


@pytest.mark.parametrize(
    "said",
    [
        [b"rubbish\n" * 64_000] * 10,
        [b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 100_000] * 50,
        [b"HTTP/1.1 200 OK\r\n"] + [b"x: y\r\n" * 1000] * 1000,
        [b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n"],
    ],
    ids=["no HTTP", "a field without an end", "fields without an end", "no length"],
)
def test_what_is_not_http_is_malformed(said: list[bytes]) -> None:
    """It is told at once, whatever its size, and not asked again."""

    async def run() -> None:
        async with asking(saying(*said)) as it:
            with memory_below(8 * MIB):
                assert await kind_of(it) == "malformed"
            assert len(it.server.asked) == 1

    asyncio.run(run())


async def _endless(talk: Talk) -> None:
    await talk.say(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        await talk.say(b"x" * 65_536)


async def _endless_chunks(talk: Talk) -> None:
    await talk.say(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        await talk.say(b"10000\r\n" + b"x" * 65_536 + b"\r\n")


async def _endless_nothing(talk: Talk) -> None:
    await talk.say(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n")
    while True:
        await talk.say(gzip.compress(b"") * 3000)


async def _announced(talk: Talk) -> None:
    await talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\nabc")
    await talk.gone()


def _bomb(coding: str, layers: int = 1) -> Answering:
    zeros = gzip.compress(bytes(16 * MIB), 9) * 320  # 5 GiB in 5 MB
    data = zeros if layers == 1 else gzip.compress(zeros, 9)

    async def answering(talk: Talk) -> None:
        await talk.answer(200, data, content_encoding=coding)

    return answering


LARGE: dict[str, Callable[[], Answering]] = {
    "endless": lambda: _endless,
    "endless chunks": lambda: _endless_chunks,
    "endless nothing": lambda: _endless_nothing,
    "announced": lambda: _announced,
    "gzip bomb": lambda: _bomb("gzip"),
    "gzip bomb in gzip": lambda: _bomb("gzip, gzip", 2),
}


@pytest.mark.parametrize("made", LARGE.values(), ids=LARGE)
def test_what_is_too_large_is_given_up_at_its_limit(made: Callable[[], Answering]) -> None:
    """Neither a body without an end nor one that unpacks to 5 GB takes memory, or is asked for twice."""
    answering = made()

    async def run() -> None:
        async with asking(first(answering)) as it:
            with memory_below(4 * MIB):
                assert await kind_of(it, max_bytes=4 * MIB) == "too-large"
            assert (await it.ask()).status == 200
            assert len(it.server.asked) == 2

    asyncio.run(run())


def test_a_bomb_of_a_million_empty_streams_is_ended_by_the_deadline() -> None:
    """Twenty bytes that unpack to nothing cost time, and only so much of it."""
    data = gzip.compress(b"") * 2_000_000

    async def answering(talk: Talk) -> None:
        await talk.answer(200, data, content_encoding="gzip")

    async def run() -> None:
        async with asking(answering, deadlines=Deadlines(2, 1, 1, 0.5)) as it:
            begun = time.monotonic()
            assert await kind_of(it) == "timeout"
            assert time.monotonic() - begun < 5

    asyncio.run(run())


@pytest.mark.parametrize("status", [302, 429, 500])
def test_a_body_of_no_use_is_drained(status: int) -> None:
    """It may come some time after its headers: the connection is kept all the same."""

    async def fault(talk: Talk) -> None:
        await talk.say(b"HTTP/1.1 %d No\r\nlocation: /next\r\ncontent-length: 9\r\n\r\n" % status)
        await asyncio.sleep(0.05)
        await talk.say(b"somewhere")

    async def run() -> None:
        async with asking(first(fault)) as it:
            assert (await it.ask()).status == 200
            assert (len(it.server.asked), it.server.connections) == (2, 1)

    asyncio.run(run())


def test_a_body_of_no_use_that_is_too_large_to_drain_costs_its_connection() -> None:
    """The page of an error may be endless, too."""

    async def fault(talk: Talk) -> None:
        await talk.say(b"HTTP/1.1 500 Sorry\r\n\r\n")
        while True:
            await talk.say(b"x" * 65_536)

    async def run() -> None:
        async with asking(first(fault, 2)) as it:
            with memory_below(8 * MIB):
                assert (await it.ask()).status == 200
            assert it.server.connections == 3

    asyncio.run(run())


def test_a_certificate_that_nobody_vouches_for_ends_the_matter() -> None:
    """Nothing is asked over a connection that is not safe, and it is told by its name."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(Path(__file__).parent / "files" / "untrusted.pem")

    async def run() -> None:
        async with asking(saying(OK), tls=tls) as it:
            assert await kind_of(it) == "tls"
            assert (it.server.asked, it.clock.slept) == ([], [])

    asyncio.run(run())


def test_a_server_that_does_not_speak_tls_is_a_fault_of_tls() -> None:
    """It answers in plain text to whatever comes."""

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def run() -> None:
        async with asking(saying(OK)) as it, await asyncio.start_server(plain, "127.0.0.1", 0) as server:
            it.server.scheme, it.server.port = "https", server.sockets[0].getsockname()[1]
            it.archive = Archive("a", "A", Kind.MEMENTO, timemap=it.server.url)
            assert await kind_of(it) == "tls"

    asyncio.run(run())
