"""Passes on what archives answered, to whoever counts and whoever watches."""

from unlost.aggregate.found import Found
from unlost.service.metrics import Metrics
from unlost.service.monitor import Monitor


class Telling:
    """A listener of the aggregator: it is told of every answer for which archives were asked, once."""

    def __init__(self, metrics: Metrics, monitor: Monitor) -> None:
        self._metrics = metrics
        self._monitor = monitor

    def heard(self, asked: object) -> None:
        """Do nothing: what came of single archives is told with the whole answer."""

    def found(self, found: Found) -> None:
        """Count the outcome of every archive, and publish it without the URL: what users look up is private."""
        self._metrics.asked(found)
        if not self._monitor.readers:
            return
        for report in found.reports:
            self._monitor.publish(
                "upstream",
                archive=report.archive,
                outcome=report.outcome,
                reason=report.reason,
                mementos=report.mementos,
                milliseconds=round(report.duration_ms, 3),
            )
