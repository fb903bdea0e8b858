"""Whether a site is lost, by how it looked at one visit after the other."""

from collections.abc import Sequence
from dataclasses import dataclass

from unlost.measure.watching.looking import SiteHealth

MIN_GONE_VISITS = 2
"""So many visits must find a site gone before it is called lost."""

CONFIRM_SECONDS = 20 * 3600.0
"""And so long must the first of them be ago: an outage of some hours is none for a watch that looks every ten minutes,
either. A little less than a day, so that it is the second of daily visits, whenever on the day they come."""

MAX_WAIT_VISITS = 7
"""A site that only says, at so many visits and for as many days, that it is away for a while, is lost, too."""

_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class VisitHealth:
    """How a site looked at one visit. time: in seconds since 1970; None if the clock cannot be believed."""

    visit: int
    time: float | None
    health: SiteHealth
    reason: str = ""


@dataclass(frozen=True, slots=True)
class DetectedLoss:
    """That a site is lost. kind: how it looked at last. since: the first visit at which it was gone."""

    kind: SiteHealth
    reason: str
    since: int


def detect_loss(visits: Sequence[VisitHealth]) -> DetectedLoss | None:
    """Return that a site is lost, by its visits in their order; None if it is not, or that is not certain yet.

    A fine look, or one that was not allowed, begins everything anew; one at which the site says to wait neither counts
    nor makes it good.

    >>> looks = [Seen(1, 0.0, Look.FINE), Seen(2, 9e4, Look.PARKED, "for sale"), Seen(3, 18e4, Look.PARKED, "for sale")]
    >>> loss(looks[:2]), loss(looks)
    (None, Loss(kind=<Look.PARKED: 'parked'>, reason='for sale', since=2))
    """
    run = _visits_since_fine(visits)
    gone = [each for each in run if each.health.is_gone]
    if len(gone) >= MIN_GONE_VISITS and _is_apart(gone[0], run[-1], CONFIRM_SECONDS):
        return DetectedLoss(gone[-1].health, gone[-1].reason, gone[0].visit)
    if len(run) >= MAX_WAIT_VISITS and _is_apart(
        run[0], run[-1], (MAX_WAIT_VISITS - 1) * _DAY - (_DAY - CONFIRM_SECONDS)
    ):
        return DetectedLoss(SiteHealth.UNRESPONSIVE, f"it has said for days to wait: {run[-1].reason}", run[0].visit)
    return None


def _visits_since_fine(seen: Sequence[VisitHealth]) -> Sequence[VisitHealth]:
    """Return the visits since the last fine look."""
    for place in range(len(seen) - 1, -1, -1):
        if seen[place].health in (SiteHealth.FINE, SiteHealth.UNSEEN):
            return seen[place + 1 :]
    return seen


def _is_apart(first: VisitHealth, last: VisitHealth, seconds: float) -> bool:
    """Return whether so much time lies between two visits; where the clock cannot be believed, their order must do."""
    if first.time is None or last.time is None:
        return True
    return last.time - first.time >= seconds
