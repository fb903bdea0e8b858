"""Questions and answers: limits at the server, redirects, connections, codings, who we say we are."""

import asyncio
import gzip
import random
import subprocess
import time
import zlib
from pathlib import Path

import brotli
import pytest

from tests.archives.asking.asking import HASTY, Asking, Names, asking
from tests.archives.manners.test_admission import most_within
from tests.neighbours.faults import Answering, Talk
from tests.neighbours.process import free_port
from unlost._core import VERSION
from unlost.archives.archive import Archive, Kind, Limit, Work
from unlost.archives.asking import addresses
from unlost.archives.asking.courier import Courier
from unlost.archives.asking.question import Question, Reply
from unlost.archives.manners.limit_store import FileLimitStore, MemoryLimitStore
from unlost.clock import SystemClock
from unlost.errors import ArchiveError, FailedError, NotNowError, UsageError

A_MINUTE = Limit(30, 60, (Work.INDEX,), "a test")


async def _ok(talk: Talk) -> None:
    await talk.answer(200, b"ok")


async def _miss(talk: Talk) -> None:
    await talk.answer(404, b"not here")


def leading(places: dict[str, str], status: int = 302) -> Answering:
    """Return what redirects some paths, and answers others."""

    async def answering(talk: Talk) -> None:
        if talk.path in places:
            await talk.answer(status, b"elsewhere", location=places[talk.path])
        else:
            await talk.answer(200, b"here")

    return answering


async def failure(asking: Asking, path: str = "/", **fields: object) -> str:
    """Return how a question fails."""
    with pytest.raises(FailedError) as caught:
        await asking.ask(path, **fields)
    return caught.value.kind


@pytest.mark.parametrize("at_once", [1, 50])
def test_a_thousand_misses_use_few_connections(at_once: int) -> None:
    """Bodies are read and connections kept, also when many are asked at once."""

    async def run() -> None:
        async with asking(_miss) as it:
            for begin in range(0, 1000, at_once):
                replies = await asyncio.gather(*(it.ask(f"/{begin + each}") for each in range(at_once)))
                assert {reply.status for reply in replies} == {404}
            assert len(it.server.asked) == 1000
            assert it.server.connections <= (1 if at_once == 1 else 6)

    asyncio.run(run())


def test_the_server_never_counts_more_than_the_limit() -> None:
    """100 questions at once to an archive of 30 a minute, counted there, on virtual time; others are not held up."""

    async def run() -> None:
        async with asking(_ok, limits=(A_MINUTE,), patience=600) as it:
            many = asyncio.gather(*(it.ask(f"/{each}") for each in range(100)))
            replay = [await it.ask("/replay", work=Work.REPLAY) for _ in range(10)]
            assert len(replay) == 10
            assert len(await many) == 100
            times = [when for when, path in it.server.asked if path != "/replay"]
            assert most_within(times, 60) <= 30
            assert times[-1] - times[0] < 100 / 20 * 60, "and it does not dawdle"

    asyncio.run(run())


def test_the_server_never_counts_more_than_the_limit_on_real_time(tmp_path: Path) -> None:
    """Two couriers that share a folder keep a limit of 50 a second together."""
    limit = Limit(50, 1, (Work.INDEX,), "a test")

    async def run() -> None:
        async with asking(_ok, limits=(limit,)) as it:
            it.server.clock = SystemClock()
            async with (
                Courier(FileLimitStore(tmp_path), SystemClock(), "me@example.com") as one,
                Courier(FileLimitStore(tmp_path), SystemClock(), "me@example.com") as two,
            ):
                question = Question(it.server.url + "/", Work.INDEX)
                await asyncio.gather(*(each.ask(it.archive, question) for each in (one, two) * 50))
            assert len(it.server.asked) == 100
            assert most_within(it.server.times, 1) <= 50

    asyncio.run(run())


def test_who_has_no_patience_is_told_until_when() -> None:
    """A question that would wait for longer than somebody is willing to is not sent at all."""

    async def run() -> None:
        async with asking(_ok, limits=(Limit(1, 60, (Work.INDEX,), "a test"),), patience=10) as it:
            await it.ask()
            with pytest.raises(NotNowError) as caught:
                await it.ask()
            assert caught.value.reason == "rate"
            assert caught.value.until == pytest.approx(it.clock.now() + 75, abs=0.1)
            assert len(it.server.asked) == 1

    asyncio.run(run())


def test_somebody_who_gives_up_waiting_holds_nobody_up() -> None:
    """A question that is cancelled while it waits, or while it is on its way, leaves the queue to the next."""

    async def run() -> None:
        hanging = asyncio.Event()

        async def answering(talk: Talk) -> None:
            if talk.path == "/hang":
                hanging.set()
                await talk.gone()
            await _ok(talk)

        async with asking(answering, connections_per_host=1) as it:
            first = asyncio.create_task(it.ask("/hang"))
            await hanging.wait()
            waiting = asyncio.create_task(it.ask("/waiting"))
            await asyncio.sleep(0)
            waiting.cancel()
            first.cancel()
            await asyncio.gather(first, waiting, return_exceptions=True)
            assert (await it.ask("/next")).status == 200
            assert "/waiting" not in it.server.paths

    asyncio.run(run())


def test_without_a_contact_half_as_much_is_asked_and_it_is_said_once() -> None:
    """Whoever cannot be written to goes slower."""

    async def seconds(contact: str | None, said: list[str]) -> float:
        async with asking(_ok, limits=(A_MINUTE,), contact=contact, patience=9999, tell=said.append) as it:
            for _ in range(100):
                await it.ask()
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


def test_we_say_who_we_are_and_take_no_cookies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tool, its version and the contact; no cookie comes back; proxies of the environment are not asked."""
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    heads: list[dict[str, str]] = []

    async def answering(talk: Talk) -> None:
        heads.append(talk.headers)
        await talk.answer(200, b"", set_cookie="a=b")

    async def run() -> None:
        async with asking(answering) as it:
            await it.ask()
            await it.ask(headers={"Accept-Datetime": "Tue, 14 Nov 2023 22:13:40 GMT"})
        async with asking(answering, contact=None, tell=lambda _: None) as it:
            await it.ask()

    asyncio.run(run())
    assert [head["user-agent"] for head in heads] == [f"unlost/{VERSION} (+me@example.com)"] * 2 + [f"unlost/{VERSION}"]
    assert all("cookie" not in head for head in heads)
    assert "accept-datetime" in heads[1]
    assert heads[0]["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize("contact", ["a\r\nX: y", "", " ", "jörg", "me) (you"])
def test_a_contact_that_no_header_can_have_is_refused(contact: str) -> None:
    """It would be a way to write headers."""
    with pytest.raises(UsageError):
        Courier(MemoryLimitStore(), SystemClock(), contact)


def test_the_proxies_of_the_environment_are_used_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the proxy gets the whole address; one that is not there is no block of the archive."""

    async def run() -> None:
        async with asking(_ok, proxies=True) as it:
            monkeypatch.setenv("HTTP_PROXY", it.server.url)
            archive = Archive("b", "B", Kind.MEMENTO, timemap="http://archive.example/")
            await it.courier.ask(archive, Question("http://archive.example/x", Work.INDEX))
            assert it.server.paths == ["http://archive.example/x"]
            monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
            for _ in range(2):
                with pytest.raises(FailedError) as caught:
                    await it.courier.ask(archive, Question("http://archive.example/x", Work.INDEX))
                assert caught.value.kind == "unreachable"

    asyncio.run(run())


def test_redirects_are_followed_and_counted() -> None:
    """Each hop is a request within the limits; the answer says where it came from."""
    places = {"/a": "/b?x=http://c.example//d", "/b?x=http://c.example//d": "e"}

    async def run() -> None:
        async with asking(leading(places), limits=(Limit(1, 60, (Work.INDEX,), "a test"),)) as it:
            reply = await it.ask("/a")
            assert (reply.url, reply.body.read()) == (f"{it.server.url}/e", b"here")
            assert it.server.paths == ["/a", "/b?x=http://c.example//d", "/e"]
            assert most_within(it.server.times, 74) == 1
            assert it.server.connections == 1

    asyncio.run(run())


def test_with_no_redirects_allowed_the_redirect_is_the_answer() -> None:
    """Its body and its Location are there for the client to judge."""

    async def run() -> None:
        async with asking(leading({"/a": "http://127.0.0.1:1/"})) as it:
            reply = await it.ask("/a", redirects=0)
            assert (reply.status, reply.header("LOCATION"), reply.body.read()) == (
                302,
                "http://127.0.0.1:1/",
                b"elsewhere",
            )

    asyncio.run(run())


@pytest.mark.parametrize(
    ("places", "asked"),
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
def test_redirects_that_lead_nowhere_end(places: dict[str, str], asked: int) -> None:
    """A circle, too many, or what is no address of the web."""

    async def run() -> None:
        async with asking(leading(places)) as it:
            assert await failure(it) == "redirects"
            assert len(it.server.asked) == asked
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
def test_no_redirect_leads_inside_a_network(host: str) -> None:
    """By number in any spelling, or by a name that means one: nothing is connected to."""

    async def run() -> None:
        async with asking(_ok, resolver=Names("127.0.0.1")) as it:
            it.server.answering = leading({"/": f"http://{host}:{it.server.port}/inside"})
            own = Archive("a", "A", Kind.MEMENTO, timemap=f"http://archive.example:{it.server.port}/")
            with pytest.raises(FailedError) as caught:
                await it.courier.ask(own, Question(f"http://archive.example:{it.server.port}/", Work.INDEX))
            assert caught.value.kind == "redirects"
            assert it.server.paths == ["/"]

    asyncio.run(run())


def test_no_redirect_leads_inside_where_no_proxy_is_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who use proxies, if the environment names any, are as safe as others."""
    monkeypatch.setenv("NO_PROXY", "*")

    async def run() -> None:
        async with asking(_ok, resolver=Names("127.0.0.1"), proxies=True) as it:
            it.server.answering = leading({"/": f"http://inside.example:{it.server.port}/inside"})
            with pytest.raises(FailedError) as caught:
                await it.ask()
            assert caught.value.kind == "redirects"
            assert it.server.paths == ["/"]

    asyncio.run(run())


def test_a_name_that_changes_its_address_leads_inside_no_more_than_others() -> None:
    """What is connected to is what was checked: a second look is checked again."""

    async def run() -> None:
        names = Names("127.0.0.1")
        async with asking(_ok, resolver=names) as it:
            port = it.server.port
            inside = Archive("i", "I", Kind.MEMENTO, timemap=f"http://inside.example:{port}/")
            await it.courier.ask(inside, Question(f"http://inside.example:{port}/", Work.INDEX))
            # Another archive may not use the connection that is open there now, nor what was looked up for it.
            with pytest.raises(FailedError) as caught:
                await it.courier.ask(it.archive, Question(f"http://inside.example:{port}/", Work.INDEX))
            assert caught.value.kind == "redirects"
            assert len(it.server.asked) == 1

    asyncio.run(run())


def test_secrets_stay_with_the_host_that_they_are_for() -> None:
    """A redirect to another place does not get what was meant for this one; other headers go along."""
    heads: list[dict[str, str]] = []

    async def run() -> None:
        async with asking(_ok, resolver=Names("127.0.0.1")) as it:
            other = f"http://other.example:{it.server.port}/b"

            async def answering(talk: Talk) -> None:
                heads.append(talk.headers)
                await (talk.answer(302, location=other) if talk.path == "/a" else _ok(talk))

            it.server.answering = answering
            it.archive = Archive("a", "A", Kind.MEMENTO, timemap=it.server.url, timegate=other)
            await it.ask("/a", headers={"Authorization": "secret", "Accept-Datetime": "x"})

    asyncio.run(run())
    assert ["authorization" in head for head in heads] == [True, False]
    assert ["accept-datetime" in head for head in heads] == [True, True]


@pytest.mark.parametrize(("status", "host", "waits"), [(429, "other", True), (503, "other", False), (503, "a", True)])
def test_who_says_to_wait_behind_a_redirect(
    monkeypatch: pytest.MonkeyPatch, status: int, host: str, waits: bool
) -> None:
    """429 is for us wherever an archive leads us; 503 only at its own host, whose ports need not be registered."""
    # The same server stands for the registered place and for one that is not.
    monkeypatch.setattr(addresses, "is_public", lambda _: True)

    async def run() -> None:
        async with asking(_ok, resolver=Names("127.0.0.1"), patience=5) as it:

            async def answering(talk: Talk) -> None:
                if talk.number == 0:
                    await talk.answer(302, location=f"http://{host}.example:{it.server.port}/b")
                else:
                    await talk.answer(status)

            it.server.answering = answering
            own = f"http://a.example:{it.server.port}/a"
            it.archive = Archive("a", "A", Kind.MEMENTO, timemap=own, timegate="http://a.example:1/")
            with pytest.raises(NotNowError if waits else FailedError):
                await it.courier.ask(it.archive, Question(own, Work.INDEX))

    asyncio.run(run())


def test_an_address_is_sent_as_it_is() -> None:
    """Addresses inside addresses are not tidied up; only what no address may have is escaped."""

    async def run() -> None:
        async with asking(_ok) as it:
            await it.ask("/web/2014id_/http://a.example//b/../%zz?x=a+b&y=%2f|ü #top")
            assert it.server.paths == ["/web/2014id_/http://a.example//b/../%zz?x=a+b&y=%2f|%C3%BC%20"]

    asyncio.run(run())


@pytest.mark.parametrize("url", ["", "a.example", "ftp://a.example/", "http://"])
def test_what_is_no_address_is_not_asked(url: str) -> None:
    """It may come from an archive's own answer, so it is that archive's failure."""

    async def run() -> None:
        async with asking(_ok) as it:
            with pytest.raises(FailedError) as caught:
                await it.courier.ask(it.archive, Question(url, Work.INDEX))
            assert caught.value.kind == "malformed"

    asyncio.run(run())


PAGE = b"<html>" + bytes(range(256)) * 500
RAW = zlib.compressobj(wbits=-15)
ZSTD = subprocess.run(["zstd", "--stdout"], input=PAGE, capture_output=True, check=True).stdout
CODED = {
    "plain": ({}, PAGE, PAGE),
    "gzip": ({"content_encoding": "gzip"}, gzip.compress(PAGE), PAGE),
    "two streams": ({"content_encoding": "x-gzip"}, gzip.compress(PAGE) * 2, PAGE * 2),
    "rubbish behind": ({"content_encoding": "gzip"}, gzip.compress(PAGE) + bytes(999), PAGE),
    "deflate": ({"content_encoding": "deflate"}, zlib.compress(PAGE), PAGE),
    "raw deflate": ({"content_encoding": "deflate"}, RAW.compress(PAGE) + RAW.flush(), PAGE),
    "deflate that is gzip": ({"content_encoding": "deflate"}, gzip.compress(PAGE), PAGE),
    "not gzip": ({"content_encoding": "gzip"}, PAGE, PAGE),
    "not deflate": ({"content_encoding": "deflate"}, PAGE, PAGE),
    "nothing": ({"content_encoding": "gzip"}, b"", b""),
    "one byte": ({"content_encoding": "gzip"}, b"\x1f", b"\x1f"),
    "a file that is gzip": ({"content_type": "application/gzip"}, gzip.compress(PAGE), gzip.compress(PAGE)),
    "told by the original": ({"x_archive_orig_content_encoding": "gzip"}, gzip.compress(PAGE), PAGE),
    "not br": ({"content_encoding": "br"}, PAGE, PAGE),
    "br that was captured": ({"content_encoding": "br"}, brotli.compress(PAGE), PAGE),
    "br told by the original": ({"x_archive_orig_content_encoding": "br"}, brotli.compress(PAGE), PAGE),
    "zstd that was captured": ({"content_encoding": "zstd"}, ZSTD, PAGE),
    "undone before": ({"x_archive_orig_content_encoding": "compress"}, b"\0PAGE", b"\0PAGE"),
    "twice": ({"content_encoding": "deflate, gzip"}, gzip.compress(zlib.compress(PAGE)), PAGE),
    "identity": ({"content_encoding": "identity"}, PAGE, PAGE),
}


@pytest.mark.parametrize(("headers", "sent", "body"), CODED.values(), ids=CODED)
def test_codings_are_undone_by_what_is_there(headers: dict[str, str], sent: bytes, body: bytes) -> None:
    """What says that it is compressed and is not passes as it is; what nobody calls compressed is left alone."""

    async def answering(talk: Talk) -> None:
        await talk.answer(200, sent, **headers)

    async def run() -> None:
        async with asking(answering) as it:
            reply = await it.ask()
            assert reply.body.read() == body
            assert reply.size == len(body)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("coding", "sent"),
    [
        ("gzip", gzip.compress(PAGE)[:-20]),
        ("gzip", gzip.compress(PAGE)[:40] + b"\xff" * 40),
        ("gzip", gzip.compress(b"x")[:-8] + bytes(8)),
        ("compress", b"\x1f\x9d\x90" * 9),
        ("gzip" + ", gzip" * 4, b"whatever"),
    ],
    ids=["cut", "damaged", "wrong sum", "not known", "too many"],
)
def test_a_body_that_cannot_be_decoded_is_malformed(coding: str, sent: bytes) -> None:
    """Half a page is never taken for a whole one."""

    async def answering(talk: Talk) -> None:
        await talk.answer(200, sent, content_encoding=coding)

    async def run() -> None:
        async with asking(answering) as it:
            assert await failure(it) == "malformed"
            assert len(it.server.asked) == 1

    asyncio.run(run())


def test_a_part_of_a_file_is_not_decoded() -> None:
    """A range of a WARC is one gzip member, to be read as such."""
    member = gzip.compress(PAGE)

    async def answering(talk: Talk) -> None:
        await talk.answer(206, member, content_encoding="gzip")

    async def run() -> None:
        async with asking(answering) as it:
            assert (await it.ask(headers={"Range": "bytes=0-99"})).body.read() == member

    asyncio.run(run())


BOMB = gzip.compress(bytes(1 << 22))
MIXED: list[Answering] = [
    lambda talk: talk.reset(),
    lambda talk: talk.say(b"rubbish\r\n\r\n" * 1000),
    lambda talk: talk.say(b"HTTP/1.1 200 OK\r\n\r\nabc"),
    lambda talk: talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"),
    lambda talk: talk.answer(500, b"x" * 1000),
    lambda talk: talk.answer(503, b"", retry_after="7"),
    lambda talk: talk.answer(429),
    lambda talk: talk.answer(200, BOMB, content_encoding="gzip"),
    lambda talk: talk.answer(302, b"", location=talk.path),
    lambda talk: talk.answer(302, b"", location=talk.path + "/more"),
    lambda talk: talk.answer(301, b"", location="http://10.0.0.1/"),
    lambda talk: talk.gone(),
]


@pytest.mark.parametrize("seed", range(4))
def test_a_mix_of_faults_breaks_no_limit_and_hangs_nobody(seed: int) -> None:
    """Whatever an archive does from one request to the next, each question ends, and it never counts too many."""
    chance = random.Random(seed)  # noqa: S311  not for secrets

    async def answering(talk: Talk) -> None:
        if chance.random() < 0.4:
            await talk.answer(200, b"ok")
        else:
            await chance.choice(MIXED)(talk)
            talk.writer.close() if chance.random() < 0.5 else None

    async def run() -> None:
        async with asking(answering, limits=(A_MINUTE,), patience=3600, deadlines=HASTY) as it:
            begun = time.monotonic()
            ended = await asyncio.gather(
                *(it.ask(f"/{each}", max_bytes=1 << 20) for each in range(60)), return_exceptions=True
            )
            assert all(isinstance(each, Reply | ArchiveError) for each in ended), ended
            assert sum(isinstance(each, Reply) for each in ended) > 10
            assert {each.kind for each in ended if isinstance(each, FailedError)} >= {"redirects"}
            assert most_within(it.server.times, 60) <= 30
            assert it.server.most_open <= 6
            assert time.monotonic() - begun < 30

    asyncio.run(run())


def test_a_reply_frees_its_file_with_the_last_reference() -> None:
    """A body of several megabytes is on the disk, and neither warns nor stays when nobody has it any more."""

    async def answering(talk: Talk) -> None:
        await talk.answer(200, bytes(3 << 20))

    async def run() -> None:
        async with asking(answering) as it:
            for _ in range(5):
                assert (await it.ask()).size == 3 << 20

    asyncio.run(run())
