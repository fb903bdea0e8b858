"""All jobs there ever were, for a spreadsheet or a program: JSON, CSV, XML, a row at a time."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from xml.sax.saxutils import escape

from unlost.service.jobs.job import Job
from unlost.service.jobs.told import format_time

HISTORY_MEDIA_TYPES = {"json": "application/json", "csv": "text/csv; charset=utf-8", "xml": "application/xml"}

_INVALID_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")

HistoryRow = Mapping[str, str | int | float | bool | None]


HISTORY_COLUMNS = (
    "number", "state", "url", "page", "policy", "archives", "from", "to", "windows", "name", "mail", "submitted",
    "confirmed", "begun", "ended", "picked_up", "recovered", "missing", "queued", "requests", "message",
)  # fmt: skip
"""The fields of a row, in their order."""


def history_row(job: Job) -> HistoryRow:
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
    """Yield a history in a format of `MEDIA_TYPES`, piece by piece."""
    write: dict[str, Callable[[Iterator[HistoryRow]], Iterator[str]]] = {
        "json": _write_json,
        "csv": _write_csv,
        "xml": _write_xml,
    }
    return write[form](map(history_row, jobs))


def _write_json(rows: Iterator[HistoryRow]) -> Iterator[str]:
    before = "["
    for row in rows:
        yield f"{before}\n{json.dumps(row)}"
        before = ","
    yield "[]\n" if before == "[" else "\n]\n"


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
    """Return a value that no spreadsheet takes for a formula: what people type may begin like one."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_STARTS) else value


def _write_xml(rows: Iterator[HistoryRow]) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<jobs>\n'
    for row in rows:
        fields = "".join(f"<{name}>{_xml_text(value)}</{name}>" for name, value in row.items() if value is not None)
        yield f"<job>{fields}</job>\n"
    yield "</jobs>\n"


def _xml_text(value: object) -> str:
    return escape(_INVALID_XML.sub("\ufffd", str(value).lower() if isinstance(value, bool) else str(value)))
