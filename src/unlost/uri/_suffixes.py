"""Registered domains, by the Public Suffix List."""

from unlost._core import SuffixList
