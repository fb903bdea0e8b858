"""Passes on what archives answered, to whoever counts and whoever watches."""

from unlost.aggregate.found import AggregateResult
from unlost.service.metrics import Metrics
from unlost.service.monitor import EventStream


class MetricsListener:
    """A listener of the aggregator: it is told of every answer for which archives were asked, once."""

    def __init__(self, metrics: Metrics, events: EventStream) -> None:
        self._metrics = metrics
        self._events = events

    def on_upstream_result(self, result: object) -> None:
        """Do nothing: what came of single archives is told with the whole answer."""

    def on_result(self, result: AggregateResult) -> None:
        """Count the outcome of every archive, and publish it without the URL: what users look up is private."""
        self._metrics.count_upstream(result)
        if not self._events.readers:
            return
        for report in result.reports:
            self._events.publish(
                "upstream",
                archive=report.archive,
                outcome=report.outcome,
                reason=report.reason,
                mementos=report.mementos,
                milliseconds=round(report.duration_ms, 3),
            )
