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

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
