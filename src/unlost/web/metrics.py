"""Metrics of the service in the Prometheus text format."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import prometheus_client
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from unlost.aggregate.archive_status import ArchiveStatus
from unlost.aggregate.models import AggregateResult

METRICS_MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""Media type of the Prometheus text exposition format."""
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds
_BREAKER_VALUES = {"active": 0, "trial": 1, "dormant": 2}
# The time series `…_created` of each counter would double the size of the response.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """Counters since the start of the service, in a registry of their own.

    Every label has few values: endpoint, status, archive, outcome, reason.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = self._counter("unlost_requests", "Answers, by endpoint and status.", "endpoint", "status")
        self._seconds = self._histogram("unlost_request_seconds", "How long answers took, by endpoint.", "endpoint")
        finds = self._counter("unlost_finds", "Pages that were looked for, by whether a kept answer did.", "from_cache")
        self._finds = {True: finds.labels("true"), False: finds.labels("false")}
        self._upstream = self._counter(
            "unlost_upstream", "What came of asking archives, and why they were asked.", "archive", "outcome", "reason"
        )
        self._upstream_seconds = self._histogram("unlost_upstream_seconds", "How long archives took.", "archive")
        # `labels` takes three times as long as counting.
        self._request_counters: dict[
            tuple[str, int], tuple[prometheus_client.Counter, prometheus_client.Histogram]
        ] = {}

    def _counter(self, name: str, help_text: str, *labels: str) -> prometheus_client.Counter:
        return prometheus_client.Counter(name, help_text, labels, registry=self._registry)

    def _histogram(self, name: str, help_text: str, *labels: str) -> prometheus_client.Histogram:
        return prometheus_client.Histogram(name, help_text, labels, registry=self._registry, buckets=_BOUNDS)

    def count_request(self, endpoint: str, status: int, seconds: float) -> None:
        """Count a response."""
        counters = self._request_counters.get((endpoint, status))
        if counters is None:
            counters = self._requests.labels(endpoint, str(status)), self._seconds.labels(endpoint)
            self._request_counters[endpoint, status] = counters
        count, duration = counters
        count.inc()
        duration.observe(seconds)

    def count_lookup(self, from_cache: bool) -> None:
        """Count a look-up, and whether it was served from the cache."""
        self._finds[from_cache].inc()

    def count_upstream(self, result: AggregateResult) -> None:
        """Count the outcome of each archive. Must be called once per upstream query."""
        for report in result.reports:
            self._upstream.labels(report.archive, report.outcome, report.reason).inc()
            self._upstream_seconds.labels(report.archive).observe(report.duration_ms / 1_000)

    def render(self, statuses: Sequence[ArchiveStatus], gauges: Mapping[str, tuple[str, float]]) -> bytes:
        """Render all metrics in the Prometheus text format. `gauges` has further values with their help texts."""
        others = CollectorRegistry()
        others.register(_CurrentValues(statuses, gauges))
        return generate_latest(self._registry) + generate_latest(others)


class _CurrentValues(Collector):
    """Values that are counted elsewhere: those of archives, and `gauges`."""

    def __init__(self, statuses: Sequence[ArchiveStatus], gauges: Mapping[str, tuple[str, float]]) -> None:
        self._statuses = statuses
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of archives, then the others."""
        for name, help_text, read in _ARCHIVE_METRICS:
            metric = _metric(name, help_text, ("archive",))
            for status in self._statuses:
                value = read(status)
                if value is not None:
                    metric.add_metric((status.archive.id,), value)
            yield metric
        for name, (help_text, value) in self._gauges.items():
            metric = _metric(name, help_text, ())
            metric.add_metric((), value)
            yield metric


def _metric(name: str, help_text: str, labels: tuple[str, ...]) -> CounterMetricFamily | GaugeMetricFamily:
    family = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
    return family(name, help_text, labels=labels)


_ARCHIVE_METRICS: tuple[tuple[str, str, Callable[[ArchiveStatus], float | None]], ...] = (
    (
        "unlost_breaker_state",
        "Whether an archive is asked: 0 always, 1 to see whether it answers again, 2 not for a while.",
        lambda status: _BREAKER_VALUES[status.breaker],
    ),
    (
        "unlost_map_made_seconds",
        "When the map or filter of an archive was made, in seconds since 1970.",
        lambda status: status.map_created,
    ),
    (
        "unlost_routed_total",
        "How often the map of an archive said that it may hold a page.",
        lambda status: status.routed,
    ),
    ("unlost_routed_hits_total", "How often it did.", lambda status: status.routed_hits),
    (
        "unlost_explored_total",
        "How often an archive was asked although its map said no.",
        lambda status: status.explored,
    ),
    ("unlost_explored_hits_total", "How often the map was wrong.", lambda status: status.explored_hits),
)
