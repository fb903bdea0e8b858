"""archive.today: one archive under many names, lists of copies, migrated pages, captchas."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from tests.archives.archive_files import body_of
from tests.archives.helpers import collected, listed
from tests.neighbours.archive_today import ArchiveToday as FakeArchiveToday
from tests.neighbours.archive_today import serving
from tests.virtual_clock import VirtualClock
from unlost.archives import ArchiveTodayClient, ArchiveTodayDomains
from unlost.capture import Capture
from unlost.errors import FailedError, NotNowError, UnsupportedError
from unlost.http import AddressInfo, ArchiveHttpClient, HostPort, MemoryLimitStore, literal_address_info
from unlost.registry import Archive, ArchiveKind

T = TypeVar("T")
HOME = "http://example.com/"
COPIES = [
    ("20120523210412", HOME, b"first"),
    ("20140101030405", "https://example.com/", b"second"),
    ("20160810200921", HOME, b"third"),
]
PAGES = {HOME: COPIES}


class Loopback:
    """Finds the archive's names on this machine."""

    async def resolve(self, host: str, port: int) -> list[AddressInfo]:
        """Return one address for all."""
        assert host.startswith("archive.")
        return [literal_address_info(HostPort("127.0.0.1", port))]


Asked = Callable[[ArchiveTodayClient, FakeArchiveToday], Coroutine[Any, Any, T]]


def ask(question: Asked[T], *, clock: VirtualClock | None = None, patience: float = 1e6, has_timemap: bool = True) -> T:
    """Ask a client of the small archive."""
    time = clock or VirtualClock()

    async def asking() -> T:
        async with serving(PAGES) as fake:
            base = f"http://archive.today:{fake.port}"
            archive = Archive(
                "today",
                "Archive.today",
                ArchiveKind.ARCHIVE_TODAY,
                timemap=f"{base}/timemap/" if has_timemap else None,
                timegate=f"{base}/timegate/",
                canonical=(),
                migrated=("*",),
            )
            http_client = ArchiveHttpClient(
                MemoryLimitStore(), time, "https://example.com/", max_wait=patience, resolver=Loopback()
            )
            async with http_client:
                return await question(ArchiveTodayClient(archive, http_client, clock=time), fake)

    return asyncio.run(asking())


def test_captures_under_any_domain() -> None:
    """All copies of its list count, with the very address of each; the name that it sends to is remembered."""

    async def question(client: ArchiveTodayClient, fake: FakeArchiveToday) -> None:
        found = await listed(client.captures(HOME))
        assert [(c.datetime, c.uri, c.migrated, c.archive) for c in found] == [
            (moment, address, True, "today") for moment, address, _ in COPIES
        ]
        assert (found[0].urim or "").startswith("http://archive.md:")
        assert await listed(client.captures("http://nowhere.example/")) == []
        assert fake.asked == [
            "archive.today/timemap/http://example.com/",
            "archive.ph/timemap/http://example.com/",
            "archive.ph/timemap/http://nowhere.example/",
        ]
        assert client.problems.total == 0

    ask(question)


def test_capture_is_migrated() -> None:
    """A copy is found behind its short address, with its date, and said to be no longer in its format."""

    async def question(client: ArchiveTodayClient, fake: FakeArchiveToday) -> None:
        copy = await client.get(HOME, "2014")
        assert copy is not None
        assert (copy.capture.datetime, copy.capture.migrated, copy.capture.mime) == (
            "20140101030405",
            True,
            "text/html",
        )
        assert b"second" in body_of(copy)
        last = await client.get(HOME)
        assert b"third" in body_of(last)
        assert await client.get("http://nowhere.example/") is None
        assert await client.last_capture_date(HOME) == "20160810200921"
        assert await client.last_capture_date("http://nowhere.example/") is None
        assert not [path for path in fake.asked if "/timegate/" in path]
        assert len([path for path in fake.asked if path.startswith("archive.today/")]) == 1

    ask(question)


def test_fetch() -> None:
    """A capture is fetched by its address under any name; one of another archive is refused."""

    async def question(client: ArchiveTodayClient, fake: FakeArchiveToday) -> None:
        found = await listed(client.captures(HOME))
        moved = replace(found[0], urim=(found[0].urim or "").replace("archive.md", "archive.li"))
        assert b"first" in body_of(await client.fetch(moved))
        assert b"third" in body_of(await client.fetch(Capture(HOME, "com,example)/", "20170101000000")))
        gone = replace(found[0], urim=f"http://archive.md:{fake.port}/20000101000000/http://example.com/")
        assert await client.fetch(gone) is None
        with pytest.raises(FailedError) as raised:
            await client.fetch(replace(found[0], urim="http://web.archive.org/web/2014/http://example.com/"))
        assert raised.value.kind == "foreign"

    ask(question)


def test_prefix_listing_is_unsupported() -> None:
    """There is no lister."""

    async def question(client: ArchiveTodayClient, fake: FakeArchiveToday) -> None:
        with pytest.raises(UnsupportedError):
            await listed(client.list_prefix("http://example.com"))
        assert fake.asked == []

    ask(question)


@pytest.mark.parametrize("status", [200, 403, 404])
def test_captcha_is_reported_and_pauses_requests(status: int) -> None:
    """A captcha is an error that says what to do, never an empty list; nothing is sent for an hour after it."""
    clock = VirtualClock()

    async def question(client: ArchiveTodayClient, fake: FakeArchiveToday) -> None:
        fake.captcha, fake.captcha_status = ("/timemap/",), status
        with pytest.raises(FailedError, match=r"captcha.*browser") as raised:
            await listed(client.captures(HOME))
        assert raised.value.kind == "status"
        before = len(fake.asked)
        fake.captcha = ()
        clock.advance(3000)
        with pytest.raises(NotNowError, match="captcha") as later:
            await client.get(HOME)
        assert later.value.reason == "blocked"
        assert len(fake.asked) == before
        clock.advance(601)
        assert len(await listed(client.captures(HOME))) == 3

    ask(question, clock=clock)


def test_captcha_before_a_capture() -> None:
    """Copies are behind captchas more often than lists: the list is there, the copy is an error."""

    async def question(client: ArchiveTodayClient, fake: FakeArchiveToday) -> None:
        fake.captcha = ("/2", "/short")
        with pytest.raises(FailedError, match="captcha"):
            await client.get(HOME)

    ask(question)


def test_429_message_gives_advice() -> None:
    """Who is too fast is told when to come back, that it may be a captcha, and what helps; at its present name, too."""

    async def question(client: ArchiveTodayClient, fake: FakeArchiveToday) -> None:
        fake.captcha, fake.captcha_status = ("/timemap/",), 429
        with pytest.raises(NotNowError, match=r"captcha.*browser") as raised:
            await listed(client.captures(HOME))
        assert raised.value.reason == "told-to-wait"
        before = len(fake.asked)
        with pytest.raises(NotNowError):
            await listed(client.captures(HOME))
        assert len(fake.asked) == before

    ask(question, patience=0.5)


def test_page_about_captchas_is_not_a_captcha() -> None:
    """A copy that has the word in it is a copy."""

    async def question(client: ArchiveTodayClient, fake: FakeArchiveToday) -> None:
        fake.pages = {HOME: [("20140101030405", HOME, b"how captcha works, and one more step")]}
        assert b"how captcha works" in body_of(await client.get(HOME))

    ask(question)


def test_captures_on_other_hosts_are_skipped() -> None:
    """A list that names copies at other hosts is not believed in these, and they are counted."""

    async def question(client: ArchiveTodayClient, fake: FakeArchiveToday) -> None:
        own = b'<http://archive.fo/20140101030405/http://example.com/>; rel="memento"'
        fake.timemap = (
            b'<http://example.com/>; rel="original",\n' + own + b",\n" + own.replace(b"archive.fo", b"a.example")
        )
        assert len(await listed(client.captures(HOME))) == 1
        assert client.problems.counts == {"other-host": 1}

    ask(question)


@pytest.mark.parametrize("place", ["http://[b", "http://a.example/", "ftp://archive.ph/"])
def test_endless_redirects_end(place: str) -> None:
    """What is no address, or not one of its own, is an error of the archive and not of ours."""

    async def question(client: ArchiveTodayClient, fake: FakeArchiveToday) -> None:
        fake.leads = place
        with pytest.raises(FailedError) as raised:
            await listed(client.captures(HOME))
        assert raised.value.kind == "redirects"

    ask(question)


def test_invalid_timemap_is_malformed() -> None:
    """A page that is neither a list nor a captcha is an error, and nobody stays away for it."""

    async def question(client: ArchiveTodayClient, fake: FakeArchiveToday) -> None:
        fake.timemap = b"<!DOCTYPE html><html>welcome</html>"
        for _ in range(2):
            with pytest.raises(FailedError) as raised:
                await client.get(HOME)
            assert raised.value.kind == "malformed"

    ask(question)


def test_without_timemap_the_timegate_is_queried() -> None:
    """An entry that has only a TimeGate works as far as that goes."""

    async def question(client: ArchiveTodayClient, _: FakeArchiveToday) -> None:
        assert b"third" in body_of(await client.get(HOME))
        assert await client.last_capture_date(HOME) == "20160810200921"
        found, error = await collected(client.captures(HOME))
        assert [capture.datetime for capture in found] == [moment for moment, _, _ in COPIES]
        assert error is None
        assert await client.get("http://nowhere.example/") is None

    ask(question, has_timemap=False)


@pytest.mark.parametrize(
    ("url", "is_own"),
    [
        ("http://archive.today/x", True),
        ("https://archive.ph/AbCdE", True),
        ("https://www.archive.is:443/x", True),
        ("http://archive.today.evil.example/x", False),
        ("http://evil.example/archive.ph/", False),
        ("http://archive.org/", False),
        ("ftp://archive.ph/", False),
        ("", False),
    ],
)
def test_own_domains(url: str, is_own: bool) -> None:
    """Its seven names are its own, and what only looks like one is not."""
    archive = Archive("today", "Archive.today", ArchiveKind.ARCHIVE_TODAY, timemap="http://archive.today/timemap/")
    assert ArchiveTodayDomains(archive).is_own(url) == is_own
