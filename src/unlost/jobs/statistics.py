"""Statistics of all jobs, computed in one pass over the history."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit

from unlost.jobs.models import Job
from unlost.jobs.serializers import format_time

HISTOGRAM_BINS = 10
"""Bins of the histogram of shares, each 0.1 wide. The last includes 1."""
MAX_TLDS = 50
"""Maximum number of top-level domains that are listed; the others are summed up. Orders may contain invalid ones."""
IP_ADDRESS, OTHER_TLDS = "(address)", "(others)"
"""Labels of sites with an IP address, and of all top-level domains beyond `MAX_TLDS`."""

_DAY = 86_400.0


@dataclass(slots=True)
class RunningSummary:
    """Count, mean, range and standard deviation of a stream of values.

    >>> summary = RunningSummary()
    >>> for value in (1, 2, 6):
    ...     summary.add(value)
    >>> (summary.mean, summary.minimum, summary.maximum, round(summary.deviation or 0, 3))
    (3.0, 1, 6, 2.646)
    """

    count: int = 0
    mean: float = 0.0
    minimum: float | None = None
    maximum: float | None = None
    _squares: float = 0.0  # squared distances from the mean, by Welford's method, which is numerically stable

    def add(self, value: float) -> None:
        """Add a value."""
        self.count += 1
        before = value - self.mean
        self.mean += before / self.count
        self._squares += before * (value - self.mean)
        self.minimum = value if self.minimum is None else min(self.minimum, value)
        self.maximum = value if self.maximum is None else max(self.maximum, value)

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation; None for fewer than two values."""
        return math.sqrt(self._squares / (self.count - 1)) if self.count > 1 else None

    def to_json(self) -> dict[str, float | None]:
        """Return the summary as a JSON object; undefined values are None."""
        mean = self.mean if self.count else None
        return {"mean": mean, "min": self.minimum, "max": self.maximum, "deviation": self.deviation}


@dataclass(slots=True)
class JobGroup:
    """Totals of a group of complete jobs.

    Attributes:
        ordered: Number of jobs, complete or not.
        complete: Number of complete jobs.
        discovered: Resources that were discovered.
        recovered: Resources that were recovered.
        shares: Recovered share of each job.
    """

    ordered: int = 0
    complete: int = 0
    discovered: int = 0
    recovered: int = 0
    shares: RunningSummary = field(default_factory=RunningSummary)

    def add(self, recovered: int, discovered: int) -> None:
        """Add a complete job."""
        self.complete += 1
        self.discovered += discovered
        self.recovered += recovered
        self.shares.add(_share(recovered, discovered) or 0.0)

    def to_json(self) -> dict[str, object]:
        """Return the totals as a JSON object, with the mean of the jobs' shares."""
        return {
            "complete": self.complete,
            "discovered": self.discovered,
            "recovered": self.recovered,
            "share": self.shares.to_json()["mean"],
        }


@dataclass(slots=True)
class ArchiveUsage:
    """Use of an archive by complete jobs.

    Attributes:
        jobs: Jobs that queried the archive.
        only: Jobs for which no other archive had captures.
        recovered: Resources recovered from the archive.
        requests: Requests to the archive.
    """

    jobs: int = 0
    only: int = 0
    recovered: int = 0
    requests: int = 0


@dataclass(slots=True)
class JobStatistics:
    """Statistics of all jobs.

    Attributes:
        ordered: All jobs.
        complete: Complete jobs.
        single_pages: Orders of a single page.
        nothing_recovered: Complete jobs without recovered resources.
        not_picked_up: Complete jobs with recovered resources that were never downloaded.
        still_available: Those of them that can still be downloaded.
        states: Jobs by state.
        discovered: Discovered resources per complete job.
        recovered: Recovered resources per complete job.
        shares: Recovered share of the discovered resources.
        shares_with_something: The same, without jobs that recovered nothing.
        days: Days from confirmation to completion.
        histogram: Complete jobs by recovered share, in `HISTOGRAM_BINS` bins.
        months: Jobs by month (such as `2014-05`, UTC) of their order and of their completion.
        tlds: Complete jobs by top-level domain.
        archives: Use of archives, by id.
    """

    ordered: int = 0
    complete: int = 0
    single_pages: int = 0
    nothing_recovered: int = 0
    not_picked_up: int = 0
    still_available: int = 0
    states: Counter[str] = field(default_factory=Counter)
    discovered: RunningSummary = field(default_factory=RunningSummary)
    recovered: RunningSummary = field(default_factory=RunningSummary)
    shares: RunningSummary = field(default_factory=RunningSummary)
    shares_with_something: RunningSummary = field(default_factory=RunningSummary)
    days: RunningSummary = field(default_factory=RunningSummary)
    histogram: list[int] = field(default_factory=lambda: [0] * HISTOGRAM_BINS)
    months: dict[str, JobGroup] = field(default_factory=dict)
    tlds: dict[str, JobGroup] = field(default_factory=dict)
    archives: dict[str, ArchiveUsage] = field(default_factory=dict)

    def count(self, job: Job) -> None:
        """Add a job."""
        self.ordered += 1
        self.states[job.state.value] += 1
        self.single_pages += job.order.page
        self._month(job.submitted).ordered += 1
        if job.figures and job.ended is not None:  # failed and cancelled jobs have no figures
            self._count_complete(job, job.ended)

    def _count_complete(self, job: Job, ended: float) -> None:
        progress = job.progress
        recovered, discovered = progress.recovered, progress.recovered + progress.missing + progress.queued
        share = _share(recovered, discovered) or 0.0
        self.complete += 1
        self.discovered.add(discovered)
        self.recovered.add(recovered)
        self.shares.add(share)
        self.histogram[min(HISTOGRAM_BINS - 1, int(share * HISTOGRAM_BINS))] += 1
        self.days.add(max(0.0, ended - (job.confirmed or job.submitted)) / _DAY)
        self._month(ended).add(recovered, discovered)
        self.tlds.setdefault(statistics_domain(job.order.url), JobGroup()).add(recovered, discovered)
        self._count_archive_usage(job.figures)
        if not recovered:
            self.nothing_recovered += 1
            return
        self.shares_with_something.add(share)
        if job.picked_up is None:
            self.not_picked_up += 1
            self.still_available += bool(job.packages)

    def _month(self, seconds: float) -> JobGroup:
        return self.months.setdefault((format_time(seconds) or "")[:7], JobGroup())

    def _count_archive_usage(self, figures: Mapping[str, object]) -> None:
        counts = dict(_archive_usage(figures))
        contributors = [name for name, (recovered, _) in counts.items() if recovered]
        for name, (recovered, requests) in counts.items():
            usage = self.archives.setdefault(name, ArchiveUsage())
            usage.jobs += 1
            usage.only += contributors == [name]
            usage.recovered += recovered
            usage.requests += requests

    def to_json(self) -> dict[str, object]:
        """Return the statistics as a JSON object, with lists in display order. Shares of zero jobs are None."""
        with_something = self.complete - self.nothing_recovered
        return {
            "ordered": self.ordered,
            "complete": self.complete,
            "states": dict(sorted(self.states.items())),
            "single_pages": _job_share(self.single_pages, self.ordered),
            "nothing_recovered": _job_share(self.nothing_recovered, self.complete),
            "not_picked_up": {**_job_share(self.not_picked_up, with_something), "kept": self.still_available},
            "discovered": self.discovered.to_json(),
            "recovered": self.recovered.to_json(),
            "days": self.days.to_json(),
            "share": self.shares.to_json(),
            "share_with_something": self.shares_with_something.to_json(),
            "histogram": [
                {"from": bin_ / HISTOGRAM_BINS, "to": (bin_ + 1) / HISTOGRAM_BINS, **_job_share(jobs, self.complete)}
                for bin_, jobs in enumerate(self.histogram)
            ],
            "months": [
                {"month": name, "ordered": group.ordered, **group.to_json()}
                for name, group in sorted(self.months.items())
            ],
            "tlds": [{"tld": name, **group.to_json()} for name, group in self._largest_tlds()],
            "archives": [self._archive(name) for name in sorted(self.archives, key=self._contribution_key)],
        }

    def _largest_tlds(self) -> list[tuple[str, JobGroup]]:
        ordered = sorted(self.tlds.items(), key=lambda each: (-each[1].complete, each[0]))
        rest = [group for _, group in ordered[MAX_TLDS:]]
        if not rest:
            return ordered
        jobs = sum(group.complete for group in rest)
        mean = sum(group.shares.mean * group.complete for group in rest) / jobs
        discovered, recovered = sum(group.discovered for group in rest), sum(group.recovered for group in rest)
        return [*ordered[:MAX_TLDS], (OTHER_TLDS, JobGroup(0, jobs, discovered, recovered, RunningSummary(jobs, mean)))]

    def _contribution_key(self, name: str) -> tuple[int, str]:
        return -self.archives[name].recovered, name

    def _archive(self, name: str) -> dict[str, object]:
        usage = self.archives[name]
        return {
            "archive": name,
            "used": _job_share(usage.jobs, self.complete),
            "only": _job_share(usage.only, self.complete),
            "recovered": usage.recovered,
            "contribution": _share(usage.recovered, sum(each.recovered for each in self.archives.values())),
            "requests": usage.requests,
            "requests_per_job": usage.requests / usage.jobs,
        }


def compute_statistics(jobs: Iterable[Job]) -> JobStatistics:
    """Compute the statistics of all jobs, including removed ones."""
    statistics = JobStatistics()
    for job in jobs:
        statistics.count(job)
    return statistics


def statistics_domain(url: str) -> str:
    """Return the top-level domain of a URL.

    >>> statistics_domain("http://www.example.co.uk:8080/")
    'uk'
    >>> statistics_domain("http://10.0.0.1/"), statistics_domain("http://[::1]/")
    ('(address)', '(address)')
    """
    host = ""
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
        ip_address(host)
    except ValueError:
        return host.rpartition(".")[2]
    return IP_ADDRESS


def _archive_usage(figures: Mapping[str, object]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield each archive that was queried, with its recovered resources and requests."""
    archives = figures.get("archives")
    for name, counts in archives.items() if isinstance(archives, Mapping) else ():
        recovered, requests = int(counts.get("recovered", 0)), int(counts.get("requests", 0))
        if recovered or requests:
            yield str(name), (recovered, requests)


def _job_share(count: int, total: int) -> dict[str, object]:
    return {"jobs": count, "share": _share(count, total)}


def _share(count: int, total: int) -> float | None:
    return count / total if total else None
