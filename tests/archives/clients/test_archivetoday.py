"""archive.today: one archive under many domains, TimeMaps, migrated pages, captchas."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from tests.archives.archive_files import body_of
from tests.archives.helpers import collect_captures, collect_until_error
from tests.external.archive_today import ArchiveToday as FakeArchiveToday
from tests.external.archive_today import fake_archive_today
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


class LoopbackResolver:
    """Resolves the archive's domains to this machine."""

    async def resolve(self, host: str, port: int) -> list[AddressInfo]:
        """Resolve every name to this machine."""
        assert host.startswith("archive.")
        return [literal_address_info(HostPort("127.0.0.1", port))]


Scenario = Callable[[ArchiveTodayClient, FakeArchiveToday], Coroutine[Any, Any, T]]


def run_scenario(
    scenario: Scenario[T], *, clock: VirtualClock | None = None, patience: float = 1e6, has_timemap: bool = True
) -> T:
    """Run a scenario with a client of the fake archive."""
    time = clock or VirtualClock()

    async def run_with_server() -> T:
        async with fake_archive_today(PAGES) as fake:
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
                MemoryLimitStore(), time, "https://example.com/", max_wait=patience, resolver=LoopbackResolver()
            )
            async with http_client:
                return await scenario(ArchiveTodayClient(archive, http_client, clock=time), fake)

    return asyncio.run(run_with_server())


def test_captures_under_any_domain() -> None:
    """All listed captures are returned with their URI-Ms, and the redirect target's domain is remembered."""

    async def scenario(client: ArchiveTodayClient, fake: FakeArchiveToday) -> None:
        results = await collect_captures(client.captures(HOME))
        assert [(c.datetime, c.uri, c.migrated, c.archive) for c in results] == [
            (timestamp, url_text, True, "today") for timestamp, url_text, _ in COPIES
        ]
        assert (results[0].urim or "").startswith("http://archive.md:")
        assert await collect_captures(client.captures("http://nowhere.example/")) == []
        assert fake.requests == [
            "archive.today/timemap/http://example.com/",
            "archive.ph/timemap/http://example.com/",
            "archive.ph/timemap/http://nowhere.example/",
        ]
        assert client.problems.total == 0

    run_scenario(scenario)


def test_capture_is_migrated() -> None:
    """A capture is fetched by its short URL, with its date, and marked as migrated."""

    async def scenario(client: ArchiveTodayClient, fake: FakeArchiveToday) -> None:
        fetched = await client.get(HOME, "2014")
        assert fetched is not None
        assert (fetched.capture.datetime, fetched.capture.migrated, fetched.capture.mime) == (
            "20140101030405",
            True,
            "text/html",
        )
        assert b"second" in body_of(fetched)
        last = await client.get(HOME)
        assert b"third" in body_of(last)
        assert await client.get("http://nowhere.example/") is None
        assert await client.last_capture_date(HOME) == "20160810200921"
        assert await client.last_capture_date("http://nowhere.example/") is None
        assert not [path for path in fake.requests if "/timegate/" in path]
        assert len([path for path in fake.requests if path.startswith("archive.today/")]) == 1

    run_scenario(scenario)


def test_capture_is_fetched_under_any_domain() -> None:
    """A capture of another archive is rejected."""

    async def scenario(client: ArchiveTodayClient, fake: FakeArchiveToday) -> None:
        results = await collect_captures(client.captures(HOME))
        moved = replace(results[0], urim=(results[0].urim or "").replace("archive.md", "archive.li"))
        assert b"first" in body_of(await client.fetch(moved))
        assert b"third" in body_of(await client.fetch(Capture(HOME, "com,example)/", "20170101000000")))
        gone = replace(results[0], urim=f"http://archive.md:{fake.port}/20000101000000/http://example.com/")
        assert await client.fetch(gone) is None
        with pytest.raises(FailedError) as raised:
            await client.fetch(replace(results[0], urim="http://web.archive.org/web/2014/http://example.com/"))
        assert raised.value.kind == "foreign"

    run_scenario(scenario)


def test_prefix_listing_is_unsupported() -> None:
    """The client has no prefix listing."""

    async def scenario(client: ArchiveTodayClient, fake: FakeArchiveToday) -> None:
        with pytest.raises(UnsupportedError):
            await collect_captures(client.list_prefix("http://example.com"))
        assert fake.requests == []

    run_scenario(scenario)


@pytest.mark.parametrize("status", [200, 403, 404])
def test_captcha_is_reported_and_pauses_requests(status: int) -> None:
    """The error suggests what to do, and no request is sent for an hour."""
    clock = VirtualClock()

    async def scenario(client: ArchiveTodayClient, fake: FakeArchiveToday) -> None:
        fake.captcha, fake.captcha_status = ("/timemap/",), status
        with pytest.raises(FailedError, match=r"captcha.*browser") as raised:
            await collect_captures(client.captures(HOME))
        assert raised.value.kind == "status"
        before = len(fake.requests)
        fake.captcha = ()
        clock.advance(3000)
        with pytest.raises(NotNowError, match="captcha") as later:
            await client.get(HOME)
        assert later.value.reason == "blocked"
        assert len(fake.requests) == before
        clock.advance(601)
        assert len(await collect_captures(client.captures(HOME))) == 3

    run_scenario(scenario, clock=clock)


def test_captcha_before_a_capture() -> None:
    """The listing succeeds although the capture raises an error."""

    async def scenario(client: ArchiveTodayClient, fake: FakeArchiveToday) -> None:
        fake.captcha = ("/2", "/short")
        with pytest.raises(FailedError, match="captcha"):
            await client.get(HOME)

    run_scenario(scenario)


def test_429_message_gives_advice() -> None:
    """The error has the time to resume, mentions captchas, and applies to all domains."""

    async def scenario(client: ArchiveTodayClient, fake: FakeArchiveToday) -> None:
        fake.captcha, fake.captcha_status = ("/timemap/",), 429
        with pytest.raises(NotNowError, match=r"captcha.*browser") as raised:
            await collect_captures(client.captures(HOME))
        assert raised.value.reason == "told-to-wait"
        before = len(fake.requests)
        with pytest.raises(NotNowError):
            await collect_captures(client.captures(HOME))
        assert len(fake.requests) == before

    run_scenario(scenario, patience=0.5)


def test_page_about_captchas_is_not_a_captcha() -> None:
    """A capture may contain the word."""

    async def scenario(client: ArchiveTodayClient, fake: FakeArchiveToday) -> None:
        fake.pages = {HOME: [("20140101030405", HOME, b"how captcha works, and one more step")]}
        assert b"how captcha works" in body_of(await client.get(HOME))

    run_scenario(scenario)


def test_captures_on_other_hosts_are_skipped() -> None:
    """Mementos at foreign hosts are counted and omitted."""

    async def scenario(client: ArchiveTodayClient, fake: FakeArchiveToday) -> None:
        own = b'<http://archive.fo/20140101030405/http://example.com/>; rel="memento"'
        fake.timemap = (
            b'<http://example.com/>; rel="original",\n' + own + b",\n" + own.replace(b"archive.fo", b"a.example")
        )
        assert len(await collect_captures(client.captures(HOME))) == 1
        assert client.problems.counts == {"other-host": 1}

    run_scenario(scenario)


@pytest.mark.parametrize("position", ["http://[b", "http://a.example/", "ftp://archive.ph/"])
def test_endless_redirects_end(position: str) -> None:
    """Invalid and foreign redirect targets are errors of the archive."""

    async def scenario(client: ArchiveTodayClient, fake: FakeArchiveToday) -> None:
        fake.redirect_to = position
        with pytest.raises(FailedError) as raised:
            await collect_captures(client.captures(HOME))
        assert raised.value.kind == "redirects"

    run_scenario(scenario)


def test_invalid_timemap_is_malformed() -> None:
    """A page that is neither a TimeMap nor a captcha is an error without a pause."""

    async def scenario(client: ArchiveTodayClient, fake: FakeArchiveToday) -> None:
        fake.timemap = b"<!DOCTYPE html><html>welcome</html>"
        for _ in range(2):
            with pytest.raises(FailedError) as raised:
                await client.get(HOME)
            assert raised.value.kind == "malformed"

    run_scenario(scenario)


def test_without_timemap_the_timegate_is_queried() -> None:
    """A registry entry with only a TimeGate is supported."""

    async def scenario(client: ArchiveTodayClient, _: FakeArchiveToday) -> None:
        assert b"third" in body_of(await client.get(HOME))
        assert await client.last_capture_date(HOME) == "20160810200921"
        results, error = await collect_until_error(client.captures(HOME))
        assert [capture.datetime for capture in results] == [timestamp for timestamp, _, _ in COPIES]
        assert error is None
        assert await client.get("http://nowhere.example/") is None

    run_scenario(scenario, has_timemap=False)


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
def test_only_known_domains_are_accepted(url: str, is_own: bool) -> None:
    """Similar names are rejected."""
    archive = Archive("today", "Archive.today", ArchiveKind.ARCHIVE_TODAY, timemap="http://archive.today/timemap/")
    assert ArchiveTodayDomains(archive).is_own(url) == is_own
