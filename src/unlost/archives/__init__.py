"""Clients for web archives and for archives on this machine.

base: the `ArchiveClient` protocol. factory: the client for an entry of the registry. prefix_query: pages, prefixes,
hosts and domains. datetime_negotiation: the capture closest to a date. memento_urls: URI-Ms.

Remote archives: cdx (queries and rows of CDX servers), replay (fetches one capture), timemap (TimeMaps and TimeGates);
the clients cdx_client (Wayback, pywb), memento, common_crawl and archive_today. probe: tests a new registry entry.

Local archives: warc_capture, warc_file_index and warc_files (directories of WARC and other archive files);
browser_cache with its formats chromium_cache, firefox_cache and har; local_sources finds them.

sample_state, sampler and sample_map: sample an archive's holdings into a MementoMap.

Imports http, registry, index, memento, warc, mementomap and formats; never aggregate, recover or the services.
"""
