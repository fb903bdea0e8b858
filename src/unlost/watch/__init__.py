"""Watches sites: visits them periodically, and reports when one is lost.

Modules, in reading order:

- `site_health`: fetches a few pages of a site and classifies its health.
- `losses`: detects and records losses, and runs the loss hook.
- `lifetimes`: lifetimes of resources on the web and in archives.
- `watcher`: visits sites on schedule; estimates the number of queries.
- `report`: text and HTML.

The package builds on check. It must not import jobs, web or the command line.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
