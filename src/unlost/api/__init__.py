"""The Python API behind `import unlost`: a small, stable surface over the other packages.

Modules in reading order:

- arguments: dates and archive selections as callers pass them
- aggregator: TimeMaps from all archives, synchronous and asynchronous
- recovery: recovers sites, and reads, exports and reports recoveries
- comparison: compares a recovered site with the original
- maps: builds and compacts MementoMaps
- loop_thread: runs coroutines for synchronous callers

The package must not import unlost.cli. Of the other packages, only unlost.demo imports it.
"""
