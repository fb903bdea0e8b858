"""Metrics in the Prometheus text format."""

import re

from tests.web.client import Client
from unlost.aggregate import AggregateResult, ArchiveReport
from unlost.memento import Mementos
from unlost.web import Metrics

_SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (-?[0-9.e+-]+|\+Inf|NaN)')


def samples(text: str) -> dict[str, float]:
    """Parse all samples; every sample must have a help text and a type."""
    found: dict[str, float] = {}
    kinds: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            continue
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name not in kinds
            kinds[name] = kind
            continue
        match = _SAMPLE.fullmatch(line)
        assert match, line
        name = re.sub("_(bucket|sum|count)$", "", match[1]) if match[1] not in kinds else match[1]
        assert name in kinds, line
        assert line.rpartition(" ")[0] not in found
        found[line.rpartition(" ")[0]] = float(match[3])
    assert text.endswith("\n")
    return found


def test_requests_are_counted(service: Client) -> None:
    """By endpoint and status, with durations and upstream results."""
    service.request("/timemap/link/http://partly.example/", headers={"Cache-Control": "no-cache"})
    before = samples(service.request("/metrics").text)
    for _ in range(3):
        service.request("/timemap/link/http://nothing.example/")
        service.request("/timemap/link/http://partly.example/", headers={"Cache-Control": "no-cache"})
    response = service.request("/metrics")
    after = samples(response.text)
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    name = 'unlost_requests_total{endpoint="timemap",status="404"}'
    assert after[name] - before.get(name, 0) == 3
    upstream = 'unlost_upstream_total{archive="b.org",outcome="timeout",reason="broadcast"}'
    assert after[upstream] - before[upstream] == 3
    assert (
        after['unlost_request_seconds_bucket{endpoint="timemap",le="+Inf"}']
        == (after['unlost_request_seconds_count{endpoint="timemap"}'])
    )
    assert after['unlost_finds_total{from_cache="true"}'] >= 2
    assert after['unlost_breaker_state{archive="b.org"}'] == 2
    assert after['unlost_explored_hits_total{archive="a.org"}'] == 1


def test_buckets_are_cumulative() -> None:
    """Each bucket includes the previous ones."""
    metrics = Metrics()
    for seconds in (0.0005, 0.003, 0.003, 7.0, 1_000.0):
        metrics.count_request("timemap", 200, seconds)
    found = samples(metrics.render([], {}).decode())
    counts = [found[f'unlost_request_seconds_bucket{{endpoint="timemap",le="{le}"}}'] for le in (0.001, 0.005, 10.0)]
    assert counts == [1, 3, 4]
    assert found['unlost_request_seconds_count{endpoint="timemap"}'] == 5


def test_labels_are_escaped() -> None:
    """A line break in an archive's name does not start another line."""
    metrics = Metrics()
    metrics.count_upstream(
        AggregateResult("http://a/", Mementos(), (ArchiveReport('a"\\\n', "routed", "hit"),), (), 0.0, 0.0)
    )
    assert 'archive="a\\"\\\\\\n"' in metrics.render([], {}).decode()
    samples(metrics.render([], {}).decode())
