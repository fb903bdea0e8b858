"""Exceptions that unlost raises deliberately.

UnlostError
├── UsageError              invalid arguments or options                      exit code 2
│   └── BlockedError        a site that is excluded from recovery
├── InputError              invalid or unreadable input                       exit code 3
│   ├── UriError            not the URL of a web page
│   │   └── ForeignSchemeError   a URL with another scheme: `dns:`, `mailto:`, `ftp:` …
│   ├── DateError           a date in an unexpected form
│   ├── UnsortedError       an index whose lines are not in the required order
│   ├── DocumentError       a PDF, PostScript or Office document whose text cannot be extracted
│   ├── ArchiveFileError    an invalid archive file, or no record at an offset
│   ├── UnwrittenError      a file of a recovery or crawl could not be written: disk full
│   └── SuffixListError     not a Public Suffix List
├── NotKeptError            a cached result was required; there is none       exit code 1
├── SiteError               a live site did not respond                       exit code 4
│   ├── RobotsError         its robots.txt disallows the request
│   └── SiteWaitError       it asked to retry later; `until` says when
├── BusyError               too many concurrent look-ups                      exit code 4
│   └── LimitError          the daily limit of jobs is reached
├── JobError                the job is in a state that does not allow this    exit code 1
│   └── LeaseLostError      the worker has lost its lease on the job
├── DatabaseError           the job database is unavailable                   exit code 4
├── ClusterError            a cluster is unavailable or gave up               exit code 4
├── OfflineError            no archive can be reached                         exit code 4
└── ArchiveError            an archive did not respond; others may            exit code 4
    ├── NotNowError         not queried: rate limit, quota or block; `until` says until when
    ├── FailedError         the request failed; `kind` says how
    ├── ExcludedError       the archive does not show the page
    ├── UnsupportedError    the archive has no such API
    └── ListCutError        its list ended at a size limit

A message is one human-readable line: what went wrong, then what was expected. It never repeats the whole input, which
may be long or untrusted; the caller adds the context.
"""

from functools import partial
from typing import Any


class UnlostError(Exception):
    """Base class of all exceptions that unlost raises deliberately.

    Attributes:
        exit_code: Exit code of the command, as listed in docs/cli.md.
    """

    exit_code = 1


class UsageError(UnlostError):
    """The arguments or options are invalid. The message says what is valid.

    Commands also raise it for an invalid URL or date on the command line; in files, that is an InputError.
    """

    exit_code = 2


class BlockedError(UsageError):
    """The site is excluded from recovery at its owner's request."""


class InputError(UnlostError):
    """An input is invalid or cannot be read. Repair it or leave it out; other inputs are not affected."""

    exit_code = 3


class UriError(InputError):
    """The text is not the URL of a web page.

    Attributes:
        kind: Error code: `empty`, `too-long`, `no-host`, `bad-host`, `bad-port`, `not-surt`, `nested`,
            `foreign-scheme`. docs/formats.md describes them.
    """

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind

    def __reduce__(self) -> tuple[type, tuple[str, ...]]:
        """Support pickling, to pass the exception between processes."""
        return type(self), (str(self), self.kind)


class ForeignSchemeError(UriError):
    """The URL has a scheme that is not of the web, and therefore no SURT. Pass it on unchanged.

    Attributes:
        scheme: Scheme in lower case, without its colon.
    """

    def __init__(self, message: str, kind: str, scheme: str) -> None:
        super().__init__(message, kind)
        self.scheme = scheme

    def __reduce__(self) -> tuple[type, tuple[str, ...]]:
        """Support pickling."""
        return type(self), (str(self), self.kind, self.scheme)


class DateError(InputError):
    """The text is not a date in the expected form. The message shows an example."""


class SuffixListError(InputError):
    """The file is not in the format of the Public Suffix List. Download it again."""


class ArchiveFileError(InputError):
    """The archive file is invalid, or has no record at an offset. Check the name and the offset."""


class UnwrittenError(InputError):
    """A file of a recovery or crawl could not be written. Stored data is intact: free disk space and resume."""


class SpaceError(UnwrittenError):
    """The job has used its disk space. The message is shown to its owner."""


class UnsortedError(InputError):
    """The lines of an index are not in the promised or required order. Sort it, or do not require it."""


class DocumentError(InputError):
    """The text of a document cannot be extracted. Compare the bytes instead, or skip the document.

    Attributes:
        kind: Error code: `damaged`, `encrypted`, `too-long` (time limit), `too-big` (size or memory limit),
            `no-ghostscript` (a required program is missing).
    """

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind

    def __reduce__(self) -> tuple[type, tuple[str, ...]]:
        """Support pickling, to pass the exception between processes."""
        return type(self), (str(self), self.kind)


class NotKeptError(UnlostError):
    """The caller accepted only a cached result, and there is none. Repeat the request without that condition."""


class SiteError(UnlostError):
    """A live site did not respond. Other pages may; the message says what happened.

    Attributes:
        kind: Error code, as in `unlost.http.models.KINDS`, or `robots` or `told-to-wait`.
    """

    exit_code = 4

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Support pickling, to pass the exception between processes."""
        return type(self), (str(self), self.kind)


class RobotsError(SiteError):
    """A page was not requested because robots.txt disallows it, or could not be fetched.

    Attributes:
        is_temporary: Whether robots.txt could not be fetched; then retry on another day.
    """

    def __init__(self, message: str, *, is_temporary: bool) -> None:
        super().__init__(message, "robots")
        self.is_temporary = is_temporary

    def __reduce__(self) -> tuple[Any, tuple[object, ...]]:
        """Support pickling."""
        return partial(type(self), is_temporary=self.is_temporary), (str(self),)


class SiteWaitError(SiteError):
    """A site asked to retry after longer than the client waits. Retry at `until`, in seconds since 1970."""

    def __init__(self, message: str, until: float) -> None:
        super().__init__(message, "told-to-wait")
        self.until = until

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Support pickling."""
        return type(self), (str(self), self.until)


class BusyError(UnlostError):
    """The limits of concurrent and waiting look-ups are reached. Retry after `seconds`."""

    exit_code = 4

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Support pickling, to pass the exception between processes."""
        return type(self), (str(self), self.seconds)


class LimitError(BusyError):
    """The daily limit of jobs is reached. `kind` says which: `mail`, `client` or `address` (IP address)."""

    def __init__(self, message: str, seconds: float, kind: str) -> None:
        super().__init__(message, seconds)
        self.kind = kind

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Support pickling, to pass the exception between processes."""
        return type(self), (str(self), self.seconds, self.kind)


class JobError(UnlostError):
    """The job is in a state that does not allow the operation. The message says which."""


class LeaseLostError(JobError):
    """The worker has lost its lease: it expired and another worker took over, or the job was cancelled.

    Stop at once.
    """


class DatabaseError(UnlostError):
    """The job database is unavailable or read-only at the moment. Nothing was changed; retry later."""

    exit_code = 4


class ClusterError(UnlostError):
    """The cluster is unavailable, or lost its machines more often than the retry limit.

    No output was written; the work must be started from the beginning.
    """

    exit_code = 4


class OfflineError(UnlostError):
    """No archive can be reached because of the local network. No request was sent; retry later.

    Attributes:
        reason: What failed, such as `name resolution failed`.
    """

    exit_code = 4

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Support pickling."""
        return type(self), (str(self), self.reason)


class ArchiveError(UnlostError):
    """An archive did not respond, or not completely. Continue with other archives; results received so far are valid.

    Attributes:
        archive: ID of the archive in the registry.
    """

    exit_code = 4

    def __init__(self, message: str, archive: str) -> None:
        super().__init__(message)
        self.archive = archive

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Support pickling, to pass the exception between processes."""
        return type(self), (str(self), self.archive)


class NotNowError(ArchiveError):
    """An archive is not queried at the moment. Retry at `until`; before that, no request will be sent.

    Attributes:
        until: Seconds since 1970.
        reason: Error code: `rate`, `quota`, `told-to-wait` (429 or 503), `blocked` (it refused the connection), `busy`
            (earlier requests are unanswered).
    """

    def __init__(self, message: str, archive: str, until: float, reason: str) -> None:
        super().__init__(message, archive)
        self.until = until
        self.reason = reason

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Support pickling."""
        return type(self), (str(self), self.archive, self.until, self.reason)


class FailedError(ArchiveError):
    """A request to an archive failed. The message says how.

    Attributes:
        kind: Error code, as in `unlost.http.models.KINDS`.
    """

    def __init__(self, message: str, archive: str, kind: str) -> None:
        super().__init__(message, archive)
        self.kind = kind

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Support pickling."""
        return type(self), (str(self), self.archive, self.kind)


class ExcludedError(ArchiveError):
    """An archive does not show a page, at its owner's request or by its own rules. Retrying does not help."""


class UnsupportedError(ArchiveError):
    """An archive has no API for the request. See the capabilities of its `ArchiveClient`, or query another one."""


class ListCutError(ArchiveError):
    """A list ended at a size limit. The listed captures are valid; query shorter prefixes or time spans."""
