"""The SQLite database of a recovery: resources, captures, listings and records.

Modules in reading order: `schema` opens and migrates the file; `captures` and `resources` wrap its tables; `queries`
reads finished and missing resources; `store` combines the tables for the process that writes them; `reader` reads the
file while another process may write it.

The package must not import `unlost.report`, `unlost.export` or the scheduler and fetcher of `unlost.recovery`.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
