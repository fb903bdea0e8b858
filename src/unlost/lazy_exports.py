"""Packages whose names are imported on first use (PEP 562).

`from unlost.http import ArchiveHttpClient` imports only the module that defines the class. Importing a module of a
package imports no other module of it, so that `unlost COMMAND` starts quickly.

A package lists its names once, in the stub `__init__.pyi`: type checkers read it instead of `__init__.py`, and
`lazy_exports` reads it at run time. Each line is `from MODULE import NAME as NAME`.
"""

import pkgutil
import re
from collections.abc import Callable
from importlib import import_module

_EXPORT = re.compile(r"^from (\S+) import (\w+) as \2$", re.MULTILINE)


def lazy_exports(package: str) -> Callable[[str], object]:
    """Return a `__getattr__` for a package with a stub.

    Args:
        package: `__name__` of the package.
    """
    module_of: dict[str, str] = {}

    def get_export(name: str) -> object:
        if not module_of:
            stub = (pkgutil.get_data(package, "__init__.pyi") or b"").decode()
            module_of.update((exported, module) for module, exported in _EXPORT.findall(stub))
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(module_of[name]), name)

    return get_export
