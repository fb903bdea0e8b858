"""On any site each URL is requested at most once, and none out of scope or disallowed."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from protego import Protego

from tests.crawl.links import read_links
from tests.crawl.live_site import Page, html, redirect_to, serve_live_site, text
from unlost.crawl import CrawlOutcome, ScopeType, read_resources
from unlost.http import PRODUCT_TOKEN

PATHS = ["/", "/a", "/a/", "/a/b", "/a/b?x=1", "/c", "/c/d.html", "/ab", "/index.html", "/%7Ee", "/~e", "/A"]
LINKS = [*PATHS, "http://elsewhere.example/", "//elsewhere.example/a", "mailto:a@b.example", "a#b", "../..", "", "?x=2", "http://127.0.0.1:1/", "javascript:x", "http://[", "/a?sid=0123456789abcdef0123456789abcdef"]  # noqa: E501  # fmt: skip
RULES = [
    "User-agent: *", "User-agent: unlost", "User-agent: x", "Disallow: /a", "Allow: /a/b", "Disallow: /*?",
    "Disallow: /c$", "Allow: /",
]  # fmt: skip
_targets = st.sampled_from(LINKS)
_pages = st.one_of(
    st.lists(_targets, max_size=5).map(lambda links: html(*links)),
    _targets.map(redirect_to),
    st.just(Page(b"gone", 404)),
    st.lists(_targets, max_size=3).map(lambda links: html(more="".join(f'<img src="{each}">' for each in links))),
)
_sites = st.dictionaries(st.sampled_from(PATHS), _pages, max_size=9)
_rules = st.lists(
    st.sampled_from(RULES),
    max_size=6,
).map("\n".join)  # fmt: skip
_bounds = st.sampled_from(
    [("/", ScopeType.HOST), ("/a/", ScopeType.PREFIX), ("/c/d.html", ScopeType.PREFIX), ("/", ScopeType.PREFIX)]
)


@settings(max_examples=60)
@given(_sites, _rules, _bounds, st.sampled_from([None, 0, 1, 2]), st.sampled_from([None, 3]))
def test_politeness_holds_on_any_site(
    pages: dict[str, Page], rules: str, bounds: tuple[str, ScopeType], hops: int | None, stop_after: int | None
) -> None:
    """Also after a stop and resume."""
    start, reach = bounds

    async def run(folder: Path) -> None:
        async with serve_live_site({**pages, "/robots.txt": text(rules)}) as site:
            if stop_after is not None:
                await site.crawl(
                    folder,
                    start,
                    reach=reach,
                    hops=hops,
                    write_warcs=False,
                    should_stop=lambda: len(site.paths) >= stop_after,
                )
            result = await site.crawl(folder, start, reach=reach, hops=hops, write_warcs=False)
            assert result.is_done
            assert len(site.paths) == len(set(site.paths)), "a URL was requested twice"
            robots = Protego.parse(rules)
            assert all(robots.can_fetch(site.url + path, PRODUCT_TOKEN) for path in site.paths)
            assert site.server.paths.count("/robots.txt") == 1
            resources = list(read_resources(folder))
            fetched = {each.uri for each in resources if each.outcome is CrawlOutcome.FETCHED}
            assert fetched == {site.url + path for path in site.paths}
            assert all(each.uri.startswith(f"{site.url}/") for each in resources)
            for each in resources:
                if each.outcome is CrawlOutcome.FORBIDDEN:
                    assert not robots.can_fetch(each.uri, PRODUCT_TOKEN)
            # Requisites may be anywhere on the host.
            if (
                reach is ScopeType.PREFIX
                and start == "/a/"
                and not any(b"<img" in page.body for page in pages.values())
            ):
                assert all(path.startswith(("/a", "/index.html")) and path != "/ab" for path in site.paths)
            if hops is not None:
                assert all(each.hops is None or each.hops <= hops for each in resources if each.uri in fetched)
            known = {each.uri for each in resources}
            assert all({link.source, link.target} <= known for link in read_links(folder))

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder) / "crawl"))
