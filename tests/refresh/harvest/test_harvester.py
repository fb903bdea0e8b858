"""Harvests: which requests are sent, what is stored, and what is learned."""

import asyncio
from pathlib import Path
from socket import gaierror
from typing import Any

from tests.external.fault_server import Exchange, run_fault_server
from tests.refresh.harvest.site import (
    DAY,
    ServedPage,
    Site,
    etag_policy,
    harvest_pages,
    kinds,
    log,
    records,
    run_changing_site,
)
from tests.virtual_clock import VirtualClock
from unlost.http import POLICIES, AddressInfo, HostPort, literal_address_info
from unlost.problems import Problems
from unlost.refresh import HarvestState, Policy, VisitLogReader

LARGE = b" word" * 4_000
"""Behind every page: of smaller ones everything is under way before a GET can be broken off."""


def page_with_etag(text: bytes, number: int) -> ServedPage:
    """Return a page of an honest server."""
    return ServedPage(text + LARGE, f'"{number}"', f"Mon, {number:02d} Jan 2024 00:00:01 GMT")


def outcomes(folder: Path) -> list[str]:
    """Return how the visits of the last round ended, by the log."""
    return [line["outcome"] for line in log(folder)]


def test_without_a_scheme_pages_are_downloaded_and_stored_once(tmp_path: Path) -> None:
    """Unchanged pages become revisit records with the new headers."""

    async def run() -> None:
        async with run_changing_site({"/a": page_with_etag(b"one", 1), "/b": page_with_etag(b"two", 1)}) as site:
            await site.harvest(tmp_path, Policy())
            site.pages["/b"] = page_with_etag(b"three", 2)
            done = await site.harvest(tmp_path, Policy())
            assert done.outcomes == {"unchanged": 1, "changed": 1}
            assert site.requests == [("GET", "/a", False), ("GET", "/b", False)]

    asyncio.run(run())
    found = records(tmp_path)
    assert kinds(found) == ["response", "response", "identical-payload-digest", "response"]
    first, revisit = found[0], found[2]
    assert revisit.headers["WARC-Payload-Digest"] == first.headers["WARC-Payload-Digest"]
    assert revisit.headers["WARC-Refers-To-Target-URI"] == first.uri
    assert revisit.headers["WARC-Refers-To-Date"] == first.headers["WARC-Date"]
    assert outcomes(tmp_path) == ["new", "new", "unchanged", "changed"]


def test_skip_is_logged_without_revisit_record(tmp_path: Path) -> None:
    """Only HEAD is sent where conditional requests do not work; changed pages are downloaded."""

    async def never(_: Site, exchange: Exchange, page: ServedPage) -> bool:
        await exchange.respond(page.status, page.body, **page.all_headers)
        return True

    async def run() -> None:
        pages = {f"/{number}": page_with_etag(b"one", 1) for number in range(5)}
        async with run_changing_site(pages, never) as site:
            await site.harvest(tmp_path, etag_policy())
            site.pages["/4"] = page_with_etag(b"two", 2)
            done = await site.harvest(tmp_path, etag_policy())
            assert done.outcomes == {"skipped": 4, "changed": 1}
            await site.harvest(tmp_path, etag_policy())
            # Measured in the round before: conditions are of no use on this host.
            assert site.requests == [("HEAD", f"/{number}", False) for number in range(5)]

    asyncio.run(run())
    assert kinds(records(tmp_path)) == ["response"] * 6
    skipped = [line for line in log(tmp_path) if line["outcome"] == "skipped"]
    assert len(skipped) == 9
    assert all("digest" not in line and line["etag"] for line in skipped)


def test_conditional_requests_replace_equivalent_scheme_decisions(tmp_path: Path) -> None:
    """A 304 becomes a revisit record; unchanged and changed pages take one request each."""

    async def run() -> None:
        pages = {f"/{number}": page_with_etag(b"one", 1) for number in range(5)}
        async with run_changing_site(pages) as site:
            await site.harvest(tmp_path, etag_policy())
            site.pages["/0"] = page_with_etag(b"two", 2)
            await site.harvest(tmp_path, etag_policy())
            with HarvestState(tmp_path) as state:
                assert state.host_behaviour(f"127.0.0.1:{site.server.port}").matches_scheme
            site.pages["/0"] = page_with_etag(b"three", 3)
            done = await site.harvest(tmp_path, etag_policy())
            assert done.outcomes == {"changed": 1, "not-modified": 4}
            assert site.requests == [("GET", f"/{number}", True) for number in range(5)]

    asyncio.run(run())
    last = records(tmp_path)[-5:]
    assert kinds(last) == ["response", *["server-not-modified"] * 4]
    for record in last[1:]:
        assert record.body.startswith(b"HTTP/1.1 304")
        assert "WARC-Payload-Digest" not in record.headers
        assert record.headers["WARC-Refers-To-Target-URI"] == record.uri


def test_host_that_always_responds_304_is_detected(tmp_path: Path) -> None:
    """HEAD shows the change: the contradicting 304 is not accepted, then or later."""

    async def always(_: Site, exchange: Exchange, __: ServedPage) -> bool:
        if "if-none-match" not in exchange.headers:
            return False
        await exchange.send(b"HTTP/1.1 304 Same\r\n\r\n")
        return True

    async def run() -> None:
        async with run_changing_site({"/a": page_with_etag(b"1", 1), "/b": page_with_etag(b"1", 1)}, always) as site:
            for number in range(1, 5):
                site.pages["/b"] = page_with_etag(b"%d" % number, number)
                done = await site.harvest(tmp_path, etag_policy())
                assert done.outcomes.get("changed", 0) == (number > 1)
            assert ("GET", "/b", True) not in site.requests

    asyncio.run(run())


def test_differing_head_switches_to_aborted_get(tmp_path: Path) -> None:
    """If HEAD omits headers, GET is used and aborted for skipped pages."""

    async def no_tags(_: Site, exchange: Exchange, page: ServedPage) -> bool:
        if exchange.method == "HEAD":
            await exchange.respond(200, page.body)
            return True
        return False

    async def run() -> None:
        async with run_changing_site({"/a": page_with_etag(b"one", 1)}, no_tags) as site:
            for _ in range(3):
                done = await site.harvest(tmp_path, etag_policy())
            assert site.requests == [("GET", "/a", False)]
            assert done.outcomes == {"skipped": 1}

    asyncio.run(run())
    assert kinds(records(tmp_path)) == ["response", "identical-payload-digest"]


def test_unsolicited_304_is_requested_again(tmp_path: Path) -> None:
    """A second unsolicited 304 is an error, and nothing is stored."""

    async def unasked(_: Site, exchange: Exchange, __: ServedPage) -> bool:
        if "cache-control" in exchange.headers and exchange.path == "/a":
            return False
        await exchange.send(b"HTTP/1.1 304 Same\r\n\r\n")
        return True

    async def run() -> None:
        async with run_changing_site(
            {"/a": page_with_etag(b"one", 1), "/b": page_with_etag(b"one", 1)}, unasked
        ) as site:
            done = await site.harvest(tmp_path, Policy())
            assert done.outcomes == {"new": 1, "failed": 1}

    asyncio.run(run())
    assert kinds(records(tmp_path)) == ["response"]


def test_audits_detect_false_claims_and_update_the_policy(tmp_path: Path) -> None:
    """A frozen ETag is detected, the page is stored, the host is no longer trusted, and the log has the weight."""
    policy = etag_policy(audit=1.0)
    policy.prior_strengths = (5.0,) * len(policy.prior_strengths)

    async def run() -> None:
        async with run_changing_site({"/a": page_with_etag(b"one", 1)}) as site:
            await site.harvest(tmp_path, policy)
            site.pages["/a"].body = b"two" + LARGE
            done = await site.harvest(tmp_path, policy)
            assert (done.audited, done.false_claims, done.outcomes) == (1, 1, {"changed": 1})
            # Somebody else, with the same scheme, who has only the state.
            again = etag_policy()
            again.prior_strengths = policy.prior_strengths
            with HarvestState(tmp_path) as state:
                for host, claims in state.false_claims().items():
                    for group, (times, _) in claims.items():
                        again.record_page(host, group, changed=True, times=times)
            site.pages["/a"].body = b"three" + LARGE
            done = await site.harvest(tmp_path, policy)
            assert site.requests == [("GET", "/a", False)]
            assert done.outcomes == {"changed": 1}

    asyncio.run(run())
    assert [line.get("weight") for line in log(tmp_path)] == [None, 1, None]


def test_redirect_is_logged_as_its_last_response_under_the_first_url(tmp_path: Path) -> None:
    """Redirects are stored, their last response is compared; loops are errors."""
    pages = {
        "/old": ServedPage(b"", status=302, headers={"location": "/new"}),
        "/new": page_with_etag(b"one", 1),
        "/round": ServedPage(b"", status=302, headers={"location": "/round"}),
    }

    async def run() -> None:
        async with run_changing_site(pages) as site:
            await site.harvest(tmp_path, etag_policy(), "/old", "/round")
            done = await site.harvest(tmp_path, etag_policy(), "/old", "/round")
            assert done.outcomes == {"not-modified": 1, "failed": 1}

    asyncio.run(run())
    first = log(tmp_path)[0]
    assert (first["uri"].rpartition("/")[2], first["status"], first["etag"]) == ("old", 200, '"1"')
    found = records(tmp_path)
    assert kinds(found) == ["response", "response", "response", "server-not-modified"]
    assert found[-1].headers["WARC-Refers-To-Target-URI"].endswith("/new")


def test_robots_txt_and_noarchive_are_respected(tmp_path: Path) -> None:
    """Disallowed pages are not requested, `noarchive` pages not stored."""
    pages = {
        "/robots.txt": ServedPage(b"User-agent: *\nDisallow: /no"),
        "/no": page_with_etag(b"one", 1),
        "/private": ServedPage(b"<meta name=robots content=noarchive>"),
        "/gone": ServedPage(b"", status=404),
    }

    async def run() -> None:
        async with run_changing_site(pages) as site:
            done = await site.harvest(tmp_path, Policy())
            assert done.outcomes == {"forbidden": 1, "noarchive": 1, "no-success": 1}
            assert [path for _, path, _ in site.requests] == ["/private", "/gone"]

    asyncio.run(run())
    assert [(record.uri.rpartition("/")[2], record.type) for record in records(tmp_path)] == [("gone", "response")]


def test_truncated_page_is_not_part_of_the_history(tmp_path: Path) -> None:
    """It is stored as truncated, and the previous snapshot remains."""

    async def cutting(site: Site, exchange: Exchange, _: ServedPage) -> bool:
        if site.clock.now() < 1_700_000_000 + 1.5 * DAY:
            return False
        await exchange.send(b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\nhalf")
        exchange.writer.close()
        return True

    async def run() -> None:
        async with run_changing_site({"/a": page_with_etag(b"one", 1)}, cutting) as site:
            await site.harvest(tmp_path, Policy())
            done = await site.harvest(tmp_path, Policy())
            assert done.outcomes == {"cut": 1}
            site.trick = None
            done = await site.harvest(tmp_path, Policy())
            assert done.outcomes == {"unchanged": 1}

    asyncio.run(run())
    assert "digest" not in log(tmp_path)[1]


def test_only_due_pages_are_visited(tmp_path: Path) -> None:
    """A page that changes daily is due after a day, one that never changed is not."""

    async def run() -> None:
        async with run_changing_site({"/daily": page_with_etag(b"0", 1), "/never": page_with_etag(b"0", 1)}) as site:
            for number in range(1, 8):
                site.pages["/daily"] = page_with_etag(b"%d" % number, number)
                await site.harvest(tmp_path, Policy())
            await site.harvest(tmp_path, Policy(), due=0.5)
            assert [path for _, path, _ in site.requests] == ["/daily"]
            await site.harvest(tmp_path, Policy(), due=0.5, after=60 * DAY)
            assert [path for _, path, _ in site.requests] == ["/daily", "/never"]

    asyncio.run(run())


def test_harvest_log_can_be_learned_from(tmp_path: Path) -> None:
    """Every visit is counted, skips as such, and no field is unknown."""

    async def run() -> None:
        async with run_changing_site({"/a": page_with_etag(b"one", 1), "/gone": ServedPage(b"", status=404)}) as site:
            for _ in range(3):
                await site.harvest(tmp_path, etag_policy())

    asyncio.run(run())
    problems = Problems()
    reading = VisitLogReader(problems)
    reading.read(tmp_path / "visits.ndjson")
    tally = reading.build_history().visit_stats
    assert (problems.total, reading.unknown_fields) == (0, {})
    assert {name: tally[name] for name in ("successful", "not_modified", "failed")} == {
        "successful": 1, "not_modified": 2, "failed": 3,
    }  # fmt: skip


def test_unreachable_host_is_left_for_a_later_run(tmp_path: Path) -> None:
    """Its pages stay pending."""

    async def run() -> Any:  # noqa: ANN401
        async with run_changing_site({f"/{number}": page_with_etag(b"one", 1) for number in range(9)}) as site:
            site.pages["/robots.txt"] = ServedPage(b"", status=503)
            done = await site.harvest(tmp_path, Policy(), max_wait=5.0)
            assert done.pending == 9
            assert list(done.suspended_hosts) == [f"127.0.0.1:{site.server.port}"]
            del site.pages["/robots.txt"]
            done = await site.harvest(tmp_path, Policy())
            assert (done.pending, done.outcomes) == (0, {"new": 9})

    asyncio.run(run())


def test_small_pages_use_aborted_get(tmp_path: Path) -> None:
    """GET is aborted instead of sending HEAD; conditional requests are measured there, too."""

    async def run() -> None:
        async with run_changing_site({f"/{number}": ServedPage(b"one", '"1"') for number in range(5)}) as site:
            await site.harvest(tmp_path, etag_policy())
            site.pages["/0"] = ServedPage(b"two", '"2"')
            await site.harvest(tmp_path, etag_policy())
            assert site.requests[:4] == [
                ("GET", "/0", False),
                ("GET", "/0", True),
                ("GET", "/1", False),
                ("GET", "/1", True),
            ]
            done = await site.harvest(tmp_path, etag_policy())
            assert site.requests == [("GET", f"/{number}", True) for number in range(5)]
            assert done.outcomes == {"not-modified": 5}

    asyncio.run(run())


class BreakableResolver:
    """A resolver that returns the loopback address, or fails for one host while it is broken."""

    def __init__(self, broken_host: str) -> None:
        self.is_broken = False
        self.failures = 0
        self._broken_host = broken_host

    async def resolve(self, host: str, port: int) -> list[AddressInfo]:
        """Return the address, or fail."""
        if self.is_broken and host == self._broken_host:
            self.failures += 1
            raise gaierror("no address")
        return [literal_address_info(HostPort("127.0.0.1", port))]


def test_unreachable_host_is_skipped_and_tried_again_after_the_pause(tmp_path: Path) -> None:
    """As `POLICIES["harvest"]` says: the trial is in the same run if that is still in progress."""
    policy = POLICIES["harvest"]
    resolver = BreakableResolver("a.example")
    clock = VirtualClock()

    async def respond(exchange: Exchange) -> None:
        if exchange.path != "/robots.txt":
            resolver.is_broken = exchange.headers["host"].startswith("a.example") and not resolver.failures
            if resolver.failures and exchange.headers["host"].startswith("b.example"):
                assert resolver.failures == policy.failures
                clock.advance(policy.pause)
        status = 404 if exchange.path == "/robots.txt" else 200
        await exchange.respond(status, b"one", content_type="text/plain", connection="close")

    async def run() -> Any:  # noqa: ANN401
        async with run_fault_server(respond, clock) as server:
            urls = [f"http://a.example:{server.port}/{number}" for number in range(20)]
            urls.append(f"http://b.example:{server.port}/")
            return await harvest_pages(clock, tmp_path, Policy(), urls, hosts_at_once=1, resolver=resolver)

    done = asyncio.run(run())
    assert done.outcomes == {"failed": policy.failures, "new": 21 - policy.failures}
    assert (done.pending, done.suspended_hosts) == (0, {})
