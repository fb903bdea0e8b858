"""Resources of which it is known what became of them, each with the copy that was chosen and who else has it."""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from unlost.recover.state.chosen import ChosenCapture, check_date, parse_chosen
from unlost.state_file import require_text

IS_RECOVERED = (
    "resource.standing != 'listed' AND resource.changed IS NOT NULL AND resource.reason IS NULL "
    "AND resource.record IS NOT NULL"
)
"""Of a row of the table of resources: whether it is recovered, or was before it was put back into the queue."""

_FINISHED = """
SELECT resource.id, resource.name, resource.uri, resource.use, resource.standing = 'missing', resource.reason,
    resource.changed, record.file, record.offset, record.data, other.uri, {doubt}
FROM resource LEFT JOIN substitute ON resource.standing = 'substituted' AND substitute.resource = resource.id
LEFT JOIN resource AS other ON other.id = substitute.other
LEFT JOIN record ON record.id = coalesce(other.record, resource.record)
WHERE resource.standing = 'missing' OR ({recovered})
    OR (resource.standing = 'substituted' AND other.record IS NOT NULL) ORDER BY resource.id
"""
_DOUBTFUL_KIND = "(SELECT kind FROM rejected WHERE rejected.record = record.id)"
# In the order of the index of captures, so that nothing has to be sorted.
_HOLDERS = "SELECT resource, archive, max(datetime) FROM capture GROUP BY resource, archive ORDER BY resource, archive"


@dataclass(frozen=True, slots=True)
class FinishedResource:
    """A resource that was recovered, or is missing.

    uri: as somebody spelled it. use: as `unlost.pages.link.Use` has it. chosen: the copy; None if it is missing.
    reason: why it is missing, one word; None if it is not. when: it was found missing, or last looked at, 14 digits.
    holders: the archives that list it, with the dates of their last captures, by id.
    substitute: the URL whose capture is shown in its place; None if it has its own.
    doubt: the kind of the quality verdict against its capture; None if there is none.
    """

    uri: str
    link_kind: str
    finished_at: str
    reason: str | None
    chosen: ChosenCapture | None
    holders: tuple[tuple[str, str], ...]
    substitute: str | None = None
    doubtful_kind: str | None = None


def finished_resources(connection: sqlite3.Connection) -> Iterator[FinishedResource]:
    """Yield them in the order in which they were found, in bounded memory.

    Raises OddError, ValueError for what is no text, sqlite3.Error.
    """
    groups = groupby(connection.execute(_HOLDERS), _resource_id)
    group = next(groups, None)
    has_verdicts = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'rejected'").fetchone()
    sql = _FINISHED.format(doubt=_DOUBTFUL_KIND if has_verdicts else "NULL", recovered=IS_RECOVERED)
    for number, name, uri, use, is_missing, reason, changed, file, offset, data, other, doubt in connection.execute(
        sql
    ):
        while group is not None and group[0] < number:
            group = next(groups, None)
        is_held = group is not None and group[0] == number
        holders = tuple(_holder(*each) for each in group[1]) if group and is_held else ()
        copy = None if is_missing else parse_chosen(name, uri, file, offset, data)
        if is_missing:
            check_date(changed, uri)
        why = None if reason is None or not is_missing else require_text(reason)
        by = None if other is None else require_text(other)
        kind = None if doubt is None or is_missing else require_text(doubt)
        yield FinishedResource(
            require_text(uri), require_text(use), require_text(changed or ""), why, copy, holders, by, kind
        )


def _resource_id(row: tuple[object, ...]) -> int:
    if not isinstance(row[0], int):
        raise ValueError("no number")  # noqa: TRY004  as for what is no text
    return row[0]


def _holder(_: int, archive: object, last: object) -> tuple[str, str]:
    return require_text(archive), require_text(last)
