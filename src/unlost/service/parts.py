"""What the web application is made of."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from unlost.aggregate.found import MementoFinder
from unlost.aggregate.wish import RoutingOptions
from unlost.clock import Clock
from unlost.service.copies import ReplaySource
from unlost.service.metrics import Metrics
from unlost.service.monitor import EventStream
from unlost.service.standing import ArchiveStatusProvider

if TYPE_CHECKING:
    from unlost.service.jobs_desk import JobService


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """What the web application is made of.

    finds: whoever finds copies. If it has `kept(uri, wish) -> Found | None`, that is tried first, and must not wait.
    copies: where `proxy` gets copies. stands: who knows how archives stand.
    root: our own address, without a slash at its end; None for the one by which each request calls us.
    published: the file of a MementoMap to publish.
    wish: which archives to ask where a request does not say.
    memory: bytes for bodies that were rendered.
    by_page: whether requisites of a page are first asked of the archive that had the page.
    desk: where recoveries are ordered; None if they are not.
    """

    finder: MementoFinder
    replay_source: ReplaySource
    archive_status: ArchiveStatusProvider
    clock: Clock
    metrics: Metrics = field(default_factory=Metrics)
    events: EventStream = field(default_factory=EventStream)
    root: str | None = None
    published_map: Path | None = None
    default_options: RoutingOptions = field(default_factory=RoutingOptions)
    memory: int = 1 << 24
    job_service: "JobService | None" = None
    routes_by_referer: bool = False
