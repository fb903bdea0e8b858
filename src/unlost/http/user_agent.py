"""The User-Agent header: product token, version and contact."""

import re

from unlost._core import VERSION
from unlost.errors import UsageError

PRODUCT_TOKEN = "unlost"  # noqa: S105
"""The name by which rules for programs, such as `robots.txt`, mean us."""

_CONTACT = re.compile(r"[!-'*-~]+( [!-'*-~]+)*")


def user_agent(contact: str | None) -> str:
    """Return the value of User-Agent.

    contact: an address of mail or of a page; None if there is none. Raises UsageError for what no header can have.
    """
    if contact is None:
        return f"{PRODUCT_TOKEN}/{VERSION}"
    if not _CONTACT.fullmatch(contact):
        raise UsageError("contact: expected an address of mail or of a page: printable ASCII without brackets")
    return f"{PRODUCT_TOKEN}/{VERSION} (+{contact})"
