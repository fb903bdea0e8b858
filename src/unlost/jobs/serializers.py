"""Jobs as JSON for the API, and the history of all jobs as JSON, CSV and XML."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from xml.sax.saxutils import escape

from unlost.dates import from_epoch, to_iso
from unlost.export.formats import DOWNLOAD_FORMATS
from unlost.jobs.models import Job, JobState
from unlost.jobs.states import RetentionPolicy
from unlost.jobs.store import WorkerInfo

HISTORY_MEDIA_TYPES = {"json": "application/json", "csv": "text/csv; charset=utf-8", "xml": "application/xml"}
# Characters outside `Char` of XML 1.0 (section 2.2), which not even a character reference may name.
_INVALID_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
HistoryRow = Mapping[str, str | int | float | bool | None]
HISTORY_COLUMNS = (
    "number", "state", "url", "page", "policy", "archives", "from", "to", "windows", "name", "mail", "submitted",
    "confirmed", "begun", "ended", "picked_up", "recovered", "missing", "queued", "requests", "message",
)  # fmt: skip
"""The columns of the history, in order."""


def format_time(seconds: float | None) -> str | None:
    """Format a time as ISO 8601 in UTC, with a precision of a second."""
    return None if seconds is None else to_iso(from_epoch(str(int(seconds))))


def job_to_json(job: Job, position: int | None, retention: RetentionPolicy, link: str) -> dict[str, object]:
    """Return the JSON representation of a job for its owner.

    Args:
        job: The job.
        position: Position in the queue, from 1, or None.
        retention: Determines when the job is removed.
        link: URL of the job in the API.
    """
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
        "place": position,
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
                "type": DOWNLOAD_FORMATS[each.form],
                "size": each.size,
                "sha256": each.sha256,
                "link": f"{link}/package/{each.form}",
            }
            for each in job.packages
        ],
        "figures": dict(job.figures),
    }


def job_to_admin_json(job: Job, position: int | None, retention: RetentionPolicy, link: str) -> dict[str, object]:
    """Return the JSON representation of a job for administrators."""
    return {
        **job_to_json(job, position, retention, link),
        "worker": job.worker,
        "for_worker": job.for_worker,
        "lease_until": format_time(job.lease_until),
        "generation": job.generation,
        "crashes": job.crashes,
    }


def worker_to_json(worker: WorkerInfo) -> dict[str, object]:
    """Return the JSON representation of a worker."""
    return {
        "name": worker.name,
        "begun": format_time(worker.begun),
        "seen": format_time(worker.seen),
        "version": worker.version,
        "jobs": list(worker.jobs),
    }


def history_row(job: Job) -> HistoryRow:
    """Return a row of the history. Jobs that were removed have no name and email address."""
    requests = job.figures.get("requests")
    return {
        "number": job.number,
        "state": job.state.value,
        "url": job.order.url,
        "page": job.order.page,
        "policy": job.order.policy.value,
        "archives": " ".join(job.order.archives),
        "from": job.order.first,
        "to": job.order.last,
        "windows": job.order.windows,
        "name": job.order.name,
        "mail": job.order.mail,
        "submitted": format_time(job.submitted),
        "confirmed": format_time(job.confirmed),
        "begun": format_time(job.begun),
        "ended": format_time(job.ended),
        "picked_up": format_time(job.picked_up),
        "recovered": job.progress.recovered,
        "missing": job.progress.missing,
        "queued": job.progress.queued,
        "requests": requests if isinstance(requests, int) else None,
        "message": job.message,
    }


def write_history(jobs: Iterable[Job], form: str) -> Iterator[str]:
    """Yield the job history in chunks, in one of the formats of `HISTORY_MEDIA_TYPES`."""
    write: dict[str, Callable[[Iterator[HistoryRow]], Iterator[str]]] = {
        "json": _write_json,
        "csv": _write_csv,
        "xml": _write_xml,
    }
    return write[form](map(history_row, jobs))


def _write_json(rows: Iterator[HistoryRow]) -> Iterator[str]:
    separator = "["
    for row in rows:
        yield f"{separator}\n{json.dumps(row)}"
        separator = ","
    yield "[]\n" if separator == "[" else "\n]\n"


def _write_csv(rows: Iterator[HistoryRow]) -> Iterator[str]:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, HISTORY_COLUMNS)
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _escape_formula(value) for name, value in row.items()})
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def _escape_formula(value: object) -> object:
    """Return a value with user input escaped so that spreadsheets do not evaluate it as a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_STARTS) else value


def _write_xml(rows: Iterator[HistoryRow]) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<jobs>\n'
    for row in rows:
        fields = "".join(f"<{name}>{_xml_text(value)}</{name}>" for name, value in row.items() if value is not None)
        yield f"<job>{fields}</job>\n"
    yield "</jobs>\n"


def _xml_text(value: object) -> str:
    return escape(_INVALID_XML.sub("\ufffd", str(value).lower() if isinstance(value, bool) else str(value)))
