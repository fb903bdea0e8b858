"""Jobs as rows of the database, and back."""

from dataclasses import asdict
from hashlib import sha256
from typing import Any

from sqlalchemy import Row

from unlost.service.jobs.job import Job, Package, Progress, Stage, State
from unlost.service.jobs.order import ascii_mail, kept_order
from unlost.service.jobs.retention import Terms

_PLAIN = (
    "submitted", "changed", "confirmed", "begun", "ended", "picked_up", "turn", "not_before", "generation", "worker",
    "lease_until", "for_worker", "crashes", "rounds", "reminders", "message",
)  # fmt: skip


def customer_of(mail: str) -> str:
    """Return what the orders of one mail address are counted by: neither letter case nor what follows a plus matters.

    >>> customer_of("Me+lost@example.org") == customer_of("me@example.org")
    True
    >>> customer_of("me@bücher.example") == customer_of("me@xn--bcher-kva.example")
    True
    """
    user, _, domain = ascii_mail(mail).lower().rpartition("@")
    return sha256(f"{user.partition('+')[0] or user}@{domain}".encode()).hexdigest() if mail else ""


def values_of(job: Job, terms: Terms) -> dict[str, Any]:
    """Return the columns of a job, all but its number."""
    return {
        **{name: getattr(job, name) for name in _PLAIN},
        "customer": customer_of(job.order.mail),
        "customer_order": job.order.to_json(),
        "state": job.state.value,
        "recovered": job.progress.recovered,
        "missing": job.progress.missing,
        "queued": job.progress.queued,
        "stage": job.progress.stage.value,
        "packages": [asdict(each) for each in job.packages],
        "figures": dict(job.figures),
        "due": terms.next(job),
    }


def job_of(row: Row[Any]) -> Job:
    """Return the job in a row."""
    values = row._mapping  # noqa: SLF001  its public name in spite of the underscore
    return Job(
        number=values["number"],
        order=kept_order(values["customer_order"]),
        state=State(values["state"]),
        progress=Progress(values["recovered"], values["missing"], values["queued"], Stage(values["stage"])),
        packages=tuple(Package(**each) for each in values["packages"]),
        figures=values["figures"],
        **{name: values[name] for name in _PLAIN},
    )
