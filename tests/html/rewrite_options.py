"""Options of `rewrite_links`."""

from typing import TypedDict


class RewriteOptions(TypedDict, total=False):
    """The parts of a page to drop."""

    drop_base: bool
    drop_integrity: bool
    drop_csp: bool
