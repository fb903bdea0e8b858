"""Jobs as rows of the database, and back."""

from dataclasses import asdict
from hashlib import sha256
from typing import Any

from sqlalchemy import Row

from unlost.service.jobs.job import Job, JobPackage, JobProgress, JobStage, JobState
from unlost.service.jobs.order import encode_mail_domain, order_from_json
from unlost.service.jobs.retention import RetentionPolicy

_PLAIN_COLUMNS = (
    "submitted", "changed", "confirmed", "begun", "ended", "picked_up", "turn", "not_before", "generation", "worker",
    "lease_until", "for_worker", "crashes", "rounds", "reminders", "message",
)  # fmt: skip


def hash_customer(mail: str) -> str:
    """Return what the orders of one mail address are counted by: neither letter case nor what follows a plus matters.

    >>> customer_of("Me+lost@example.org") == customer_of("me@example.org")
    True
    >>> customer_of("me@bücher.example") == customer_of("me@xn--bcher-kva.example")
    True
    """
    user, _, domain = encode_mail_domain(mail).lower().rpartition("@")
    return sha256(f"{user.partition('+')[0] or user}@{domain}".encode()).hexdigest() if mail else ""


def job_to_row(job: Job, retention: RetentionPolicy) -> dict[str, Any]:
    """Return the columns of a job, all but its number."""
    return {
        **{name: getattr(job, name) for name in _PLAIN_COLUMNS},
        "customer": hash_customer(job.order.mail),
        "customer_order": job.order.to_json(),
        "state": job.state.value,
        "recovered": job.progress.recovered,
        "missing": job.progress.missing,
        "queued": job.progress.queued,
        "stage": job.progress.stage.value,
        "packages": [asdict(each) for each in job.packages],
        "figures": dict(job.figures),
        "due": retention.next_action_time(job),
    }


def job_from_row(row: Row[Any]) -> Job:
    """Return the job in a row."""
    values = row._mapping  # noqa: SLF001  its public name in spite of the underscore
    return Job(
        number=values["number"],
        order=order_from_json(values["customer_order"]),
        state=JobState(values["state"]),
        progress=JobProgress(values["recovered"], values["missing"], values["queued"], JobStage(values["stage"])),
        packages=tuple(JobPackage(**each) for each in values["packages"]),
        figures=values["figures"],
        **{name: values[name] for name in _PLAIN_COLUMNS},
    )
