"""Whether a site is lost, by how it looked at one visit after the other."""

from collections.abc import Sequence
from dataclasses import dataclass

from unlost.measure.watching.looking import Look

VISITS = 2
"""So many visits must find a site gone before it is called lost."""

CONFIRM_SECONDS = 20 * 3600.0
"""And so long must the first of them be ago: an outage of some hours is none for a watch that looks every ten minutes,
either. A little less than a day, so that it is the second of daily visits, whenever on the day they come."""

WAITS = 7
"""A site that only says, at so many visits and for as many days, that it is away for a while, is lost, too."""

_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Seen:
    """How a site looked at one visit. time: in seconds since 1970; None if the clock cannot be believed."""

    visit: int
    time: float | None
    look: Look
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Loss:
    """That a site is lost. kind: how it looked at last. since: the first visit at which it was gone."""

    kind: Look
    reason: str
    since: int


def loss(seen: Sequence[Seen]) -> Loss | None:
    """Return that a site is lost, by its visits in their order; None if it is not, or that is not certain yet.

    A fine look, or one that was not allowed, begins everything anew; one at which the site says to wait neither counts
    nor makes it good.

    >>> looks = [Seen(1, 0.0, Look.FINE), Seen(2, 9e4, Look.PARKED, "for sale"), Seen(3, 18e4, Look.PARKED, "for sale")]
    >>> loss(looks[:2]), loss(looks)
    (None, Loss(kind=<Look.PARKED: 'parked'>, reason='for sale', since=2))
    """
    run = _run(seen)
    gone = [each for each in run if each.look.is_gone]
    if len(gone) >= VISITS and _is_apart(gone[0], run[-1], CONFIRM_SECONDS):
        return Loss(gone[-1].look, gone[-1].reason, gone[0].visit)
    if len(run) >= WAITS and _is_apart(run[0], run[-1], (WAITS - 1) * _DAY - (_DAY - CONFIRM_SECONDS)):
        return Loss(Look.UNRESPONSIVE, f"it has said for days to wait: {run[-1].reason}", run[0].visit)
    return None


def _run(seen: Sequence[Seen]) -> Sequence[Seen]:
    """Return the visits since the last fine look."""
    for place in range(len(seen) - 1, -1, -1):
        if seen[place].look in (Look.FINE, Look.UNSEEN):
            return seen[place + 1 :]
    return seen


def _is_apart(first: Seen, last: Seen, seconds: float) -> bool:
    """Return whether so much time lies between two visits; where the clock cannot be believed, their order must do."""
    if first.time is None or last.time is None:
        return True
    return last.time - first.time >= seconds
