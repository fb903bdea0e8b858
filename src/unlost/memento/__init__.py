"""The Memento protocol (RFC 7089): TimeMaps in link-format, and compact lists of mementos.

`timemap` is the only module. It parses TimeMaps of any archive leniently and writes them strictly; the Rust core
parses, merges and renders long ones.

Imports the top level and the Rust core. It must not import `archives` or `aggregate`.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
