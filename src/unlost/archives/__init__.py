"""Clients for web archives and for archives on this machine.

base: the `ArchiveClient` protocol. factory: the client for an entry of the registry. datetime_negotiation: the capture
closest to a date. memento_urls: URI-Ms.

Remote archives: cdx (prefix queries, and queries and rows of CDX servers), replay (fetches one capture), timemap
(TimeMaps and TimeGates); the clients cdx_client (Wayback, pywb), memento, common_crawl and archive_today. probe: tests
a new registry entry.

Local archives: warc_capture, warc_file_index and warc_files (directories of WARC and other archive files);
browser_cache with its formats chromium_cache, firefox_cache and har; local_sources finds them.

sample_state and sampler: sample an archive's holdings into a MementoMap.

Imports http, registry, index, memento, warc, mementomap and formats; never aggregate, recover or the services.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.archives.archive_today import ArchiveTodayClient as ArchiveTodayClient
    from unlost.archives.archive_today import ArchiveTodayDomains as ArchiveTodayDomains
    from unlost.archives.base import ArchiveClient as ArchiveClient
    from unlost.archives.base import FetchedCapture as FetchedCapture
    from unlost.archives.browser_cache import CachedResponse as CachedResponse
    from unlost.archives.browser_cache import CachedResponseClient as CachedResponseClient
    from unlost.archives.cdx import MAX_BAD_ROWS as MAX_BAD_ROWS
    from unlost.archives.cdx import MAX_ROW_BYTES as MAX_ROW_BYTES
    from unlost.archives.cdx import JsonRowReader as JsonRowReader
    from unlost.archives.cdx import PrefixQuery as PrefixQuery
    from unlost.archives.cdx_client import PywbClient as PywbClient
    from unlost.archives.cdx_client import WaybackClient as WaybackClient
    from unlost.archives.chromium_cache import ChromiumCacheClient as ChromiumCacheClient
    from unlost.archives.chromium_cache import chromium_data_folder as chromium_data_folder
    from unlost.archives.chromium_cache import open_chromium_content as open_chromium_content
    from unlost.archives.chromium_cache import parse_chromium_key as parse_chromium_key
    from unlost.archives.chromium_cache import read_chromium_responses as read_chromium_responses
    from unlost.archives.chromium_cache import super_fast_hash as super_fast_hash
    from unlost.archives.common_crawl import CommonCrawlClient as CommonCrawlClient
    from unlost.archives.datetime_negotiation import pad_range as pad_range
    from unlost.archives.factory import create_client as create_client
    from unlost.archives.firefox_cache import FirefoxCacheClient as FirefoxCacheClient
    from unlost.archives.firefox_cache import firefox_data_folder as firefox_data_folder
    from unlost.archives.firefox_cache import open_firefox_content as open_firefox_content
    from unlost.archives.firefox_cache import parse_firefox_key as parse_firefox_key
    from unlost.archives.firefox_cache import read_firefox_responses as read_firefox_responses
    from unlost.archives.har import HarClient as HarClient
    from unlost.archives.har import find_entry_spans as find_entry_spans
    from unlost.archives.local_sources import find_profiles as find_profiles
    from unlost.archives.local_sources import profiles_at as profiles_at
    from unlost.archives.memento import MementoClient as MementoClient
    from unlost.archives.memento_urls import archive_hosts as archive_hosts
    from unlost.archives.memento_urls import join_url as join_url
    from unlost.archives.memento_urls import memento_url as memento_url
    from unlost.archives.memento_urls import parse_memento_url as parse_memento_url
    from unlost.archives.memento_urls import raw_memento_url as raw_memento_url
    from unlost.archives.probe import MapLink as MapLink
    from unlost.archives.probe import ProbeResult as ProbeResult
    from unlost.archives.probe import discover_maps as discover_maps
    from unlost.archives.probe import maps_in_headers as maps_in_headers
    from unlost.archives.probe import maps_in_page as maps_in_page
    from unlost.archives.probe import probe_archives as probe_archives
    from unlost.archives.replay import ReplayClient as ReplayClient
    from unlost.archives.replay import decompress_gzip_text as decompress_gzip_text
    from unlost.archives.sample_state import SampleState as SampleState
    from unlost.archives.sampler import MAX_CONSECUTIVE_FAILURES as MAX_CONSECUTIVE_FAILURES
    from unlost.archives.sampler import ArchiveSampler as ArchiveSampler
    from unlost.archives.sampler import EarlyStop as EarlyStop
    from unlost.archives.sampler import FullTextSearch as FullTextSearch
    from unlost.archives.sampler import SampleUrlList as SampleUrlList
    from unlost.archives.sampler import SearchResultPage as SearchResultPage
    from unlost.archives.sampler import SearchSampler as SearchSampler
    from unlost.archives.sampler import capture_language as capture_language
    from unlost.archives.sampler import write_sample_map as write_sample_map
    from unlost.archives.warc_capture import decode_payload as decode_payload
    from unlost.archives.warc_file_index import IndexingStoppedError as IndexingStoppedError
    from unlost.archives.warc_file_index import WarcFileIndex as WarcFileIndex
    from unlost.archives.warc_files import WarcFilesClient as WarcFilesClient
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "archive_today": "ArchiveTodayClient ArchiveTodayDomains",
            "base": "ArchiveClient FetchedCapture",
            "browser_cache": "CachedResponse CachedResponseClient",
            "cdx": "JsonRowReader MAX_BAD_ROWS MAX_ROW_BYTES PrefixQuery",
            "cdx_client": "PywbClient WaybackClient",
            "chromium_cache": (
                "ChromiumCacheClient chromium_data_folder open_chromium_content parse_chromium_key "
                "read_chromium_responses super_fast_hash"
            ),
            "common_crawl": "CommonCrawlClient",
            "datetime_negotiation": "pad_range",
            "factory": "create_client",
            "firefox_cache": (
                "FirefoxCacheClient firefox_data_folder open_firefox_content parse_firefox_key read_firefox_responses"
            ),
            "har": "HarClient find_entry_spans",
            "local_sources": "find_profiles profiles_at",
            "memento": "MementoClient",
            "memento_urls": "archive_hosts join_url memento_url parse_memento_url raw_memento_url",
            "probe": "MapLink ProbeResult discover_maps maps_in_headers maps_in_page probe_archives",
            "replay": "ReplayClient decompress_gzip_text",
            "sample_state": "SampleState",
            "sampler": (
                "ArchiveSampler EarlyStop FullTextSearch MAX_CONSECUTIVE_FAILURES SampleUrlList SearchResultPage "
                "SearchSampler capture_language write_sample_map"
            ),
            "warc_capture": "decode_payload",
            "warc_file_index": "IndexingStoppedError WarcFileIndex",
            "warc_files": "WarcFilesClient",
        },
    )
