"""The Memento protocol (RFC 7089): TimeMaps in link-format, and compact lists of mementos.

`timemap` is its only module. It imports the top level and the Rust core, and must not import `archives` or `aggregate`.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
