"""What the web application is made of."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from unlost.aggregate.found import Finds
from unlost.aggregate.wish import Wish
from unlost.clock import Clock
from unlost.service.copies import Copies
from unlost.service.metrics import Metrics
from unlost.service.monitor import Monitor
from unlost.service.standing import Stands

if TYPE_CHECKING:
    from unlost.service.jobs_desk import Desk


@dataclass(frozen=True, slots=True)
class Parts:
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

    finds: Finds
    copies: Copies
    stands: Stands
    clock: Clock
    metrics: Metrics = field(default_factory=Metrics)
    monitor: Monitor = field(default_factory=Monitor)
    root: str | None = None
    published: Path | None = None
    wish: Wish = field(default_factory=Wish)
    memory: int = 1 << 24
    desk: "Desk | None" = None
    by_page: bool = False
