"""Middleware for ASGI and WSGI that inserts blocks into the pages of a running site.

Modules: `page_blocks` caches the blocks of each page and decides which responses may be changed; `asgi` and `wsgi`
implement the protocols. Must not import a web framework.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
