"""The Memento aggregator: routes a look-up to archives, queries them concurrently, merges and caches the results.

Modules in reading order:

- `models`: Routing options, cache control, archive reports and the result.
- `request`, `urls`: Parsing of requests to the HTTP API, and the service's own URLs.
- `holdings_store`, `hit_rates`, `router`: MementoMaps and filters, learned hit rates, and the choice of archives.
- `upstream`, `aggregator`: One request to one archive; all requests of a look-up and the public entry point.
- `cache`, `disk_cache`: Results in memory and in an SQLite file.
- `listeners`, `archive_status`: Learning, logging and the status of each archive.
- `serializers`: TimeMaps, memento descriptions and summaries.

It must not import the web service, the command line interface or the recovery of sites.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.aggregate.aggregator import DISK_RECHECK_SECONDS as DISK_RECHECK_SECONDS
    from unlost.aggregate.aggregator import MAX_LIMIT_WAIT as MAX_LIMIT_WAIT
    from unlost.aggregate.aggregator import ConcurrencyLimits as ConcurrencyLimits
    from unlost.aggregate.aggregator import MementoAggregator as MementoAggregator
    from unlost.aggregate.archive_status import ArchiveStatus as ArchiveStatus
    from unlost.aggregate.archive_status import describe_archives as describe_archives
    from unlost.aggregate.cache import CacheLifetimes as CacheLifetimes
    from unlost.aggregate.cache import MemoryCache as MemoryCache
    from unlost.aggregate.disk_cache import CacheDatabase as CacheDatabase
    from unlost.aggregate.disk_cache import CacheRow as CacheRow
    from unlost.aggregate.disk_cache import DiskCache as DiskCache
    from unlost.aggregate.disk_cache import cache_scope as cache_scope
    from unlost.aggregate.hit_rates import Evidence as Evidence
    from unlost.aggregate.hit_rates import HitRates as HitRates
    from unlost.aggregate.hit_rates import HitShare as HitShare
    from unlost.aggregate.hit_rates import LearnedStats as LearnedStats
    from unlost.aggregate.hit_rates import RoutingAccuracy as RoutingAccuracy
    from unlost.aggregate.hit_rates import read_recent_responses as read_recent_responses
    from unlost.aggregate.holdings_store import HoldingsReader as HoldingsReader
    from unlost.aggregate.holdings_store import HoldingsStore as HoldingsStore
    from unlost.aggregate.listeners import HitRateListener as HitRateListener
    from unlost.aggregate.listeners import UpstreamListener as UpstreamListener
    from unlost.aggregate.listeners import UpstreamLog as UpstreamLog
    from unlost.aggregate.listeners import UpstreamLogListener as UpstreamLogListener
    from unlost.aggregate.models import LAST_MEMENTO as LAST_MEMENTO
    from unlost.aggregate.models import AggregateResult as AggregateResult
    from unlost.aggregate.models import ArchiveReport as ArchiveReport
    from unlost.aggregate.models import CacheControl as CacheControl
    from unlost.aggregate.models import RoutingOptions as RoutingOptions
    from unlost.aggregate.request import ENDPOINT_PATTERNS as ENDPOINT_PATTERNS
    from unlost.aggregate.request import MementoRequest as MementoRequest
    from unlost.aggregate.request import RequestHeaders as RequestHeaders
    from unlost.aggregate.router import ArchiveRoute as ArchiveRoute
    from unlost.aggregate.router import ArchiveRouter as ArchiveRouter
    from unlost.aggregate.router import HoldingsLookup as HoldingsLookup
    from unlost.aggregate.router import RouteTarget as RouteTarget
    from unlost.aggregate.serializers import LINKED_FORMATS as LINKED_FORMATS
    from unlost.aggregate.serializers import MAX_LINK_BYTES as MAX_LINK_BYTES
    from unlost.aggregate.serializers import MEDIA_TYPES as MEDIA_TYPES
    from unlost.aggregate.serializers import MEMENTOS_PER_PIECE as MEMENTOS_PER_PIECE
    from unlost.aggregate.serializers import TIMEMAP_PAGE_SIZE as TIMEMAP_PAGE_SIZE
    from unlost.aggregate.serializers import TimeMapFormat as TimeMapFormat
    from unlost.aggregate.serializers import describe_memento as describe_memento
    from unlost.aggregate.serializers import memento_link_header as memento_link_header
    from unlost.aggregate.serializers import memento_summary_json as memento_summary_json
    from unlost.aggregate.serializers import serialize_timemap as serialize_timemap
    from unlost.aggregate.serializers import split_pages as split_pages
    from unlost.aggregate.serializers import summary_text as summary_text
    from unlost.aggregate.upstream import UpstreamClient as UpstreamClient
    from unlost.aggregate.upstream import UpstreamResult as UpstreamResult
    from unlost.aggregate.upstream import classify_error as classify_error
    from unlost.aggregate.urls import DateSpan as DateSpan
    from unlost.aggregate.urls import ServiceUrls as ServiceUrls
    from unlost.aggregate.urls import ascii_url as ascii_url
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "aggregator": "ConcurrencyLimits DISK_RECHECK_SECONDS MAX_LIMIT_WAIT MementoAggregator",
            "archive_status": "ArchiveStatus describe_archives",
            "cache": "CacheLifetimes MemoryCache",
            "disk_cache": "CacheDatabase CacheRow DiskCache cache_scope",
            "hit_rates": "Evidence HitRates HitShare LearnedStats RoutingAccuracy read_recent_responses",
            "holdings_store": "HoldingsReader HoldingsStore",
            "listeners": "HitRateListener UpstreamListener UpstreamLog UpstreamLogListener",
            "models": "AggregateResult ArchiveReport CacheControl LAST_MEMENTO RoutingOptions",
            "request": "ENDPOINT_PATTERNS MementoRequest RequestHeaders",
            "router": "ArchiveRoute ArchiveRouter HoldingsLookup RouteTarget",
            "serializers": (
                "LINKED_FORMATS MAX_LINK_BYTES MEDIA_TYPES MEMENTOS_PER_PIECE TIMEMAP_PAGE_SIZE TimeMapFormat "
                "describe_memento memento_link_header serialize_timemap split_pages memento_summary_json summary_text"
            ),
            "upstream": "UpstreamClient UpstreamResult classify_error",
            "urls": "DateSpan ServiceUrls ascii_url",
        },
    )
