"""A job as JSON tells it: to its owner, and with more to those who look after all jobs."""

from unlost.dates import from_epoch, to_iso
from unlost.service.jobs.job import Job, JobState
from unlost.service.jobs.packages import PACKAGE_MEDIA_TYPES
from unlost.service.jobs.retention import RetentionPolicy
from unlost.service.jobs.store import WorkerInfo


def format_time(seconds: float | None) -> str | None:
    """Return a time as ISO 8601 in UTC, to the second."""
    return None if seconds is None else to_iso(from_epoch(str(int(seconds))))


def job_to_json(job: Job, place: int | None, retention: RetentionPolicy, link: str) -> dict[str, object]:
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
        "submitted": format_time(job.submitted),
        "confirmed": format_time(job.confirmed),
        "begun": format_time(job.begun),
        "ended": format_time(job.ended),
        "picked_up": format_time(job.picked_up),
        "removed_at": format_time(retention.removal_time(job)),
        "place": place,
        "not_before": format_time(job.not_before) if job.state is JobState.QUEUED and job.not_before else None,
        "progress": {
            "share": round(progress.share, 4),
            "recovered": progress.recovered,
            "missing": progress.missing,
            "queued": progress.queued,
            "stage": progress.stage.value if job.state is JobState.PROCESSING else None,
        },
        "message": job.message,
        "packages": [
            {
                "format": each.form,
                "type": PACKAGE_MEDIA_TYPES[each.form],
                "size": each.size,
                "sha256": each.sha256,
                "link": f"{link}/package/{each.form}",
            }
            for each in job.packages
        ],
        "figures": dict(job.figures),
    }


def job_to_admin_json(job: Job, place: int | None, retention: RetentionPolicy, link: str) -> dict[str, object]:
    """Return what those see who look after all jobs."""
    return {
        **job_to_json(job, place, retention, link),
        "worker": job.worker,
        "for_worker": job.for_worker,
        "lease_until": format_time(job.lease_until),
        "generation": job.generation,
        "crashes": job.crashes,
    }


def worker_to_json(worker: WorkerInfo) -> dict[str, object]:
    """Return what is known of a worker."""
    return {
        "name": worker.name,
        "begun": format_time(worker.begun),
        "seen": format_time(worker.seen),
        "version": worker.version,
        "jobs": list(worker.jobs),
    }
