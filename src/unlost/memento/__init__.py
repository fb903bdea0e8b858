"""Memento (RFC 7089): TimeMaps in link-format and compact lists of mementos.

Imports the top level and the Rust core; nothing of `archives` or `aggregate`.
"""
