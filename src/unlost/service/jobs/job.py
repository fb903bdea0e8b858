"""A job: one recovery that somebody ordered, and how it stands."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from unlost.service.jobs.order import Order


class JobState(StrEnum):
    """How a job stands."""

    PENDING = "pending"
    """Not confirmed by mail yet."""
    QUEUED = "queued"
    PROCESSING = "processing"
    """A worker has it, or had it until its lease ran out."""
    PAUSED = "paused"
    """Whoever looks after jobs holds it; what was recovered is kept, and so is its turn."""
    COMPLETE = "complete"
    """Can be picked up."""
    FAILED = "failed"
    CANCELLED = "cancelled"
    REMOVED = "removed"
    """Its files are gone, and so is whose it was; what came of it is history."""


ENDED_STATES = (JobState.COMPLETE, JobState.FAILED, JobState.CANCELLED)
"""States that a job stays in until somebody wants something else, or its time is over."""
UNFINISHED_STATES = (JobState.PENDING, JobState.QUEUED, JobState.PROCESSING, JobState.PAUSED)


class JobStage(StrEnum):
    """What a worker is at: whoever takes a job over goes on there."""

    RECOVERING = "recovering"
    PACKING = "packing"


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far a recovery is: numbers of resources."""

    recovered: int = 0
    missing: int = 0
    queued: int = 0
    stage: JobStage = JobStage.RECOVERING

    @property
    def share(self) -> float:
        """Processed / (processed + queued), from 0 to 1; 0 as long as nothing is known."""
        processed = self.recovered + self.missing
        return processed / (processed + self.queued) if processed else 0.0


@dataclass(frozen=True, slots=True)
class JobPackage:
    """A file to pick up. form: `zip`, `tar.gz` or `wacz`. file: below the job's folder. sha256: in hex.

    start: the path in it that shows the page that was ordered; empty for a WACZ, and for packages of earlier versions.
    """

    form: str
    file: str
    size: int
    sha256: str
    start: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """One job. Times are seconds since 1970, None where something has not happened.

    turn: its place in the order of the queue: the lowest goes first, of equal ones the lowest number.
    not_before: when it may be begun: archives have daily limits, and may want to be left alone. Of a job that is
        complete, when what failed is retried in the background; 0 if it is not.
    generation: of its lease: it counts how often the job was given to a worker, and fences off all earlier ones.
    worker, lease_until: who has it, and until when that is certain. for_worker: who alone may begin it.
    crashes: how many workers were lost with it since it last got on. rounds: of recovering that brought nothing new.
    picked_up: when it was first downloaded to its end. reminders: how many were sent for the state that it is in.
    message: what there is to say of how it ended. packages: what can be picked up. figures: what came back,
        in numbers; empty unless it is complete, or was when it was removed.
    """

    number: int
    order: Order
    state: JobState
    submitted: float
    changed: float
    confirmed: float | None = None
    begun: float | None = None
    ended: float | None = None
    picked_up: float | None = None
    turn: int = 0
    not_before: float = 0.0
    generation: int = 0
    worker: str | None = None
    lease_until: float | None = None
    for_worker: str | None = None
    crashes: int = 0
    rounds: int = 0
    reminders: int = 0
    progress: JobProgress = field(default_factory=JobProgress)
    message: str = ""
    packages: tuple[JobPackage, ...] = ()
    figures: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_retried(self) -> bool:
        """Whether what failed is retried in the background, while the packages of an earlier round are offered."""
        return bool(self.packages and self.figures) and self.state in UNFINISHED_STATES

    @property
    def is_offered(self) -> bool:
        """Whether its packages can be picked up."""
        return bool(self.packages) and (self.state is JobState.COMPLETE or self.is_retried)
