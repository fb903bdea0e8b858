"""The archive client protocol, its results, and what clients share: the meaning of statuses, counts of problems."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from unlost.capture import Capture
from unlost.errors import ExcludedError, FailedError
from unlost.http.models import HttpResponse
from unlost.problems import Problems
from unlost.registry.models import Archive

# Kinds of rows that are readable but were not requested. Every archive returns some.
_EXPECTED_KINDS = {"foreign-scheme", "elsewhere", "other-date", "fuzzy"}
# The names of Java exceptions in the body of Wayback's 403 for a blocked site.
_EXCLUSIONS = (b"AdministrativeAccessControlException", b"RobotAccessControlException")
# pywb's 400 for a page all of whose captures redirect to the page itself (the same SURT).
_SELF_REDIRECT = b"Self Redirect"
_INSPECTED_BYTES = 1 << 16  # beginning of a body that is searched for these


@dataclass(frozen=True, slots=True)
class FetchedCapture:
    """A capture with its body.

    Attributes:
        capture: The capture. Its `datetime` is that of the memento returned, which may differ from the one requested.
        headers: The original response headers as (name, value) pairs, in order, as far as the archive returns them.
        body: The payload without transfer and content coding, positioned at its beginning. In a temporary file if
            large; it is deleted with the last reference.
        truncated: Why the body is incomplete: a value of WARC-Truncated (`length`, `time`, `disconnect`,
            `unspecified`), or `damage` if the stored file or a coding breaks off. None if it is not known to be.
        source: The URL from which the body was fetched, after redirects; `capture.urim` is the URL for users. None for
            a record in a file.
    """

    capture: Capture
    headers: tuple[tuple[str, str], ...]
    body: BinaryIO
    truncated: str | None = None
    source: str | None = None

    def header(self, name: str) -> str | None:
        """Return the first value of an original header field, or None. Names are case-insensitive."""
        return next((value for each, value in self.headers if each.lower() == name.lower()), None)


class ArchiveClient(Protocol):
    """Client for one archive.

    That there is no capture is a regular result: None or an empty list. What prevents a result is raised as
    ArchiveError, after the captures that were listed before it.
    """

    @property
    def archive(self) -> Archive:
        """The archive's entry in the registry."""
        ...

    def captures(self, uri: str) -> AsyncIterator[Capture]:
        """Yield all captures of a URL, in the archive's own order."""
        ...

    def list_prefix(self, prefix: str, first: str | None = None, last: str | None = None) -> AsyncIterator[Capture]:
        """Yield all captures below a prefix.

        Args:
            prefix: `http://example.com/a/` for a URL prefix, `http://example.com` for a host, `*.example.com` for a
                domain with all its hosts. See `unlost.archives.cdx.PrefixQuery.parse` for the exact rules.
            first: Earliest date, 1 to 14 digits, inclusive.
            last: Latest date, 1 to 14 digits, inclusive.

        Raises:
            UnsupportedError: The archive cannot list a prefix.
            ListCutError: The list is incomplete. Raised after its last capture.
        """
        ...

    async def fetch(self, capture: Capture) -> FetchedCapture | None:
        """Fetch a capture of this archive; None if it does not exist after all.

        An archive without a capture at that time returns the closest one: compare the dates.
        """
        ...

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:
        """Fetch the capture of a URL that is closest to a date, or the last one; None if there is none.

        Most remote archives select the closest capture themselves. Compare the date of the result: it may be far away.

        Args:
            uri: The URL.
            date: 1 to 14 digits. A short date is a period: all captures in the year `2014` are equally close to it, and
                any of them may be returned. If there are none, the capture nearest to either end of the year is.
        """
        ...

    async def last_capture_date(self, uri: str) -> str | None:
        """Return the date of the last capture of a URL, 14 digits; None if there is none."""
        ...


def has_content(archive: Archive, response: HttpResponse) -> bool:
    """Return whether a response has content; False if it says that there are no captures.

    Raises:
        ExcludedError: The archive does not serve the site.
        FailedError: Any other status but 200.
    """
    if response.status == 200:
        return True
    if response.status in (404, 410) or (response.status == 400 and _body_contains(response, _SELF_REDIRECT)):
        return False
    if response.status == 451 or (response.status == 403 and names_exclusion(response)):
        raise ExcludedError(f"{archive.name} does not show it", archive.id)
    raise FailedError(f"expected an answer, found status {response.status}", archive.id, "status")


def names_exclusion(response: HttpResponse) -> bool:
    """Return whether the beginning of a body names the exceptions with which Wayback reports a blocked site."""
    return _body_contains(response, *_EXCLUSIONS)


def _body_contains(response: HttpResponse, *words: bytes) -> bool:
    response.body.seek(0)
    text = response.body.read(_INSPECTED_BYTES)
    response.body.seek(0)
    return any(word in text for word in words)


async def collect_problems(client: ArchiveClient) -> Problems:
    """Return what a client could not read so far, in responses or in local files, without rows not requested."""
    problems = getattr(client, "problems", None)
    if callable(problems):  # the problems of files are stored in their index
        problems = await problems()
    result = Problems()
    if isinstance(problems, Problems):
        for kind, count in problems.counts.items():
            if kind not in _EXPECTED_KINDS:
                result.add(problems.first[kind], count)
    return result
