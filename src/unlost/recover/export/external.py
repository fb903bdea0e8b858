"""What becomes of links that lead away from the site."""

import re
from enum import StrEnum

from unlost.pages.link import LinkKind

EMPTY_IMAGE_URL = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
"""An address that leads to nothing, without asking anybody."""

_MAX_URL = 8_000  # letters, as `rewrite` takes them
_DEFAULT_REPLAY_PREFIX = "https://web.archive.org/web/"
_URIM = re.compile(r"(https?://[^\s?#]{1,500}?/)\d{4,14}(?:[a-z]{2}_)?/(?=https?:/|[\w-]+\.)", re.ASCII)


class ExternalLinks(StrEnum):
    """What to do with them."""

    KEEP = "keep"
    """Nothing."""
    ARCHIVE = "archive"
    """They lead to the copies of an archive, as of the date of the page."""
    NONE = "none"
    """What is needed to show a page leads to nothing, so that nobody is asked for it; links stay."""


def replay_prefix(urim: str | None) -> str:
    """Return what an archive puts before the date and the address of a copy.

    urim: the address of one of its copies. Where that does not tell, the Wayback Machine's.

    >>> replay_prefix("https://arquivo.pt/wayback/20140102030405id_/http://a.example/")
    'https://arquivo.pt/wayback/'
    >>> replay_prefix("https://archive.ph/Ab1cD")
    'https://web.archive.org/web/'
    """
    found = _URIM.match(urim or "")
    return found[1] if found and found[1].isascii() else _DEFAULT_REPLAY_PREFIX


def external_url(external: ExternalLinks, uri: str, use: LinkKind, date: str, urim: str | None) -> str | None:
    """Return what stands in the place of a link that leads away from the site; None if it stays as it is.

    date: of the page, 14 digits. urim: the address of its copy in the archive that it is from.

    >>> outside_address(External.ARCHIVE, "http://b.example/", Use.PAGE, "20140102030405", None)
    'https://web.archive.org/web/20140102030405/http://b.example/'
    """
    if external is ExternalLinks.NONE and use is LinkKind.REQUISITE:
        return EMPTY_IMAGE_URL
    if external is ExternalLinks.ARCHIVE:
        found = f"{replay_prefix(urim)}{date}/{uri}"
        return found if len(found) <= _MAX_URL else None
    return None
