"""What the status of an answer says that is not a stored copy, but the archive speaking for itself."""

from unlost.archives.archive import Archive
from unlost.archives.asking.question import HttpResponse
from unlost.errors import ExcludedError, FailedError

_EXCLUSIONS = (b"AdministrativeAccessControlException", b"RobotAccessControlException")
# pywb's word for a page all of whose copies redirect to itself; it shows none of them, and says 400.
_SELF_REDIRECT = b"Self Redirect"
_INSPECTED_BYTES = 1 << 16  # bytes of a body, for one of these


def has_content(archive: Archive, response: HttpResponse) -> bool:
    """Return whether an answer has contents to read; False if it says that nothing is held.

    Raises ExcludedError if the archive does not show it, FailedError for any other status but 200.
    """
    if response.status == 200:
        return True
    if response.status in (404, 410) or (response.status == 400 and _body_contains(response, _SELF_REDIRECT)):
        return False
    if response.status == 451 or (response.status == 403 and names_exclusion(response)):
        raise ExcludedError(f"{archive.name} does not show it", archive.id)
    raise FailedError(f"expected an answer, found status {response.status}", archive.id, "status")


def names_exclusion(response: HttpResponse) -> bool:
    """Return whether the beginning of a body names the exceptions by which Wayback says that a site is blocked."""
    return _body_contains(response, *_EXCLUSIONS)


def _body_contains(response: HttpResponse, *words: bytes) -> bool:
    """Return whether one of these is in the beginning of a body."""
    response.body.seek(0)
    text = response.body.read(_INSPECTED_BYTES)
    response.body.seek(0)
    return any(word in text for word in words)
