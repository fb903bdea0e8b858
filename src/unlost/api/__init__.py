"""The Python API behind `import unlost`: a small, stable surface over the other packages.

Modules in reading order:

- arguments: dates and archive selections as callers pass them
- aggregator: TimeMaps from all archives, synchronous and asynchronous
- recovery: recovers sites; reads, exports, reports and compares recoveries
- maps: builds and compacts MementoMaps
- loop_thread: runs coroutines for synchronous callers

The package must not import unlost.cli. Of the other packages, only unlost.demo imports it.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
