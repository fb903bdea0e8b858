"""The archive client protocol, what it returns, and what all clients share.

Reading a response's status, counting unreadable input.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from unlost.capture import Capture
from unlost.errors import ExcludedError, FailedError
from unlost.http.models import HttpResponse
from unlost.problems import Problems
from unlost.registry.models import Archive


@dataclass(frozen=True, slots=True)
class FetchedCapture:
    """A capture with its bytes.

    capture: what came back: its `datetime` is that of the copy, which need not be the one that was asked for.
    headers: the original server's, as (name, value), in order, as far as the archive tells them.
    body: the payload, at its beginning, without transfer and content coding; a temporary file that goes with the
        last reference to it.
    truncated: why the body is known not to be whole, in one word: one of WARC's (`length`, `time`, `disconnect`,
        `unspecified`), or `damage` where the stored file or a coding breaks off; None if nothing says so.
    source: the address that the bytes came from, after redirects, where `capture.urim` is the one to show to people;
        None where the capture tells a file and an offset in it.
    """

    capture: Capture
    headers: tuple[tuple[str, str], ...]
    body: BinaryIO
    truncated: str | None = None
    source: str | None = None

    def header(self, name: str) -> str | None:
        """Return the first value of a field of the original headers, in whatever case; None if there is none."""
        return next((value for each, value in self.headers if each.lower() == name.lower()), None)


class ArchiveClient(Protocol):
    """One archive that can be asked.

    "Nothing held" is an answer: None or an empty list. Everything else that keeps an archive from answering is raised
    as an ArchiveError; what was listed before it has been yielded.
    """

    @property
    def archive(self) -> Archive:
        """What the registry says about it."""
        ...

    def captures(self, uri: str) -> AsyncIterator[Capture]:
        """Yield all captures of one address. Their order is the archive's own."""
        ...

    def list_prefix(self, prefix: str, first: str | None = None, last: str | None = None) -> AsyncIterator[Capture]:
        """Yield all captures below a prefix (the lister query), from a date to a date, both inclusive.

        prefix: an address: `http://example.com/a/` for what begins so, `http://example.com` for its whole host,
            `*.example.com` for a domain with all its hosts; `unlost.archives.prefix_query` says it to the letter.
        first, last: 1 to 14 digits.
        Raises UnsupportedError if the archive has no such list, ListCutError at its end if the list was cut.
        """
        ...

    async def fetch(self, capture: Capture) -> FetchedCapture | None:
        """Return the copy that a capture of this archive speaks of, with its body; None if it is not there after all.

        An archive that has no copy of that date gives its closest: compare the dates.
        """
        ...

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:
        """Return the copy of an address that is closest to a date, or without one the last copy; None if there is none.

        date: 1 to 14 digits. A short one is the span that it names: `2014` is a year, and every copy of that year is
            closest, whichever comes back; if there is none, the one nearest to an end of the year.
        An archive on the network is trusted to know its closest copy; of a list, the closest is chosen here. Compare
        the date of what comes back: it may be far away.
        """
        ...

    async def last_capture_date(self, uri: str) -> str | None:
        """Return when the last copy of an address was captured, 14 digits; None if there is none."""
        ...


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


_EXPECTED_KINDS = {"foreign-scheme", "elsewhere", "other-date", "fuzzy"}
"""Rows that can be read, and were not asked for: every archive gives some."""


async def collect_problems(client: ArchiveClient) -> Problems:
    """Return what of an archive's answers, or of the files of one on this machine, could not be read, so far."""
    found = getattr(client, "problems", None)
    if callable(found):  # of files they are kept in an index, which is asked
        found = await found()
    complaints = Problems()
    if isinstance(found, Problems):
        for kind, count in found.counts.items():
            if kind not in _EXPECTED_KINDS:
                complaints.add(found.first[kind], count)
    return complaints
