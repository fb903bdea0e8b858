"""All jobs there ever were, for a spreadsheet or a program: JSON, CSV, XML, a row at a time."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from xml.sax.saxutils import escape

from unlost.service.jobs.job import Job
from unlost.service.jobs.told import iso

MEDIA_TYPES = {"json": "application/json", "csv": "text/csv; charset=utf-8", "xml": "application/xml"}

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

Row = Mapping[str, str | int | float | bool | None]


COLUMNS = (
    "number", "state", "url", "page", "policy", "archives", "from", "to", "windows", "name", "mail", "submitted",
    "confirmed", "begun", "ended", "picked_up", "recovered", "missing", "queued", "requests", "message",
)  # fmt: skip
"""The fields of a row, in their order."""


def row_of(job: Job) -> Row:
    """Return what there is to say of a job in a table. Of those that were removed, nobody knows whose they were."""
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
        "submitted": iso(job.submitted),
        "confirmed": iso(job.confirmed),
        "begun": iso(job.begun),
        "ended": iso(job.ended),
        "picked_up": iso(job.picked_up),
        "recovered": job.progress.recovered,
        "missing": job.progress.missing,
        "queued": job.progress.queued,
        "requests": requests if isinstance(requests, int) else None,
        "message": job.message,
    }


def written(jobs: Iterable[Job], form: str) -> Iterator[str]:
    """Yield a history in a format of `MEDIA_TYPES`, piece by piece."""
    write: dict[str, Callable[[Iterator[Row]], Iterator[str]]] = {"json": _json, "csv": _csv, "xml": _xml}
    return write[form](map(row_of, jobs))


def _json(rows: Iterator[Row]) -> Iterator[str]:
    before = "["
    for row in rows:
        yield f"{before}\n{json.dumps(row)}"
        before = ","
    yield "[]\n" if before == "[" else "\n]\n"


def _csv(rows: Iterator[Row]) -> Iterator[str]:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS)
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in row.items()})
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def _cell(value: object) -> object:
    """Return a value that no spreadsheet takes for a formula: what people type may begin like one."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _xml(rows: Iterator[Row]) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<jobs>\n'
    for row in rows:
        fields = "".join(f"<{name}>{_text(value)}</{name}>" for name, value in row.items() if value is not None)
        yield f"<job>{fields}</job>\n"
    yield "</jobs>\n"


def _text(value: object) -> str:
    return escape(_NO_XML.sub("\ufffd", str(value).lower() if isinstance(value, bool) else str(value)))
