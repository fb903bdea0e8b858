"""Addresses that scripts may ask for: guesses, which are looked for, and not missed if they are not there."""

from collections.abc import Iterable, Sequence

from unlost.pages.link import Use
from unlost.recover.state.file import StateFile
from unlost.recover.state.resources import Wanted
from unlost.uri import naming

MOST = 100_000
"""How many are remembered, some 20 MB: whoever has more makes them up."""

_WAITING = "SELECT name, uri, use, hops, near FROM candidate WHERE wanted = 0"
_LISTED = """EXISTS (
    SELECT 1 FROM resource WHERE resource.folded = candidate.folded AND resource.standing = 'listed'
    AND EXISTS (SELECT 1 FROM capture WHERE capture.resource = resource.id))"""
_UNKNOWN = "NOT EXISTS (SELECT 1 FROM resource WHERE resource.folded = candidate.folded)"
_AT_ONCE = 400  # names that are looked up together


class Candidates:
    """The table of candidates. Each is wanted once, until `forget_wanted`."""

    def __init__(self, file: StateFile) -> None:
        self._file = file
        self._run = file.connection.execute
        self._count: int | None = None

    def note(self, found: Iterable[Wanted]) -> int:
        """Remember candidates; return how many were left out since there are too many."""
        self._file.begin()
        if self._count is None:
            self._count = int(self._run("SELECT count(*) FROM candidate").fetchone()[0])
        left_out = 0
        sql = "INSERT OR IGNORE INTO candidate (name, folded, uri, use, hops, near) VALUES (?, ?, ?, ?, ?, ?)"
        for each in found:
            if self._count >= MOST:
                left_out += 1
                continue
            row = (each.name, naming.folded(each.name), each.uri, each.use.value, each.hops, each.near)
            self._count += self._run(sql, row).rowcount
        return left_out

    def listed(self, names: Sequence[str] | None = None) -> list[Wanted]:
        """Return those that were not wanted yet, and that archives list. names: only of these; None for all."""
        return self._waiting(_LISTED, names)

    def unknown(self, limit: int, names: Sequence[str] | None = None) -> list[Wanted]:
        """Return those that were not wanted yet, and of which nobody knows anything; so many at most."""
        return self._waiting(_UNKNOWN, names)[: max(limit, 0)]

    def _waiting(self, condition: str, names: Sequence[str] | None) -> list[Wanted]:
        if names is None:
            return list(map(_wanted, self._run(f"{_WAITING} AND {condition} ORDER BY rowid")))
        found: list[Wanted] = []
        for start in range(0, len(names), _AT_ONCE):
            part = names[start : start + _AT_ONCE]
            marks = ", ".join("?" * len(part))
            rows = self._run(f"{_WAITING} AND name IN ({marks}) AND {condition} ORDER BY rowid", part)
            found.extend(map(_wanted, rows))
        return found

    def note_wanted(self, wanted: Iterable[Wanted]) -> None:
        """Say that these are looked for."""
        self._file.begin()
        self._file.connection.executemany(
            "UPDATE candidate SET wanted = 1 WHERE name = ?", [(each.name,) for each in wanted]
        )

    def wanted(self) -> int:
        """Return how many are looked for, or were."""
        return int(self._run("SELECT count(*) FROM candidate WHERE wanted = 1").fetchone()[0])

    def is_one(self, resource: int) -> bool:
        """Return whether a resource is looked for since it is a candidate, and no other has a link to it."""
        sql = """SELECT 1 FROM resource JOIN candidate USING (folded) WHERE resource.id = ?1 AND candidate.wanted = 1
            AND NOT EXISTS (SELECT 1 FROM link WHERE link.target = ?1) LIMIT 1"""
        return self._run(sql, (resource,)).fetchone() is not None

    def forget_wanted(self) -> None:
        """Let those be wanted once more that are not in the queue: archives may have gained something."""
        self._file.begin()
        self._run(
            "UPDATE candidate SET wanted = 0 WHERE NOT EXISTS "
            "(SELECT 1 FROM resource WHERE resource.folded = candidate.folded AND resource.standing = 'queued')"
        )

    def forget(self) -> None:
        """Forget all, to begin anew with other rules."""
        self._file.begin()
        self._run("DELETE FROM candidate")
        self._count = 0


def _wanted(row: tuple[str, str, str, int, str | None]) -> Wanted:
    name, uri, use, hops, near = row
    return Wanted(name, uri, Use(use), hops, near)
