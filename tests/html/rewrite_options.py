"""Options of `rewrite_links`."""

from typing import TypedDict


class RewriteOptions(TypedDict, total=False):
    """What to drop from a page."""

    drop_base: bool
    drop_integrity: bool
    drop_csp: bool
