"""The filter beside a map: the one place where maps, budgets and evaluations meet `unlost.holdings.filter`."""

from collections.abc import Sequence
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from unlost.errors import UsageError


def _filters() -> Any:  # noqa: ANN401  a module that may not be there
    try:
        return import_module("unlost.holdings.filter")
    except ModuleNotFoundError as error:
        if error.name != "unlost.holdings.filter":
            raise
        raise UsageError("this unlost was built without filters: leave out --with-filter and --bits") from error


def write_filter(source: str | PathLike[str], output: str | PathLike[str], bits: int) -> int:
    """Write a filter of the pages of a map without wildcards; return how many bytes it has.

    Raises UsageError where there are no filters.
    """
    filters = _filters()
    filters.build_filter([source], output, filters.FilterOptions(bits=bits, key="hxpx"))
    return Path(output).stat().st_size


def filter_holds(filter_file: str | PathLike[str], keys: Sequence[str]) -> list[bool]:
    """Return for each key whether a filter says that it may be held.

    Raises UsageError where there are no filters.
    """
    filters = _filters()
    return list(filters.Filter.open(fspath(filter_file)).lookup_keys_many(keys))
