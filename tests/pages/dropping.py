"""What of a page is to have no effect any more."""

from typing import TypedDict


class Dropping(TypedDict, total=False):
    """Options of `rewrite`."""

    drop_base: bool
    drop_integrity: bool
    drop_csp: bool
