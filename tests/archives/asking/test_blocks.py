"""Archives that refuse or say to wait: how long they are left alone, and who knows of it."""

import asyncio
from pathlib import Path

import pytest

from tests.archives.asking.answering import OK, first, reset
from tests.archives.asking.asking import QUICK, Names, asking, kind_of
from tests.neighbours.faults import Answering, Talk
from tests.neighbours.process import free_port
from tests.virtual_clock import VirtualClock
from unlost.archives.archive import Archive, Kind, Limit, Work
from unlost.archives.asking import addresses
from unlost.archives.asking.courier import Courier
from unlost.archives.asking.question import Question
from unlost.archives.manners.limit_store import FileLimitStore, MemoryLimitStore
from unlost.errors import FailedError, NotNowError


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
        async with asking(first(reset, 0), store=store) as it:
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
