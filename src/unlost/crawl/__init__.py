"""Polite crawler for live websites: robots.txt, per-host delays, scope, trap detection, WARC output.

A crawl is stored in a folder with `state.sqlite` and `warc/`. It can be interrupted at any time and resumed. See
docs/crawl.md.

Modules, in reading order:

- `models`: configuration of a crawl and its results.
- `scope`, `traps`: which URLs belong to a crawl.
- `fetcher`: one HTTP request to the live web, bounded in time and size.
- `robots`, `politeness`: robots.txt (RFC 9309), delays, Retry-After.
- `extractor`: media type, redirect, links and `noarchive` of a response.
- `state`, `warc_store`: SQLite state and WARC files.
- `frontier`, `engine`: the queue and the run loop; `engine.crawl` is the entry point.

The package must not import the command line, the web service, or packages that use crawls (check, vault, watch).
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
