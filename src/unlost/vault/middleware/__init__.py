"""Middleware for ASGI and WSGI that inserts blocks into the pages of a running site.

Modules: `page_blocks` caches the blocks of each page and decides which responses may be changed; `asgi` and `wsgi`
implement the protocols. Must not import a web framework.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.vault.middleware.asgi import AsgiMessage as AsgiMessage
    from unlost.vault.middleware.asgi import VaultMiddleware as VaultMiddleware
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "asgi": "AsgiMessage VaultMiddleware",
        },
    )
