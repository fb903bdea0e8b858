"""What the status of an answer says that is not a stored copy, but the archive speaking for itself."""

from unlost.archives.archive import Archive
from unlost.archives.asking.question import Reply
from unlost.errors import ExcludedError, FailedError

_EXCLUSIONS = (b"AdministrativeAccessControlException", b"RobotAccessControlException")
# pywb's word for a page all of whose copies redirect to itself; it shows none of them, and says 400.
_SELF_REDIRECT = b"Self Redirect"
_LOOKED_AT = 1 << 16  # bytes of a body, for one of these


def holds_something(archive: Archive, reply: Reply) -> bool:
    """Return whether an answer has contents to read; False if it says that nothing is held.

    Raises ExcludedError if the archive does not show it, FailedError for any other status but 200.
    """
    if reply.status == 200:
        return True
    if reply.status in (404, 410) or (reply.status == 400 and _has(reply, _SELF_REDIRECT)):
        return False
    if reply.status == 451 or (reply.status == 403 and names_exclusion(reply)):
        raise ExcludedError(f"{archive.name} does not show it", archive.id)
    raise FailedError(f"expected an answer, found status {reply.status}", archive.id, "status")


def names_exclusion(reply: Reply) -> bool:
    """Return whether the beginning of a body names the exceptions by which Wayback says that a site is blocked."""
    return _has(reply, *_EXCLUSIONS)


def _has(reply: Reply, *words: bytes) -> bool:
    """Return whether one of these is in the beginning of a body."""
    reply.body.seek(0)
    text = reply.body.read(_LOOKED_AT)
    reply.body.seek(0)
    return any(word in text for word in words)
