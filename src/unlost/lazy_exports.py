"""Packages whose names are imported on first use (PEP 562).

`from unlost.http import RetryPolicy` imports the one module that defines `RetryPolicy`. Importing a module of a package
imports no other module of it, which keeps `unlost COMMAND` quick to start.
"""

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_exports(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """Return a `__getattr__` for a package.

    Type checkers do not see these names: the package imports them under `TYPE_CHECKING` as well, and
    tests/test_imports.py compares the two.

    Args:
        package: `__name__` of the package.
        modules: For each module of the package, the names it exports, separated by spaces.
    """
    module_of = {name: module for module, names in modules.items() for name in names.split()}

    def get_export(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{module_of[name]}"), name)

    return get_export
