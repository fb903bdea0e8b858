"""Addresses that scripts may ask for: guesses, which are looked for, and not missed if they are not there."""

from collections.abc import Iterable, Sequence

from unlost.pages.link import LinkKind
from unlost.recover.state.file import RecoveryStateFile
from unlost.recover.state.resources import NewResource
from unlost.uri import naming

MAX_CANDIDATES = 100_000
"""How many are remembered, some 20 MB: whoever has more makes them up."""

_PENDING_CANDIDATES = "SELECT name, uri, use, hops, near FROM candidate WHERE wanted = 0"
_IS_LISTED = """EXISTS (
    SELECT 1 FROM resource WHERE resource.folded = candidate.folded AND resource.standing = 'listed'
    AND EXISTS (SELECT 1 FROM capture WHERE capture.resource = resource.id))"""
_IS_UNKNOWN = "NOT EXISTS (SELECT 1 FROM resource WHERE resource.folded = candidate.folded)"
_NAMES_PER_QUERY = 400  # names that are looked up together


class CandidateTable:
    """The table of candidates. Each is wanted once, until `forget_wanted`."""

    def __init__(self, file: RecoveryStateFile) -> None:
        self._file = file
        self._execute = file.connection.execute
        self._count: int | None = None

    def add(self, found: Iterable[NewResource]) -> int:
        """Remember candidates; return how many were left out since there are too many."""
        self._file.begin()
        if self._count is None:
            self._count = int(self._execute("SELECT count(*) FROM candidate").fetchone()[0])
        left_out = 0
        sql = "INSERT OR IGNORE INTO candidate (name, folded, uri, use, hops, near) VALUES (?, ?, ?, ?, ?, ?)"
        for each in found:
            if self._count >= MAX_CANDIDATES:
                left_out += 1
                continue
            row = (
                each.name,
                naming.fold_case(each.name),
                each.uri,
                each.link_kind.value,
                each.hops,
                each.page_datetime,
            )
            self._count += self._execute(sql, row).rowcount
        return left_out

    def pending_listed(self, names: Sequence[str] | None = None) -> list[NewResource]:
        """Return those that were not wanted yet, and that archives list. names: only of these; None for all."""
        return self._pending(_IS_LISTED, names)

    def pending_unknown(self, limit: int, names: Sequence[str] | None = None) -> list[NewResource]:
        """Return those that were not wanted yet, and of which nobody knows anything; so many at most."""
        return self._pending(_IS_UNKNOWN, names)[: max(limit, 0)]

    def _pending(self, condition: str, names: Sequence[str] | None) -> list[NewResource]:
        if names is None:
            return list(map(_candidate, self._execute(f"{_PENDING_CANDIDATES} AND {condition} ORDER BY rowid")))
        found: list[NewResource] = []
        for start in range(0, len(names), _NAMES_PER_QUERY):
            part = names[start : start + _NAMES_PER_QUERY]
            marks = ", ".join("?" * len(part))
            rows = self._execute(f"{_PENDING_CANDIDATES} AND name IN ({marks}) AND {condition} ORDER BY rowid", part)
            found.extend(map(_candidate, rows))
        return found

    def mark_enqueued(self, wanted: Iterable[NewResource]) -> None:
        """Say that these are looked for."""
        self._file.begin()
        self._file.connection.executemany(
            "UPDATE candidate SET wanted = 1 WHERE name = ?", [(each.name,) for each in wanted]
        )

    def count_enqueued(self) -> int:
        """Return how many are looked for, or were."""
        return int(self._execute("SELECT count(*) FROM candidate WHERE wanted = 1").fetchone()[0])

    def is_candidate(self, resource: int) -> bool:
        """Return whether a resource is looked for since it is a candidate, and no other has a link to it."""
        sql = """SELECT 1 FROM resource JOIN candidate USING (folded) WHERE resource.id = ?1 AND candidate.wanted = 1
            AND NOT EXISTS (SELECT 1 FROM link WHERE link.target = ?1) LIMIT 1"""
        return self._execute(sql, (resource,)).fetchone() is not None

    def reset_enqueued(self) -> None:
        """Let those be wanted once more that are not in the queue: archives may have gained something."""
        self._file.begin()
        self._execute(
            "UPDATE candidate SET wanted = 0 WHERE NOT EXISTS "
            "(SELECT 1 FROM resource WHERE resource.folded = candidate.folded AND resource.standing = 'queued')"
        )

    def clear(self) -> None:
        """Forget all, to begin anew with other rules."""
        self._file.begin()
        self._execute("DELETE FROM candidate")
        self._count = 0


def _candidate(row: tuple[str, str, str, int, str | None]) -> NewResource:
    name, uri, use, hops, near = row
    return NewResource(name, uri, LinkKind(use), hops, near)
