"""Recovers lost websites: crawls the archives, selects the best captures, and stores them as WARC files.

Modules in reading order:

- options and scope: what to recover
- sources: archive clients, local files and the live site
- state: the SQLite database (package)
- warc_records and warc_store: the WARC files
- listings, frontier and page_requisites: which URLs are enqueued
- ranking and planner: which capture is fetched next
- fetcher and quality_gate: fetches, stores and classifies captures
- session: runs a recovery; estimate: its cost in advance

The package must not import unlost.export, unlost.report, unlost.api, unlost.jobs, unlost.web or unlost.cli.

It is callable: `unlost.recover(url, to)` calls `unlost.api.recovery.recover`. Function and package share the name, and
importing any module of the package binds `unlost.recover` to the package.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A callable module."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401  those of the function
        """Recover a lost site from all archives into a folder."""
        return _function()(*arguments, **options)

    @property
    def __signature__(self) -> object:
        """The signature for `help` and editors."""
        return import_module("inspect").signature(_function())


def _function() -> Any:  # noqa: ANN401
    # Imported lazily, because its module imports this package.
    return import_module("unlost.api.recovery").recover


sys.modules[__name__].__class__ = _Callable
