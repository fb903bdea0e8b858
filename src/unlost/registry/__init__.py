"""The registry of web archives: what is known about each archive before it is queried.

Modules in reading order:

- `models`: `Archive` and its parts.
- `loader`: Loads the shipped `archives.toml`, a user's file that replaces or extends it, or MemGator's `archives.json`.

Imports only `unlost.errors` and `unlost.problems`. It must not import `http` or `archives`, which need it.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
