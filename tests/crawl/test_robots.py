"""robots.txt rules, and what its absence means."""

import asyncio
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protego import Protego

from tests.crawl.live_site import LiveSite, Page, html, redirect_to, serve_live_site, text
from unlost.crawl import (
    MAX_DELAY_SECONDS,
    MAX_REDIRECTS,
    MAX_ROBOTS_BYTES,
    RETRY_SECONDS,
    TTL_SECONDS,
    Fetcher,
    MemoryRobotsStore,
    RobotsClient,
    RobotsResponse,
    RobotsRules,
    merge_foreign_agents,
)
from unlost.http import PRODUCT_TOKEN

ORIGIN = "http://example.com"


def rules(text_: str | bytes, status: int | None = 200) -> RobotsRules:
    """Return the rules of a text."""
    return RobotsRules(RobotsResponse(0.0, status, text_.encode() if isinstance(text_, str) else text_), ORIGIN)


_agents = st.sampled_from(
    ["*", "unlost", "Unlost/1.0", "un", "UN*", "lost", "other", "unlost-bot", "*un*lost", "x", "", "u n"]
)
_paths = st.lists(st.sampled_from(["a", "b", "*", "$", "/", ".html", "?", "%41", "ü", "index.html"]), max_size=4).map(
    "".join
)
_lines = st.one_of(
    st.builds(
        "{}{}{}".format,
        st.sampled_from(["User-agent", "user agent", "USERAGENT", "User-Agent "]),
        st.sampled_from([":", ": ", " "]),
        _agents,
    ),
    st.builds("{}: /{}".format, st.sampled_from(["Disallow", "Allow", "disalow"]), _paths),
    st.builds("Crawl-delay: {}".format, st.sampled_from(["1", "2.5", "x", "-1", "nan"])),
    st.sampled_from(
        [
            "",
            "# User-agent: *",
            "Sitemap: /s.xml",
            "Disallow:",
            "User-agent: unlost # us",
            "User-agent",
            "Request-rate: 1/7",
        ]
    ),
)


@given(st.lists(_lines, max_size=14), st.lists(_paths, min_size=1, max_size=5))
def test_merging_foreign_agents_does_not_change_the_rules(lines: list[str], paths: list[str]) -> None:
    """The parser gives the same result for the original and the merged text."""
    whole = "\n".join(lines)
    plain, ours = Protego.parse(whole), rules(whole)
    for path in paths:
        uri = f"{ORIGIN}/{path}"
        assert ours.allows(uri) == plain.can_fetch(uri, PRODUCT_TOKEN)
    delay, rate = plain.crawl_delay(PRODUCT_TOKEN), plain.request_rate(PRODUCT_TOKEN)
    delays = [each for each in (delay, rate and rate.seconds / rate.requests) if each is not None]
    assert ours.requested_delay == max(delays, default=None)


@pytest.mark.parametrize(
    ("status", "allowed"),
    [
        (200, False),
        (204, False),
        (404, True),
        (403, True),
        (401, True),
        (410, True),
        (500, False),
        (503, False),
        (429, False),
        (None, False),
    ],
)
def test_status_determines_the_default_rules(status: int | None, allowed: bool) -> None:
    """2xx is parsed, 4xx allows everything, 5xx and 429 forbid everything."""
    found = rules("User-agent: *\nDisallow: /", status)
    assert found.allows(f"{ORIGIN}/a") is allowed
    assert found.is_unreachable is (status is None or status in (429, 500, 503))


def test_crawl_delay_is_capped_and_reported() -> None:
    """A delay of an hour is capped; the requested value is available."""
    found = rules("User-agent: *\nCrawl-delay: 3600")
    assert (found.delay, found.requested_delay) == (MAX_DELAY_SECONDS, 3600.0)
    assert rules("User-agent: *\nRequest-rate: 1/10").delay == 10.0


def test_sitemaps_are_absolute() -> None:
    """Also where the file gives only a path; each once."""
    assert rules("Sitemap: /a.xml\nSitemap: http://b.example/b.xml\nsitemap: /a.xml").sitemaps == (
        f"{ORIGIN}/a.xml",
        "http://b.example/b.xml",
    )


def test_hostile_robots_txt_is_parsed_with_bounded_resources() -> None:
    """Thousands of user agents with thousands of rules, one long line, wildcards, binary data."""
    half = MAX_ROBOTS_BYTES // 2
    many = b"".join(b"User-agent: a%d\n" % number for number in range(half // 15)) + b"Disallow: /a\n" * (half // 13)
    wild = b"User-agent: *\n" + b"Disallow: /*a*b*c*d$\n" * (MAX_ROBOTS_BYTES // 21)
    tracemalloc.start()
    start = time.process_time()
    for text_ in (many, wild, b"Disallow: /" + b"a" * MAX_ROBOTS_BYTES, bytes(range(256)) * 2_000, b"\xff\xfe" * 1_000):
        rules(text_).allows(f"{ORIGIN}/{'a' * 1_000}")
    assert time.process_time() - start < 20
    assert tracemalloc.get_traced_memory()[1] < 200 << 20
    tracemalloc.stop()


def test_byte_order_mark_does_not_hide_the_first_line() -> None:
    """Windows editors write a byte order mark."""
    assert not rules(b"\xef\xbb\xbfUser-agent: *\nDisallow: /").allows(f"{ORIGIN}/")


def fetch_rules(pages: dict[str, Page], then: str = "/x", times: int = 1, pause: float = 0.0) -> tuple[bool, LiveSite]:
    """Fetch the rules some times; return whether a URL is allowed, and the site."""

    async def run() -> tuple[bool, LiveSite]:
        async with serve_live_site(pages.get) as site, Fetcher([site.url], site.clock) as visitor:
            robots = RobotsClient(visitor, MemoryRobotsStore(), site.clock)
            for _ in range(times):
                found = robots.get_cached(site.url) or await robots.fetch(site.url)
                site.clock.advance(pause)
            return found.allows(site.url + then), site

    return asyncio.run(run())


def test_robots_txt_redirects_are_followed_up_to_a_limit() -> None:
    """Five redirects are followed; more count as unavailable."""
    chain = {f"/{number}": redirect_to(f"/{number + 1}") for number in range(1, 10)}
    pages = {"/robots.txt": redirect_to("/1"), **chain, f"/{MAX_REDIRECTS}": text("User-agent: *\nDisallow: /")}
    assert fetch_rules(pages)[0] is False
    pages = {"/robots.txt": redirect_to("/1"), **chain, f"/{MAX_REDIRECTS + 1}": text("User-agent: *\nDisallow: /")}
    assert fetch_rules(pages)[0] is True
    assert fetch_rules({"/robots.txt": redirect_to("ftp://a.example/")})[0] is True
    assert fetch_rules({"/robots.txt": Page(b"", 302, {})})[0] is True


def test_robots_txt_redirect_into_a_private_network_is_unreachable() -> None:
    """Everything is forbidden."""
    assert fetch_rules({"/robots.txt": redirect_to("http://127.0.0.1:1/robots.txt")})[0] is False


def test_robots_txt_is_fetched_once_a_day() -> None:
    """Rules are cached for a day, failures for an hour."""
    pages = {"/robots.txt": text("")}
    assert len(fetch_rules(pages, times=5, pause=TTL_SECONDS / 4.5)[1].server.paths) == 1
    assert len(fetch_rules(pages, times=4, pause=TTL_SECONDS)[1].server.paths) == 4
    assert len(fetch_rules({"/robots.txt": Page(b"", 500)}, times=3, pause=RETRY_SECONDS)[1].server.paths) == 3


def test_only_the_first_500_kib_are_parsed() -> None:
    """Rules beyond are ignored."""
    rule = "User-agent: *\nDisallow: /a\n"
    pages = {"/robots.txt": text(rule + "#" * (MAX_ROBOTS_BYTES - len(rule)) + "\nDisallow: /x\n")}
    assert fetch_rules(pages, "/x")[0] is True
    assert fetch_rules(pages, "/a")[0] is False


def test_html_instead_of_robots_txt_allows_everything() -> None:
    """Some servers send an HTML page for any URL."""
    assert fetch_rules({"/robots.txt": html("/a", "/b")})[0] is True
    assert merge_foreign_agents(b"<html>") == "<html>"
