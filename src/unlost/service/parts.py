"""What the web application is made of."""

from dataclasses import dataclass, field
from pathlib import Path

from unlost.aggregate.found import Finds
from unlost.aggregate.wish import Wish
from unlost.clock import Clock
from unlost.service.copies import Copies
from unlost.service.metrics import Metrics
from unlost.service.monitor import Monitor
from unlost.service.standing import Stands


@dataclass(frozen=True, slots=True)
class Parts:
    """What the web application is made of.

    finds: whoever finds copies. If it has `kept(uri, wish) -> Found | None`, that is tried first, and must not wait.
    copies: where `proxy` gets copies. stands: who knows how archives stand.
    root: our own address, without a slash at its end; None for the one by which each request calls us.
    published: the file of a MementoMap to publish.
    wish: which archives to ask where a request does not say.
    memory: bytes for bodies that were rendered.
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
