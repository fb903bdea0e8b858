"""Recovers lost websites: crawls the archives, selects the best captures, and stores them as WARC files.

Modules in reading order:

- options and scope: what to recover
- sources: archive clients, local files and the live site
- state: the SQLite database (package)
- warc_records and warc_store: the WARC files
- listings, frontier and page_requisites: which URLs are enqueued
- ranking and planner: which capture is fetched next
- fetcher and quality_gate: fetch, store and classify captures
- scheduler and events: one run of a recovery, and what it reports
- estimate: the cost of a recovery in advance
- session: opens all of these for a folder, and runs the scheduler

The package must not import unlost.export, unlost.report, unlost.api, unlost.jobs, unlost.web or unlost.cli. It is not
named `recover`, because importing a package of that name would replace the function `unlost.recover`.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
