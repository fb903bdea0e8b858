"""Middleware for ASGI and WSGI that inserts blocks into the pages of a running site.

Modules, in reading order:

- `page_blocks`: caches the blocks of each page and decides which responses may be changed.
- `asgi`, `wsgi`: implement the protocols.

The package must not import a web framework.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
