"""How often one visitor may have archives asked what they hold: they are other people's servers."""

from collections import OrderedDict, deque

from unlost.clock import Clock

_MOST = 30  # in that time: of somebody who types an address, corrects it, and has ten sites
_SECONDS = 600.0
_MAX_CLIENTS = 10_000  # that are remembered; whoever was here longest ago is forgotten first


class LookLimit:
    """Counts look-ups by whence they come, in memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._looks: OrderedDict[str, deque[float]] = OrderedDict()

    def takes(self, client: str) -> bool:
        """Return whether somebody may have another one; if so, it is counted."""
        now = self._clock.now()
        looks = self._looks.setdefault(client, deque())
        self._looks.move_to_end(client)
        while looks and looks[0] <= now - _SECONDS:
            looks.popleft()
        if len(looks) >= _MOST:
            return False
        looks.append(now)
        if len(self._looks) > _MAX_CLIENTS:
            self._looks.popitem(last=False)
        return True
