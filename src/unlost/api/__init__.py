"""The Python API of `import unlost`: a small, stable surface over the other packages.

Modules in reading order:

- `arguments`: dates and archive selections as callers pass them
- `aggregator`: TimeMaps from all archives, synchronous and asynchronous
- `recovery`: recovers sites; reads, exports, reports and compares recoveries
- `maps`: builds and compacts MementoMaps
- `loop_thread`: runs coroutines for synchronous callers, also inside a running event loop (notebooks)

Nothing is printed: messages go to the logger `unlost`. The settings of the command line are not read, but rate limits
are shared with all processes of the user. Must not import `unlost.cli`; of the other packages, only `unlost.demo`
imports this one.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
