"""Everything that unlost raises on purpose.

UnlostError
├── UsageError              asked for what does not exist, or cannot be       exit code 2
│   └── BlockedError        a site that is not recovered here
├── InputError              something given to be read cannot be              exit code 3
│   ├── UriError            a text that is no address of a web page
│   │   └── ForeignSchemeError   an address of something else: `dns:`, `mailto:`, `ftp:` …
│   ├── DateError           a text that is no date in the form expected
│   ├── UnsortedError       an index whose lines are not in the order that was promised or is needed
│   ├── DocumentError       a PDF, PostScript or Office document whose text cannot be had; `kind` says why
│   ├── ArchiveFileError    an archive file, or a place in one, that is not what it should be
│   ├── UnwrittenError      a file of a recovery or crawl that cannot be written: a full disk
│   └── SuffixListError     a file that is no Public Suffix List
├── NotKeptError            no archive was to be asked, and nothing was kept  exit code 1
├── SiteError               a living site that gave no answer; `kind` says how exit code 4
│   ├── RobotsError         it was not asked: its robots.txt does not want that
│   └── SiteWaitError       it said to come back later; `until` says when
├── BusyError               too much is being looked for already              exit code 4
│   └── LimitError          somebody has ordered as much as may be in a day; `kind` says by what it was counted
├── JobError                a job that this cannot be done with as it stands  exit code 1
│   └── LeaseLostError      a worker that has the job no longer
├── DatabaseError           the database of jobs cannot be reached now        exit code 4
├── ClusterError            a cluster that cannot be reached, or gave up      exit code 4
├── OfflineError            no archive can be reached; `reason` says why      exit code 4
└── ArchiveError            an archive that gave no answer; others may        exit code 4
    ├── NotNowError         it was not asked: a limit, a quota or a block; `until` says when it may be
    ├── FailedError         it was asked and did not answer as it should; `kind` says how
    ├── ExcludedError       it has the page, or may have, and does not show it
    ├── UnsupportedError    it cannot be asked this
    └── ListCutError        its list ended at a cap, not at its end

A message is one line for people: what went wrong, then what was expected. It never repeats the whole input, which may
be long or hostile; whoever reports it knows what it was about.
"""

from functools import partial
from typing import Any


class UnlostError(Exception):
    """The root: catch it to catch everything that unlost raises on purpose.

    exit_code: what the command ends with, as docs/cli.md lists them.
    """

    exit_code = 1


class UsageError(UnlostError):
    """Something was asked for that does not exist, or cannot be as it was asked for. The message says what can.

    Commands raise it for an address or a date that somebody typed, too; in what was read that is an InputError.
    """

    exit_code = 2


class BlockedError(UsageError):
    """A site that is not recovered here, since whoever it belongs to does not want that."""


class InputError(UnlostError):
    """Something given to be read is not what it should be. Mend or leave out that input; the rest is not affected."""

    exit_code = 3


class UriError(InputError):
    """A text that is no address of a web page.

    kind: one word for counting: `empty`, `too-long`, `no-host`, `bad-host`, `bad-port`, `not-surt`, `nested`,
        `foreign-scheme`.
    """

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind

    def __reduce__(self) -> tuple[type, tuple[str, ...]]:
        """Say how to make it again, so that it can go from one process to another."""
        return type(self), (str(self), self.kind)


class ForeignSchemeError(UriError):
    """An address of something that is not a web page, which therefore has no SURT. Pass it on as it stands.

    scheme: in lower case, without its colon.
    """

    def __init__(self, message: str, kind: str, scheme: str) -> None:
        super().__init__(message, kind)
        self.scheme = scheme

    def __reduce__(self) -> tuple[type, tuple[str, ...]]:
        """Say how to make it again."""
        return type(self), (str(self), self.kind, self.scheme)


class DateError(InputError):
    """A text that is no date in the form expected. The message shows one that is."""


class SuffixListError(InputError):
    """A file that is not in the format in which the Public Suffix List is published. Download it again."""


class ArchiveFileError(InputError):
    """An archive file, or a place in one, that is not what it should be. Check the name and the offset."""


class UnwrittenError(InputError):
    """A file of a recovery or crawl cannot be written: nothing that was kept is lost. Make room, and go on."""


class SpaceError(UnwrittenError):
    """A job may not use more disk space now. The message is shown to its owner."""


class UnsortedError(InputError):
    """An index whose lines are not in the order that was promised or is needed: sort it, or do without."""


class DocumentError(InputError):
    """A document whose text cannot be had. Compare its bytes, or leave it out; the next one is not affected.

    kind: one word for counting: `damaged`, `encrypted`, `too-long` (it took longer than one may), `too-big` (its bytes,
        or the memory that it takes), `no-ghostscript` (a program that is needed is missing).
    """

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind

    def __reduce__(self) -> tuple[type, tuple[str, ...]]:
        """Say how to make it again, so that it can go from one process to another."""
        return type(self), (str(self), self.kind)


class NotKeptError(UnlostError):
    """No archive was to be asked for a page, and no answer about it was kept. Ask again without that condition."""


class SiteError(UnlostError):
    """A living site gave no answer. Go on with other pages; the message says what came instead.

    kind: one word for counting, of `unlost.http.models.KINDS`, `robots` or `told-to-wait`.
    """

    exit_code = 4

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Say how to make it again, so that it can go from one process to another."""
        return type(self), (str(self), self.kind)


class RobotsError(SiteError):
    """A page was not asked for, since the site's robots.txt does not want that, or could not be had.

    is_for_now: whether nobody can tell before robots.txt can be had; then ask again another day.
    """

    def __init__(self, message: str, *, is_temporary: bool) -> None:
        super().__init__(message, "robots")
        self.is_temporary = is_temporary

    def __reduce__(self) -> tuple[Any, tuple[object, ...]]:
        """Say how to make it again."""
        return partial(type(self), is_temporary=self.is_temporary), (str(self),)


class SiteWaitError(SiteError):
    """A site said to come back later than one is ready to wait. Ask it again at `until`, in seconds since 1970."""

    def __init__(self, message: str, until: float) -> None:
        super().__init__(message, "told-to-wait")
        self.until = until

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Say how to make it again."""
        return type(self), (str(self), self.until)


class BusyError(UnlostError):
    """As many pages are being looked for as may be at once, and as many wait. Ask again after `seconds`."""

    exit_code = 4

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Say how to make it again, so that it can go from one process to another."""
        return type(self), (str(self), self.seconds)


class LimitError(BusyError):
    """As much was ordered in a day as may be. kind: `mail`, `client` or `address`: by what it was counted."""

    def __init__(self, message: str, seconds: float, kind: str) -> None:
        super().__init__(message, seconds)
        self.kind = kind

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Say how to make it again, so that it can go from one process to another."""
        return type(self), (str(self), self.seconds, self.kind)


class JobError(UnlostError):
    """A job is in a state in which this cannot be done with it. The message says which; look at it again."""


class LeaseLostError(JobError):
    """A worker has a job no longer: its lease ran out and another one came, or the job was cancelled. Stop at once."""


class DatabaseError(UnlostError):
    """The database of jobs cannot be reached, or not written, for now. Nothing was changed; try again later."""

    exit_code = 4


class ClusterError(UnlostError):
    """A cluster that cannot be reached, or that lost its machines more often than it tries again.

    Nothing was written under a final name: ask again when it can be had, and the work begins anew.
    """

    exit_code = 4


class OfflineError(UnlostError):
    """No archive can be reached, for a reason that lies with the local network. Nothing was sent; try again later.

    reason: what failed, such as `name resolution failed`.
    """

    exit_code = 4

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Return how to rebuild it in another process."""
        return type(self), (str(self), self.reason)


class ArchiveError(UnlostError):
    """One archive gave no answer, or not all of it. Go on with the others; what it did give is right.

    archive: its id in the registry.
    """

    exit_code = 4

    def __init__(self, message: str, archive: str) -> None:
        super().__init__(message)
        self.archive = archive

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Say how to make it again, so that it can go from one process to another."""
        return type(self), (str(self), self.archive)


class NotNowError(ArchiveError):
    """An archive is not asked for now. Ask again at `until`: earlier, nothing will be sent either.

    until: seconds since 1970.
    reason: one word: `rate`, `quota`, `told-to-wait` (it said 429 or 503), `blocked` (it refused the connection),
        `busy` (it has not answered what it was asked before).
    """

    def __init__(self, message: str, archive: str, until: float, reason: str) -> None:
        super().__init__(message, archive)
        self.until = until
        self.reason = reason

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Say how to make it again."""
        return type(self), (str(self), self.archive, self.until, self.reason)


class FailedError(ArchiveError):
    """An archive was asked and did not answer as it should. The message says what came instead.

    kind: one word for counting, of `unlost.http.models.KINDS`.
    """

    def __init__(self, message: str, archive: str, kind: str) -> None:
        super().__init__(message, archive)
        self.kind = kind

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Say how to make it again."""
        return type(self), (str(self), self.archive, self.kind)


class ExcludedError(ArchiveError):
    """An archive does not show a page, at its owner's wish or by its own rules. Asking again does not help."""


class UnsupportedError(ArchiveError):
    """An archive cannot be asked this. Ask it something that `Repository` says it can, or another archive."""


class ListCutError(ArchiveError):
    """A list ended at a cap and not at its end. What was listed is right; ask for shorter prefixes or spans of time."""
