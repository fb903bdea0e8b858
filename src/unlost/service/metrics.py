"""Counts what was asked, what was answered and how long it took, and tells it in the text format of Prometheus."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from unlost.aggregate.found import AggregateResult
from unlost.service.standing import ArchiveStatus

METRICS_MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds
_BREAKER_VALUES = {"active": 0, "trial": 1, "dormant": 2}

MetricLabels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Histogram:
    """How many took how long. counts: by the first bound that is not less, then those beyond all."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(_BOUNDS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(_BOUNDS, seconds)] += 1
        self.total += seconds

    def lines(self, name: str, labels: MetricLabels) -> Iterator[str]:
        below = 0
        for bound, count in zip((*map(str, _BOUNDS), "+Inf"), self.counts, strict=True):
            below += count
            yield _line(f"{name}_bucket", (*labels, ("le", bound)), below)
        yield _line(f"{name}_sum", labels, round(self.total, 6))
        yield _line(f"{name}_count", labels, below)


class Metrics:
    """What happened since the service began. Every label has few values: endpoints, statuses, archives, outcomes."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._seconds: dict[str, _Histogram] = {}
        self._upstream: Counter[tuple[str, str, str]] = Counter()
        self._upstream_seconds: dict[str, _Histogram] = {}
        self._finds: Counter[bool] = Counter()

    def count_request(self, endpoint: str, status: int, seconds: float) -> None:
        """Count one answer of ours."""
        self._requests[endpoint, status] += 1
        histogram = self._seconds.get(endpoint)
        if histogram is None:
            histogram = self._seconds[endpoint] = _Histogram()
        histogram.add(seconds)

    def count_lookup(self, from_cache: bool) -> None:
        """Count one page that was looked for, and whether what was kept was enough."""
        self._finds[from_cache] += 1

    def count_upstream(self, found: AggregateResult) -> None:
        """Count what came of every archive. To be called once for each time that archives were asked."""
        for report in found.reports:
            self._upstream[report.archive, report.outcome, report.reason] += 1
            self._upstream_seconds.setdefault(report.archive, _Histogram()).add(report.duration_ms / 1_000)

    def render(self, statuses: Sequence[ArchiveStatus], gauges: Mapping[str, tuple[str, float]]) -> bytes:
        """Return all of it. gauges: other numbers, with what each means."""
        return ("\n".join(self._lines(statuses, gauges)) + "\n").encode()

    def _lines(self, statuses: Sequence[ArchiveStatus], gauges: Mapping[str, tuple[str, float]]) -> Iterator[str]:
        yield from _head("unlost_requests_total", "counter", "Answers, by endpoint and status.")
        for (endpoint, status), count in sorted(self._requests.items()):
            yield _line("unlost_requests_total", (("endpoint", endpoint), ("status", str(status))), count)
        yield from _head("unlost_request_seconds", "histogram", "How long answers took, by endpoint.")
        for endpoint, histogram in sorted(self._seconds.items()):
            yield from histogram.lines("unlost_request_seconds", (("endpoint", endpoint),))
        yield from _head("unlost_finds_total", "counter", "Pages that were looked for, by whether a kept answer did.")
        for kept in (True, False):
            yield _line("unlost_finds_total", (("from_cache", str(kept).lower()),), self._finds[kept])
        yield from _head("unlost_upstream_total", "counter", "What came of asking archives, and why they were asked.")
        for (archive, outcome, reason), count in sorted(self._upstream.items()):
            labels = (("archive", archive), ("outcome", outcome), ("reason", reason))
            yield _line("unlost_upstream_total", labels, count)
        yield from _head("unlost_upstream_seconds", "histogram", "How long archives took.")
        for archive, histogram in sorted(self._upstream_seconds.items()):
            yield from histogram.lines("unlost_upstream_seconds", (("archive", archive),))
        yield from _archive_lines(statuses)
        for name, (meaning, value) in gauges.items():
            yield from _head(name, "counter" if name.endswith("_total") else "gauge", meaning)
            yield _line(name, (), value)


def _archive_lines(statuses: Sequence[ArchiveStatus]) -> Iterator[str]:
    columns: tuple[tuple[str, str, str, Iterable[tuple[str, float | None]]], ...] = (
        (
            "unlost_breaker_state",
            "gauge",
            "Whether an archive is asked: 0 always, 1 to see whether it answers again, 2 not for a while.",
            ((each.archive.id, _BREAKER_VALUES[each.breaker]) for each in statuses),
        ),
        (
            "unlost_map_made_seconds",
            "gauge",
            "When the map or filter of an archive was made, in seconds since 1970.",
            ((each.archive.id, each.map_created) for each in statuses),
        ),
        (
            "unlost_routed_total",
            "counter",
            "How often the map of an archive said that it may hold a page.",
            ((each.archive.id, each.routed) for each in statuses),
        ),
        (
            "unlost_routed_hits_total",
            "counter",
            "How often it did.",
            ((each.archive.id, each.routed_hits) for each in statuses),
        ),
        (
            "unlost_explored_total",
            "counter",
            "How often an archive was asked although its map said no.",
            ((each.archive.id, each.explored) for each in statuses),
        ),
        (
            "unlost_explored_hits_total",
            "counter",
            "How often the map was wrong.",
            ((each.archive.id, each.explored_hits) for each in statuses),
        ),
    )
    for name, kind, meaning, values in columns:
        yield from _head(name, kind, meaning)
        for archive, value in values:
            if value is not None:
                yield _line(name, (("archive", archive),), value)


def _head(name: str, kind: str, meaning: str) -> tuple[str, str]:
    return f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"


def _line(name: str, labels: MetricLabels, value: float) -> str:
    inner = ",".join(f'{label}="{_escape_label(text)}"' for label, text in labels)
    return f"{name}{{{inner}}} {value}" if inner else f"{name} {value}"


def _escape_label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
