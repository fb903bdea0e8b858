"""Statistics of all jobs."""

from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.jobs import (
    HISTOGRAM_BINS,
    IP_ADDRESS,
    MAX_TLDS,
    OTHER_TLDS,
    Job,
    JobPackage,
    JobProgress,
    JobState,
    Order,
    RunningSummary,
    compute_statistics,
    statistics_domain,
)

DAY = 86_400.0
MAY = 1_399_000_000.0  # 2014-05-02
PACKAGE = JobPackage("zip", "g1/packages/site.zip", 1, "x")


def figures(**archives: tuple[int, int]) -> dict[str, object]:
    """Return the figures of a recovery. `archives` has the recovered resources and requests of each archive."""
    return {
        "archives": {name: {"recovered": gave, "requests": requests} for name, (gave, requests) in archives.items()}
    }


def complete(number: int, url: str, counts: tuple[int, int], days: float, **archives: tuple[int, int]) -> Job:
    """Return a complete job. `counts` are its recovered and missing resources."""
    made = Job(number, Order(url, "me@example.org"), JobState.COMPLETE, MAY - 100, MAY, confirmed=MAY)
    found = replace(made, ended=MAY + days * DAY, progress=JobProgress(*counts), figures=figures(**archives))
    return replace(found, packages=(PACKAGE,))


def jobs() -> list[Job]:
    """Return jobs of every kind."""
    taken = replace(complete(1, "http://a.com/", (80, 20), 1, ia=(60, 200), other=(20, 100)), picked_up=MAY + 2 * DAY)
    waiting = complete(2, "http://b.com/", (30, 70), 3, ia=(30, 40), other=(0, 10))
    gone = replace(complete(3, "http://c.org/", (100, 0), 40, ia=(100, 60)), state=JobState.REMOVED, packages=())
    nothing = complete(4, "http://10.0.0.1/", (0, 1), 0, ia=(0, 4), never=(0, 0))
    cancelled = replace(
        nothing, number=5, state=JobState.CANCELLED, figures={}, order=Order("http://d.com/", page=True)
    )
    queued = Job(6, Order("http://e.com/", "me@example.org"), JobState.QUEUED, MAY, MAY, confirmed=MAY)
    return [taken, waiting, gone, nothing, cancelled, queued]


@pytest.fixture
def found() -> Any:  # noqa: ANN401  an object of JSON
    """Return their statistics."""
    return compute_statistics(jobs()).to_json()


def test_counts(found: Any) -> None:  # noqa: ANN401
    """All jobs by state and single pages; complete jobs count after their removal, too."""
    assert (found["ordered"], found["complete"]) == (6, 4)
    assert found["states"] == {"cancelled": 1, "complete": 3, "queued": 1, "removed": 1}
    assert found["single_pages"] == {"jobs": 1, "share": 1 / 6}
    assert found["nothing_recovered"] == {"jobs": 1, "share": 1 / 4}


def test_jobs_not_picked_up(found: Any) -> None:  # noqa: ANN401
    """Complete jobs that were never downloaded, and those of them that are still available."""
    assert found["not_picked_up"] == {"jobs": 2, "share": 2 / 3, "kept": 1}


def test_summaries_of_resources_and_days(found: Any) -> None:  # noqa: ANN401
    """Mean, minimum, maximum and deviation of complete jobs."""
    expected: dict[str, list[float]] = {
        "discovered": [100, 100, 100, 1],
        "recovered": [80, 30, 100, 0],
        "days": [1, 3, 40, 0],
    }
    expected |= {"share": [0.8, 0.3, 1, 0], "share_with_something": [0.8, 0.3, 1]}
    for name, values in expected.items():
        assert found[name] == pytest.approx(
            {"mean": fmean(values), "min": min(values), "max": max(values), "deviation": stdev(values)}
        ), name


def test_histogram_of_shares(found: Any) -> None:  # noqa: ANN401
    """Each job is in the bin of its share; a share of 1 is in the last."""
    assert [each["jobs"] for each in found["histogram"]] == [1, 0, 0, 1, 0, 0, 0, 0, 1, 1]
    assert (found["histogram"][0]["from"], found["histogram"][-1]["to"], len(found["histogram"])) == (
        0,
        1,
        HISTOGRAM_BINS,
    )


def test_jobs_by_month(found: Any) -> None:  # noqa: ANN401
    """A job may be ordered and completed in different months."""
    assert found["months"] == [
        {"month": "2014-05", "ordered": 6, "complete": 3, "discovered": 201, "recovered": 110,
         "share": pytest.approx(1.1 / 3)},
        {"month": "2014-06", "ordered": 0, "complete": 1, "discovered": 100, "recovered": 100, "share": 1.0},
    ]  # fmt: skip


def test_jobs_by_top_level_domain(found: Any) -> None:  # noqa: ANN401
    """Domains with the most jobs come first; the share is the mean of the jobs' shares."""
    assert found["tlds"] == [
        {"tld": "com", "complete": 2, "discovered": 200, "recovered": 110, "share": pytest.approx(0.55)},
        {"tld": IP_ADDRESS, "complete": 1, "discovered": 1, "recovered": 0, "share": 0},
        {"tld": "org", "complete": 1, "discovered": 100, "recovered": 100, "share": 1.0},
    ]


def test_use_of_archives(found: Any) -> None:  # noqa: ANN401
    """Jobs that queried each archive, its contribution, and its requests."""
    assert found["archives"] == [
        {"archive": "ia", "used": {"jobs": 4, "share": 1.0}, "only": {"jobs": 2, "share": 0.5}, "recovered": 190,
         "contribution": 190 / 210, "requests": 304, "requests_per_job": 76.0},
        {"archive": "other", "used": {"jobs": 2, "share": 0.5}, "only": {"jobs": 0, "share": 0.0}, "recovered": 20,
         "contribution": 20 / 210, "requests": 110, "requests_per_job": 55.0},
    ]  # fmt: skip


def test_statistics_without_jobs() -> None:
    """Means and shares are undefined."""
    found: Any = compute_statistics([]).to_json()
    assert (found["ordered"], found["months"], found["tlds"], found["archives"]) == (0, [], [], [])
    assert found["days"] == {"mean": None, "min": None, "max": None, "deviation": None}
    assert found["not_picked_up"] == {"jobs": 0, "share": None, "kept": 0}


def test_rare_top_level_domains_are_summed_up() -> None:
    """Only a limited number is listed; the others are summed up."""
    made = [complete(number, f"http://x.tld{number}/", (1, number % 2), 1) for number in range(MAX_TLDS + 4)]
    rows: Any = compute_statistics(made).to_json()["tlds"]
    assert len(rows) == MAX_TLDS + 1
    assert rows[-1]["tld"] == OTHER_TLDS
    assert sum(row["complete"] for row in rows) == len(made)
    assert sum(row["discovered"] for row in rows) == sum(1 + number % 2 for number in range(len(made)))
    assert rows[-1]["share"] == pytest.approx(0.75)
    assert statistics_domain("http://[::1") == ""


@given(st.lists(st.floats(0, 1e9), min_size=2))
def test_running_summary_equals_batch_computation(values: list[float]) -> None:
    """A running summary equals the statistics module's results."""
    found = RunningSummary()
    for value in values:
        found.add(value)
    assert found.mean == pytest.approx(fmean(values), abs=1e-6)
    assert found.deviation == pytest.approx(stdev(values), abs=1e-3)
    assert (found.count, found.minimum, found.maximum) == (len(values), min(values), max(values))
