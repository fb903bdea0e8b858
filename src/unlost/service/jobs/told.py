"""A job as JSON tells it: to its owner, and with more to those who look after all jobs."""

from unlost.dates import from_epoch, to_iso
from unlost.service.jobs.job import Job, State
from unlost.service.jobs.packages import MEDIA_TYPES
from unlost.service.jobs.retention import Terms
from unlost.service.jobs.store import WorkerSeen


def iso(seconds: float | None) -> str | None:
    """Return a time as ISO 8601 in UTC, to the second."""
    return None if seconds is None else to_iso(from_epoch(str(int(seconds))))


def told(job: Job, place: int | None, terms: Terms, link: str) -> dict[str, object]:
    """Return what an owner sees. place: in the queue, from 1 on. link: the job's own address in the API."""
    order, progress = job.order, job.progress
    return {
        "number": job.number,
        "state": job.state.value,
        "url": order.url,
        "page": order.page,
        "archives": list(order.archives),
        "at": order.at,
        "from": order.first,
        "to": order.last,
        "windows": order.windows,
        "policy": order.policy.value,
        "format": order.form,
        "language": order.language,
        "name": order.name,
        "mail": order.mail,
        "submitted": iso(job.submitted),
        "confirmed": iso(job.confirmed),
        "begun": iso(job.begun),
        "ended": iso(job.ended),
        "picked_up": iso(job.picked_up),
        "removed_at": iso(terms.until(job)),
        "place": place,
        "not_before": iso(job.not_before) if job.state is State.QUEUED and job.not_before else None,
        "progress": {
            "share": round(progress.share, 4),
            "recovered": progress.recovered,
            "missing": progress.missing,
            "queued": progress.queued,
            "stage": progress.stage.value if job.state is State.PROCESSING else None,
        },
        "message": job.message,
        "packages": [
            {
                "format": each.form,
                "type": MEDIA_TYPES[each.form],
                "size": each.size,
                "sha256": each.sha256,
                "link": f"{link}/package/{each.form}",
            }
            for each in job.packages
        ],
        "figures": dict(job.figures),
    }


def told_admin(job: Job, place: int | None, terms: Terms, link: str) -> dict[str, object]:
    """Return what those see who look after all jobs."""
    return {
        **told(job, place, terms, link),
        "worker": job.worker,
        "for_worker": job.for_worker,
        "lease_until": iso(job.lease_until),
        "generation": job.generation,
        "crashes": job.crashes,
    }


def told_worker(worker: WorkerSeen) -> dict[str, object]:
    """Return what is known of a worker."""
    return {
        "name": worker.name,
        "begun": iso(worker.begun),
        "seen": iso(worker.seen),
        "version": worker.version,
        "jobs": list(worker.jobs),
    }
