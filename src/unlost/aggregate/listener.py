"""Whoever wants to know what archives answer: logs, hit rates, monitors, metrics."""

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from unlost.aggregate.asking import Asked
from unlost.aggregate.found import Found

_log = logging.getLogger(__name__)


class Listener(Protocol):
    """Is told at once and in the event loop, which waits: what takes long must be put aside. May raise nothing."""

    def heard(self, asked: Asked) -> None:
        """Take what came of one archive. One that was left alone, since it is dormant, is not told here."""
        ...

    def found(self, found: Found) -> None:
        """Take an answer for which archives were asked; those that were kept are not told."""
        ...


class Listeners:
    """Tells everybody; who raises is logged, spoils nothing and is told again.

    >>> logging.disable()
    >>> Listeners([None]).heard(None)  # which has no such method
    >>> logging.disable(logging.NOTSET)
    """

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._listeners = tuple(listeners)
        self._faults = 0

    def heard(self, asked: Asked) -> None:
        """Tell what came of one archive."""
        for listener in self._listeners:
            self._tell(lambda listener=listener: listener.heard(asked))  # type: ignore[misc]  # of a known type

    def found(self, found: Found) -> None:
        """Tell an answer."""
        for listener in self._listeners:
            self._tell(lambda listener=listener: listener.found(found))  # type: ignore[misc]

    def _tell(self, what: Callable[[], None]) -> None:
        try:
            what()
        except Exception:  # noqa: BLE001  a listener of any kind may fail in any way
            self._faults += 1
            # The 1st, 2nd, 4th, 8th …: one that always fails would fill the log.
            if self._faults & (self._faults - 1) == 0:
                _log.exception("a listener failed (for the %d. time): the answer is not affected", self._faults)
