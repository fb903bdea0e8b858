"""The registry of web archives: what is known about each archive before it is queried.

models: `Archive` and its parts. loader: the shipped archives.toml, a user's own file that replaces or extends it, or
MemGator's archives.json; validation of values in hand-written files.

Imports only errors and problems (error messages); http and archives build on it.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
