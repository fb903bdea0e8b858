"""Whoever wants to know what archives answer: logs, hit rates, monitors, metrics."""

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from unlost.aggregate.asking import UpstreamResult
from unlost.aggregate.found import AggregateResult

_log = logging.getLogger(__name__)


class UpstreamListener(Protocol):
    """Is told at once and in the event loop, which waits: what takes long must be put aside. May raise nothing."""

    def on_upstream_result(self, result: UpstreamResult) -> None:
        """Take what came of one archive. One that was left alone, since it is dormant, is not told here."""
        ...

    def on_result(self, result: AggregateResult) -> None:
        """Take an answer for which archives were asked; those that were kept are not told."""
        ...


class ListenerGroup:
    """Tells everybody; who raises is logged, spoils nothing and is told again.

    >>> logging.disable()
    >>> Listeners([None]).heard(None)  # which has no such method
    >>> logging.disable(logging.NOTSET)
    """

    def __init__(self, listeners: Sequence[UpstreamListener]) -> None:
        self._listeners = tuple(listeners)
        self._faults = 0

    def on_upstream_result(self, result: UpstreamResult) -> None:
        """Tell what came of one archive."""
        for listener in self._listeners:
            self._notify(lambda listener=listener: listener.heard(result))  # type: ignore[misc]  # of a known type

    def on_result(self, result: AggregateResult) -> None:
        """Tell an answer."""
        for listener in self._listeners:
            self._notify(lambda listener=listener: listener.found(result))  # type: ignore[misc]

    def _notify(self, what: Callable[[], None]) -> None:
        try:
            what()
        except Exception:  # noqa: BLE001  a listener of any kind may fail in any way
            self._faults += 1
            # The 1st, 2nd, 4th, 8th …: one that always fails would fill the log.
            if self._faults & (self._faults - 1) == 0:
                _log.exception("a listener failed (for the %d. time): the answer is not affected", self._faults)
