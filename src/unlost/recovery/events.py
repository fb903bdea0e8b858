"""Events of a recovery. `unlost recover --json` prints them, and `unlost.recover` passes them to `on_event`.

In all events, archive ids, URLs and dates of captures are named `archive`, `uri` and `datetime`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import ClassVar

from unlost.recovery.state.resources import ResourceStatus


@dataclass(frozen=True, slots=True)
class RecoveryEvent:
    """Base class of events.

    Attributes:
        event: Name of the event in JSON.
    """

    event: ClassVar[str] = ""

    def to_json(self) -> dict[str, object]:
        """Return the event as a JSON object, without optional fields that are None."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        optional = {each.name for each in fields(self) if each.default is None}
        return {
            "event": self.event,
            **{name: value for name, value in values.items() if value is not None or name not in optional},
        }


@dataclass(frozen=True, slots=True)
class ListingEnded(RecoveryEvent):
    """An archive listed what it holds of the site, or failed to.

    Attributes:
        archive: The archive.
        prefix: The URL prefix that was listed.
        outcome: `done`, `cut`, `unsupported`, `excluded`, `failed` or `not-now`.
        captures: Number of captures listed.
        message: What went wrong; None if nothing did.
    """

    event: ClassVar[str] = "listed"
    archive: str
    prefix: str
    outcome: str
    captures: int
    message: str | None = None


@dataclass(frozen=True, slots=True)
class ResourceRecovered(RecoveryEvent):
    """A resource was recovered.

    Attributes:
        uri: URL of the capture.
        archive: Id of the archive.
        datetime: Datetime of the capture, 14 digits.
        doubtful: Whether the quality classifier rejected all captures; this is the best of them.
    """

    event: ClassVar[str] = "recovered"
    uri: str
    archive: str | None
    datetime: str
    doubtful: bool


@dataclass(frozen=True, slots=True)
class ResourceSubstituted(RecoveryEvent):
    """A resource is replaced by one that differs only in its query.

    Attributes:
        uri: URL of the resource.
        by: URL of its substitute.
    """

    event: ClassVar[str] = "substituted"
    uri: str
    by: str


@dataclass(frozen=True, slots=True)
class ResourceMissing(RecoveryEvent):
    """A resource is missing.

    Attributes:
        uri: Its URL.
        reason: `not-held`, `rejected` (all captures by the quality classifier), `no-good-copy` (only errors, redirects
            to other sites, empty ones), `excluded` or `failed`.
    """

    event: ClassVar[str] = "missing"
    uri: str
    reason: str


@dataclass(frozen=True, slots=True)
class CaptureRejected(RecoveryEvent):
    """The quality classifier rejected a capture.

    Attributes:
        uri: URL of the capture.
        archive: Id of the archive.
        datetime: Datetime of the capture, 14 digits.
        verdict: The `VerdictKind` value.
        reason: Explanation in English.
    """

    event: ClassVar[str] = "rejected"
    uri: str
    archive: str | None
    datetime: str
    verdict: str
    reason: str


@dataclass(frozen=True, slots=True)
class CaptureFailed(RecoveryEvent):
    """A capture could not be fetched or stored; others are tried."""

    event: ClassVar[str] = "failed"
    uri: str
    archive: str
    message: str


@dataclass(frozen=True, slots=True)
class ArchiveSuspended(RecoveryEvent):
    """An archive is not queried for a while.

    Attributes:
        archive: The archive.
        until: When it may be queried again, in seconds since 1970.
        reason: Error code.
    """

    event: ClassVar[str] = "waiting"
    archive: str
    until: float
    reason: str


@dataclass(frozen=True, slots=True)
class ProgressCounted(RecoveryEvent):
    """The number of resources by status, reported about every second."""

    event: ClassVar[str] = "progress"
    counts: Mapping[ResourceStatus, int]

    def to_json(self) -> dict[str, object]:
        """Return the event with one field for each status."""
        return {"event": self.event, **{status.value: count for status, count in self.counts.items()}}


@dataclass(frozen=True, slots=True)
class StartPageMissing(RecoveryEvent):
    """No archive has the start page or anything that it links to, so everything listed is fetched."""

    event: ClassVar[str] = "no-start"
    uri: str


@dataclass(frozen=True, slots=True)
class CaseVariantsMerged(RecoveryEvent):
    """The site's server ignores letter case.

    Attributes:
        merged: Number of URLs that were merged into others.
    """

    event: ClassVar[str] = "case-insensitive"
    merged: int


@dataclass(frozen=True, slots=True)
class WarcBytesLost(RecoveryEvent):
    """A crash truncated a WARC file. The lost captures are requested again.

    Attributes:
        file: Name of the file.
        bytes: Number of bytes lost.
    """

    event: ClassVar[str] = "lost"
    file: str
    bytes: int


__all__ = [
    "ArchiveSuspended", "CaptureFailed", "CaptureRejected", "CaseVariantsMerged", "ListingEnded", "ProgressCounted",
    "RecoveryEvent", "ResourceMissing", "ResourceRecovered", "ResourceSubstituted", "StartPageMissing", "WarcBytesLost",
]  # fmt: skip
EVENT_TYPES: tuple[type[RecoveryEvent], ...] = (
    ListingEnded, ResourceRecovered, ResourceSubstituted, ResourceMissing, CaptureRejected, CaptureFailed,
    ArchiveSuspended, ProgressCounted, StartPageMissing, CaseVariantsMerged, WarcBytesLost,
)  # fmt: skip
EventListener = Callable[[RecoveryEvent], None]
"""Receives the events of a recovery. An exception that it raises ends the run."""


def ignore_event(_event: RecoveryEvent) -> None:
    """Discard an event."""
