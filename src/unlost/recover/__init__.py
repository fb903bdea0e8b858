"""Brings a lost website back: crawls the archives for it, chooses the best captures, keeps them.

The package can be called: `unlost.recover(url, to)` calls `unlost.api.recovery.recover`.
It has the best name for both, and the import of anything in the package makes `unlost.recover` mean the package.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A package that can be called."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401  those of the function
        """Bring a lost site back from all archives together, into a folder."""
        return _function()(*arguments, **options)

    @property
    def __signature__(self) -> object:
        """How it is called, for `help` and editors."""
        return import_module("inspect").signature(_function())


def _function() -> Any:  # noqa: ANN401
    # By its name: the function stands on this package, which therefore cannot import it.
    return import_module("unlost.api.recovery").recover


sys.modules[__name__].__class__ = _Callable
