"""The filter beside a map: the one place where budgets and evaluations meet filters."""

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path

from unlost.holdings._map_header import read_map_header, header_rules
from unlost.holdings.filter import Filter
from unlost.holdings.filtering import FilterOptions, build_filter


def write_page_filter(
    source: str | PathLike[str], output: str | PathLike[str], bits: int, built_at: str | None = None
) -> int:
    """Write a filter of the pages of a map without wildcards, by its own rules; return how many bytes it has.

    made: when it is, 14 digits in UTC, for its header.
    """
    rules = header_rules(read_map_header(fspath(source)))
    build_filter([source], output, FilterOptions(bits=bits, key="hxpx", rules=rules, kind="map", built_at=built_at))
    return Path(output).stat().st_size


def lookup_keys_in_filter(filter_file: str | PathLike[str], keys: Sequence[str]) -> list[bool]:
    """Return for each key whether a filter says that it may be held."""
    return Filter.open(filter_file).lookup_keys_many(keys)
