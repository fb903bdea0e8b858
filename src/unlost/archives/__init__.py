"""Clients for web archives and for archives on this machine. Each kind of archive has one client.

Modules in reading order:

- `base`, `factory`: The `ArchiveClient` protocol, and the client for an entry of the registry.
- `datetime_negotiation`, `memento_urls`: The capture closest to a date; URI-Ms.
- `cdx`, `replay`, `timemap`: CDX queries and rows, one capture, TimeMaps and TimeGates.
- `cdx_client`, `memento`, `common_crawl`, `archive_today`: Clients for remote archives. `probe` tests a registry entry.
- `warc_capture`, `warc_file_index`, `warc_files`: Directories of WARC, ARC and WACZ files.
- `browser_cache`, `chromium_cache`, `firefox_cache`, `har`, `local_sources`: Browser caches and HAR files.
- `sample_state`, `sampler`: Samples of an archive's holdings, as a MementoMap.

Imports `http`, `registry`, `warc`, `index`, `memento`, `logs`, `mementomap` and what they need. It must not import
`aggregate`, `recovery` or a service.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
