"""Polite crawler for live websites: robots.txt, per-host delays, scope, trap detection, WARC output.

A crawl lives in a folder with `state.sqlite` and `warc/`. It can be interrupted at any time and resumed.
See docs/crawl.md.

Modules, in reading order:

- `models`: configuration of a crawl and its results.
- `scope`, `traps`: which URLs belong to a crawl.
- `fetcher`: one HTTP request to the live web, bounded in time and size.
- `robots`, `politeness`: robots.txt (RFC 9309), delays, Retry-After.
- `extractor`: media type, redirect, links and `noarchive` of a response.
- `state`, `warc_store`: SQLite state and WARC files.
- `frontier`, `engine`: the queue and the run loop; `engine.crawl` is the entry point.

Must not import the command line, the web service, or packages that use crawls (check, vault, watch).
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.crawl.engine import crawl as crawl
    from unlost.crawl.extractor import header_forbids_archiving as header_forbids_archiving
    from unlost.crawl.extractor import page_forbids_archiving as page_forbids_archiving
    from unlost.crawl.fetcher import Fetcher as Fetcher
    from unlost.crawl.fetcher import FetchRequest as FetchRequest
    from unlost.crawl.fetcher import FetchResponse as FetchResponse
    from unlost.crawl.frontier import MAX_REDIRECT_CHAIN as MAX_REDIRECT_CHAIN
    from unlost.crawl.models import MAX_RESOURCE_BYTES as MAX_RESOURCE_BYTES
    from unlost.crawl.models import CrawlConfig as CrawlConfig
    from unlost.crawl.models import CrawlOutcome as CrawlOutcome
    from unlost.crawl.models import CrawlResult as CrawlResult
    from unlost.crawl.models import LiveResource as LiveResource
    from unlost.crawl.models import ScopeType as ScopeType
    from unlost.crawl.politeness import PoliteFetcher as PoliteFetcher
    from unlost.crawl.robots import MAX_DELAY_SECONDS as MAX_DELAY_SECONDS
    from unlost.crawl.robots import MAX_REDIRECTS as MAX_REDIRECTS
    from unlost.crawl.robots import MAX_ROBOTS_BYTES as MAX_ROBOTS_BYTES
    from unlost.crawl.robots import RETRY_SECONDS as RETRY_SECONDS
    from unlost.crawl.robots import TTL_SECONDS as TTL_SECONDS
    from unlost.crawl.robots import MemoryRobotsStore as MemoryRobotsStore
    from unlost.crawl.robots import RobotsClient as RobotsClient
    from unlost.crawl.robots import RobotsResponse as RobotsResponse
    from unlost.crawl.robots import RobotsRules as RobotsRules
    from unlost.crawl.robots import merge_foreign_agents as merge_foreign_agents
    from unlost.crawl.scope import MAX_SEARCHED_CHARS as MAX_SEARCHED_CHARS
    from unlost.crawl.scope import CrawlScope as CrawlScope
    from unlost.crawl.state import read_links as read_links
    from unlost.crawl.state import read_resources as read_resources
    from unlost.crawl.traps import MAX_PATH_SEGMENTS as MAX_PATH_SEGMENTS
    from unlost.crawl.traps import MAX_SIMILAR_NAMES as MAX_SIMILAR_NAMES
    from unlost.crawl.traps import MAX_URL_CHARS as MAX_URL_CHARS
    from unlost.crawl.traps import TrapDetector as TrapDetector
    from unlost.crawl.traps import is_endless_calendar as is_endless_calendar
    from unlost.crawl.traps import url_shape as url_shape
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "engine": "crawl",
            "extractor": "header_forbids_archiving page_forbids_archiving",
            "fetcher": "FetchRequest FetchResponse Fetcher",
            "frontier": "MAX_REDIRECT_CHAIN",
            "models": "CrawlConfig CrawlOutcome CrawlResult LiveResource MAX_RESOURCE_BYTES ScopeType",
            "politeness": "PoliteFetcher",
            "robots": (
                "MAX_DELAY_SECONDS MAX_REDIRECTS MAX_ROBOTS_BYTES MemoryRobotsStore RETRY_SECONDS RobotsClient "
                "RobotsResponse RobotsRules TTL_SECONDS merge_foreign_agents"
            ),
            "scope": "CrawlScope MAX_SEARCHED_CHARS",
            "state": "read_links read_resources",
            "traps": "MAX_PATH_SEGMENTS MAX_SIMILAR_NAMES MAX_URL_CHARS TrapDetector is_endless_calendar url_shape",
        },
    )
