"""Tables of the frontier: resources with their status and queue, aliases, links, and URLs guessed from scripts."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby, islice

from unlost.html.links import LinkKind
from unlost.recover.state.schema import RecoveryStateFile
from unlost.uri import names as uri_names


class ResourceStatus(StrEnum):
    """What has become of a resource."""

    LISTED = "listed"
    """An archive lists it, and it is not fetched: it is left out, or no link points to it."""
    QUEUED = "queued"
    RECOVERED = "recovered"
    SUBSTITUTED = "substituted"
    """No archive has it, but one has the same path with another query, which is shown in its place."""
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class RecoveryResource:
    """A page, or a part of one.

    name: its identity, as `naming` has it. uri: an address of it, as somebody spelled it.
    hops: how many links away from a beginning it is; of a requisite, as many as its page.
    near: the date of the page that needs it, 14 digits; None if none does, or is known to.
    record: the best of its records; None if there is none.
    changed: when it was last recovered or found missing, 14 digits; None if it never was.
    was_recovered: whether it is, or was before it was put back into the queue.
    is_linked: whether anything points to it. Otherwise it is there only because an archive lists it.
    """

    id: int
    name: str
    uri: str
    link_kind: LinkKind
    status: ResourceStatus
    hops: int
    page_datetime: str | None
    record: int | None
    changed: str | None
    was_recovered: bool
    is_linked: bool


@dataclass(frozen=True, slots=True)
class NewResource:
    """What somebody wants: an address, and the place that it has among others, as in Resource."""

    name: str
    uri: str
    link_kind: LinkKind
    hops: int
    page_datetime: str | None = None


UNASSIGNED = ""
"""In the place of an archive's id: nobody has looked yet whose turn it is."""
_WAS_RECOVERED = "changed IS NOT NULL AND reason IS NULL"
_COLUMNS = f"id, name, uri, use, standing, hops, near, record, changed, {_WAS_RECOVERED}, uses > 0"
_BATCH_SIZE = 400  # names that are looked up together
_MAX_ROWS_PER_STATEMENT = 10_000  # SQLite remembers the rows of one statement in memory until it ends
_LAST_RANK = 1 << 40  # more than any rank
_LISTED_RANK = 1 << 39  # more than any rank of what links point to
# The lower, the sooner: what is near a beginning, and among that what many pages use. The parts of a page come before
# the next pages do, so that a recovery cut short is a site that can be looked at.
_RANK = """32 * {hops} + CASE {use} WHEN 'requisite' THEN 8 WHEN 'list' THEN 4 ELSE 0 END
- CASE WHEN {uses} < 2 THEN 0 WHEN {uses} < 4 THEN 4 WHEN {uses} < 8 THEN 8 WHEN {uses} < 32 THEN 12 ELSE 16 END"""
_NEW_RANK = _RANK.format(hops="?2", use="?3", uses="1")
_UPDATED_RANK = _RANK.format(hops="min(hops, ?2)", use="min(use, ?3)", uses="(uses + 1)")
# By the alphabet, `list` comes before `page` and `page` before `requisite`: what leads on is the stronger use. What was
# only listed has had no place among others so far.
_ENQUEUE = f"""
UPDATE resource SET
    hops = CASE WHEN standing = 'listed' OR uses = 0 THEN ?2 ELSE min(hops, ?2) END,
    use = CASE WHEN standing = 'listed' OR uses = 0 THEN ?3 ELSE min(use, ?3) END,
    near = coalesce(near, ?4), uses = uses + 1,
    rank = CASE WHEN standing = 'listed' OR uses = 0 THEN {_NEW_RANK} ELSE {_UPDATED_RANK} END,
    reason = CASE standing WHEN 'listed' THEN NULL ELSE reason END,
    standing = CASE standing WHEN 'listed' THEN 'queued' ELSE standing END
WHERE id = ?1
"""  # noqa: S608  no text of others in it
_ADD = """INSERT OR IGNORE INTO resource (name, folded, uri, use, hops, standing, archive)
VALUES (?, ?, ?, ?, ?, 'listed', '')"""


class RecoveryResourceTable:
    """The tables of resources, aliases and links."""

    def __init__(self, file: RecoveryStateFile) -> None:
        self._file = file
        self._execute = file.connection.execute
        self._execute_many = file.connection.executemany

    def enqueue(self, wanted: Sequence[NewResource], source: int | None = None) -> list[int]:
        """Put resources into the queue, or note that they are used once more; return their ids, in order.

        source: the resource that has the links; what it links to twice is used once.
        A name that nobody has listed, and that differs only in letter case or by the name of a default page from one
        that somebody has, is taken for that one, and remembered so.
        """
        self._file.begin()
        known = self.find_ids({each.name for each in wanted})
        for each in wanted:
            if each.name not in known:
                known[each.name] = self._find_alias_target(each.name) or self._insert(each)
        before = self._linked_ids(source) if source is not None else set()
        fresh = {known[each.name]: each for each in reversed(wanted) if known[each.name] not in before}
        self._execute_many(
            _ENQUEUE, [(number, each.hops, each.link_kind.value, each.page_datetime) for number, each in fresh.items()]
        )
        if source is not None:
            self._execute_many("INSERT INTO link VALUES (?, ?)", [(source, number) for number in fresh])
        return [known[each.name] for each in wanted]

    def deprioritize(self, numbers: Collection[int]) -> None:
        """Let those of them wait for all others that are in the queue, unless somebody links to them."""
        self._file.begin()
        self._execute_many(
            f"UPDATE resource SET rank = rank + {_LAST_RANK} WHERE id = ? AND standing = 'queued' AND uses = 1",  # noqa: S608
            [(number,) for number in numbers],
        )

    def enqueue_listed(self, numbers: Collection[int]) -> None:
        """Queue resources that an archive lists, after everything that links point to."""
        self._file.begin()
        rank = _RANK.format(hops="hops", use="use", uses="0")
        self._execute_many(
            f"UPDATE resource SET standing = 'queued', archive = '{UNASSIGNED}', uses = 0, reason = NULL, "  # noqa: S608
            f"rank = {_LISTED_RANK} + {rank} WHERE id = ? AND standing = 'listed'",
            [(number,) for number in numbers],
        )

    def skip(self, reasons: Mapping[int, str]) -> None:
        """Do not fetch resources that an archive lists, for a reason that is reported."""
        self._file.begin()
        self._execute_many(
            "UPDATE resource SET standing = 'listed', reason = ?, uses = 0 WHERE id = ?",
            [(reason, number) for number, reason in reasons.items()],
        )

    def clear_skip_reasons(self, numbers: Iterable[int] | None = None, reason: str | None = None) -> None:
        """Decide again on listed resources that were left out. numbers: None for all. reason: None for any."""
        self._file.begin()
        sql = "UPDATE resource SET reason = NULL WHERE standing = 'listed' AND coalesce(?1, reason) = reason"
        if numbers is None:
            self._execute(sql, (reason,))
        else:
            self._execute_many(f"{sql} AND id = ?2", [(reason, number) for number in numbers])

    def undecided_batches(self) -> Iterator[list[RecoveryResource]]:
        """Yield the listed resources that were not left out, some at a time. They may be changed meanwhile."""
        sql = f"SELECT {_COLUMNS} FROM resource WHERE id > ? AND standing = 'listed' AND reason IS NULL ORDER BY id LIMIT {_BATCH_SIZE}"  # noqa: S608, E501
        last = 0
        while rows := self._execute(sql, (last,)).fetchall():
            yield [_resource(row) for row in rows]
            last = rows[-1][0]

    def substitute(self, number: int, other: int, changed: str, near: str | None) -> None:
        """Show another resource in the place of one that no archive has.

        changed: when that was found out, 14 digits. near: when the page that needs it was captured, 14 digits.
        """
        self.finish(number, ResourceStatus.SUBSTITUTED, changed, ResourceStatus.SUBSTITUTED.value)
        self._execute("INSERT OR REPLACE INTO substitute VALUES (?, ?)", (number, other))
        self._execute("UPDATE resource SET near = coalesce(near, ?) WHERE id = ? AND uses = 0", (near, other))
        self.enqueue_listed([other])

    def without_substitute(self) -> list[RecoveryResource]:
        """Return the resources whose substitute did not come back either, and is not queued."""
        rows = self._execute(
            f"SELECT {_COLUMNS} FROM resource WHERE standing = 'substituted' AND NOT EXISTS (SELECT 1 FROM substitute "  # noqa: S608
            "JOIN resource AS other ON other.id = substitute.other WHERE substitute.resource = resource.id "
            "AND (other.standing = 'queued' "
            "OR (other.changed IS NOT NULL AND other.reason IS NULL AND other.record IS NOT NULL)))"
        ).fetchall()
        return [_resource(row) for row in rows]

    def same_path(self, name: str) -> list[RecoveryResource]:
        """Return the resources with the path of a name, and another query or none; at most 100."""
        path = name.partition("?")[0]
        rows = self._execute(
            f"SELECT {_COLUMNS} FROM resource WHERE (name = ?1 OR (name >= ?1 || '?' AND name < ?1 || '@')) "  # noqa: S608
            "AND name != ?2 LIMIT 100",
            (path, name),
        )
        return [_resource(row) for row in rows]

    def queued_below(self, folder: str) -> list[RecoveryResource]:
        """Return the queued resources whose names begin with a folder, which ends with a slash; at most 5,000."""
        rows = self._execute(
            f"SELECT {_COLUMNS} FROM resource WHERE name >= ?1 AND name < ?2 AND standing = 'queued' LIMIT 5000",  # noqa: S608
            (folder, folder[:-1] + "0"),
        )
        return [_resource(row) for row in rows]

    def case_variants(self) -> list[list[RecoveryResource]]:
        """Return groups of resources whose names differ only in letter case."""
        rows = self._execute(
            f"SELECT {_COLUMNS} FROM resource WHERE folded IN "  # noqa: S608
            "(SELECT folded FROM resource GROUP BY folded HAVING count(*) > 1) ORDER BY folded, id"
        )
        return [
            list(group) for _, group in groupby(map(_resource, rows), key=lambda each: uri_names.fold_case(each.name))
        ]

    def merge(self, into: int, other: int) -> None:
        """Make one resource an alias of another, with its captures and links. It must have no record."""
        self._file.begin()
        values = {"into": into, "other": other}
        self._execute("INSERT OR REPLACE INTO alias SELECT name, :into FROM resource WHERE id = :other", values)
        self._execute("UPDATE alias SET resource = :into WHERE resource = :other", values)
        for table, column in (
            ("capture", "resource"),
            ("link", "source"),
            ("link", "target"),
            ("substitute", "other"),
        ):
            self._execute(f"UPDATE OR IGNORE {table} SET {column} = :into WHERE {column} = :other", values)  # noqa: S608
            self._execute(f"DELETE FROM {table} WHERE {column} = :other", values)  # noqa: S608
        self._execute("DELETE FROM asked WHERE resource = :other", values)
        self._execute("DELETE FROM substitute WHERE resource = :other", values)
        self._execute("DELETE FROM link WHERE source = target")
        self._execute(
            "UPDATE resource SET uses = resource.uses + gone.uses, hops = min(resource.hops, gone.hops), "
            "rank = CASE gone.standing WHEN 'queued' THEN min(resource.rank, gone.rank) ELSE resource.rank END, "
            "use = min(resource.use, gone.use), "
            "standing = CASE WHEN resource.standing = 'listed' THEN gone.standing ELSE resource.standing END, "
            "reason = CASE WHEN resource.standing = 'listed' THEN NULL ELSE resource.reason END "
            "FROM (SELECT * FROM resource WHERE id = :other) AS gone WHERE resource.id = :into",
            values,
        )
        self._execute("DELETE FROM resource WHERE id = :other", values)

    def add(self, listed: Collection[NewResource]) -> dict[str, int]:
        """Make resources of what archives list, unless they are there already; return their ids by name.

        What is an alias of another one stays that.
        """
        self._file.begin()
        known = self.find_ids({each.name for each in listed})
        new = {each.name: each for each in listed if each.name not in known}
        self._execute_many(_ADD, [_row(each) for each in new.values()])
        return known | self.find_ids(new)

    def find_ids(self, names: Collection[str]) -> dict[str, int]:
        """Return the ids of those that are known by these names."""
        found: dict[str, int] = {}
        left = iter(names)
        while part := list(islice(left, _BATCH_SIZE)):
            marks = ", ".join("?" * len(part))
            found.update(self._execute(f"SELECT name, id FROM resource WHERE name IN ({marks})", part))  # noqa: S608
            if len(found) < len(names):
                found.update(self._execute(f"SELECT name, resource FROM alias WHERE name IN ({marks})", part))  # noqa: S608
        return found

    def next_queued(self, archive: str, in_flight: Collection[int]) -> RecoveryResource | None:
        """Return the most valuable resource that an archive is to give next; None if there is none.

        archive: its id, or `UNASSIGNED`. out: those that somebody is at work on already.
        """
        rows = self._execute(
            f"SELECT {_COLUMNS} FROM resource WHERE standing = 'queued' AND archive = ? ORDER BY rank, id LIMIT ?",  # noqa: S608
            (archive, len(in_flight) + 1),
        )
        return next((_resource(row) for row in rows if row[0] not in in_flight), None)

    def get(self, number: int) -> RecoveryResource:
        """Return a resource."""
        return _resource(self._execute(f"SELECT {_COLUMNS} FROM resource WHERE id = ?", (number,)).fetchone())  # noqa: S608

    def assign(self, number: int, archive: str) -> None:
        """Say whose turn it is."""
        self._file.begin()
        self._execute("UPDATE resource SET archive = ? WHERE id = ?", (archive, number))

    def assign_all(self, before: str, archive: str = UNASSIGNED) -> None:
        """Say that it is no longer one's turn but another's, for all that are queued."""
        self._file.begin()
        self._execute("UPDATE resource SET archive = ? WHERE standing = 'queued' AND archive = ?", (archive, before))

    def finish(self, number: int, status: ResourceStatus, changed: str, reason: str | None = None) -> None:
        """Say what has become of a resource, when (14 digits), and if it is missing, why."""
        self._file.begin()
        self._execute(
            "UPDATE resource SET standing = ?, changed = ?, reason = ? WHERE id = ?",
            (status.value, changed, reason, number),
        )
        self._execute("DELETE FROM substitute WHERE resource = ?", (number,))

    def find_case_variant(self, name: str) -> str | None:
        """Return the address of one whose name differs only in letter case; None if there is none."""
        found = self._execute(
            "SELECT uri FROM resource WHERE folded = ? LIMIT 1", (uri_names.fold_case(name),)
        ).fetchone()
        return None if found is None else str(found[0])

    def is_linked(self, number: int) -> bool:
        """Return whether any other has a link to it."""
        return self._execute("SELECT 1 FROM link WHERE target = ? LIMIT 1", (number,)).fetchone() is not None

    def has_followed_links(self, number: int) -> bool:
        """Return whether it has links to any other that were followed."""
        return self._execute("SELECT 1 FROM link WHERE source = ? LIMIT 1", (number,)).fetchone() is not None

    def reset_discovery(self) -> None:
        """Forget how resources were found, to begin anew with other rules.

        What is recovered is queued, so that its links are followed again. Nothing else is wanted until somebody does:
        it is only listed, or, if no archive lists it, forgotten.
        """
        self._file.begin()
        self._execute("DELETE FROM link")
        self._execute("DELETE FROM substitute")
        for begin in range(0, self._last_id() + 1, _MAX_ROWS_PER_STATEMENT):
            rows = f"id BETWEEN {begin} AND {begin + _MAX_ROWS_PER_STATEMENT - 1}"
            self._execute(
                "UPDATE resource SET standing = 'listed', uses = 0 "  # noqa: S608
                f"WHERE standing IN ('queued', 'missing', 'substituted') AND {rows}"
            )
            self._execute(
                f"UPDATE resource SET reason = NULL WHERE standing = 'listed' AND reason IS NOT NULL AND {rows}"  # noqa: S608
            )
            self.requeue(f"standing = 'recovered' AND {rows}")
            self._execute(
                "DELETE FROM resource WHERE standing = 'listed' AND record IS NULL "  # noqa: S608
                f"AND NOT EXISTS (SELECT 1 FROM capture WHERE resource = resource.id) AND {rows}"
            )
        for table in ("alias", "asked"):
            self._execute(f"DELETE FROM {table} WHERE NOT EXISTS (SELECT 1 FROM resource WHERE id = {table}.resource)")  # noqa: S608

    def _last_id(self) -> int:
        return int(self._execute("SELECT coalesce(max(id), 0) FROM resource").fetchone()[0])

    def unqueue(self, number: int) -> None:
        """Want it no longer: it is only listed, if any archive lists it, and else forgotten."""
        self._file.begin()
        self._execute("UPDATE resource SET standing = 'listed', uses = 0, reason = NULL WHERE id = ?", (number,))
        self._execute("DELETE FROM asked WHERE resource = ?", (number,))
        self._execute("DELETE FROM substitute WHERE ? IN (resource, other)", (number,))  # its id may be used again
        self._execute(
            "DELETE FROM resource WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM capture WHERE resource = ?1)", (number,)
        )

    def set_best_record(self, number: int, record: int | None) -> None:
        """Say which is the best of its records."""
        self._file.begin()
        self._execute("UPDATE resource SET record = ? WHERE id = ?", (record, number))

    def requeue(self, condition: str, *values: object) -> int:
        """Put those back into the queue that meet a condition of ours on the table; return how many."""
        self._file.begin()
        changed = self._execute(
            f"UPDATE resource SET standing = 'queued', archive = '{UNASSIGNED}' WHERE standing != 'queued' AND {condition}",  # noqa: S608, E501
            values,
        )
        return changed.rowcount

    def counts(self) -> dict[ResourceStatus, int]:
        """Return how many there are of each standing."""
        found = dict(self._execute("SELECT standing, count(*) FROM resource GROUP BY standing"))
        return {standing: found.get(standing.value, 0) for standing in ResourceStatus}

    def count_recovered(self) -> int:
        """Return how many are recovered, or were before they were put back into the queue."""
        return int(self._execute(f"SELECT count(*) FROM resource WHERE {_WAS_RECOVERED}").fetchone()[0])  # noqa: S608

    def other_host_sizes(self, host: str) -> Iterator[tuple[str, int]]:
        """Yield URL and stored size, in bytes, of the resources of other hosts that are fetched, or to be."""
        rows = self._execute(
            "SELECT resource.uri, coalesce(record.size, 0) FROM resource "
            "LEFT JOIN record ON record.id = resource.record "
            "WHERE (name < ?1 || '/' OR name >= ?1 || '0') AND standing != 'listed'",
            (host,),
        )
        yield from rows

    def count_doubtful(self) -> int:
        """Return how many are recovered only by a capture that the quality verdict speaks against."""
        return int(
            self._execute(
                "SELECT count(*) FROM resource JOIN rejected ON rejected.record = resource.record "
                "WHERE standing = 'recovered'"
            ).fetchone()[0]
        )

    def count_skipped(self) -> dict[str, int]:
        """Return how many listed resources are left out, by the reason."""
        rows = self._execute(
            "SELECT reason, count(*) FROM resource WHERE standing = 'listed' AND reason IS NOT NULL GROUP BY reason"
        )
        return dict(rows)

    def count_failed(self) -> int:
        """Return how many are missing since an archive failed."""
        return int(
            self._execute("SELECT count(*) FROM resource WHERE standing = 'missing' AND reason = 'failed'").fetchone()[
                0
            ]
        )

    def count_queued_by_archive(self) -> dict[str, int]:
        """Return how many are queued, by the archive whose turn it is."""
        return dict(self._execute("SELECT archive, count(*) FROM resource WHERE standing = 'queued' GROUP BY archive"))

    def batches(self, *standings: ResourceStatus) -> Iterator[list[RecoveryResource]]:
        """Yield the resources of these standings, some at a time, in the order in which they were found.

        They may be changed meanwhile.
        """
        marks = ", ".join("?" * len(standings))
        sql = f"SELECT {_COLUMNS} FROM resource WHERE id > ? AND standing IN ({marks}) ORDER BY id LIMIT {_BATCH_SIZE}"  # noqa: S608
        last = 0
        while rows := self._execute(sql, (last, *standings)).fetchall():
            yield [_resource(row) for row in rows]
            last = rows[-1][0]

    def _linked_ids(self, source: int) -> set[int]:
        return {target for (target,) in self._execute("SELECT target FROM link WHERE source = ?", (source,))}

    def _find_alias_target(self, name: str) -> int | None:
        """Return the one that a name stands for which differs from it as described in `want`; None if there is none."""
        found = self._execute(
            "SELECT id FROM resource WHERE folded = ? LIMIT 1", (uri_names.fold_case(name),)
        ).fetchone()
        if found is None:
            roots = [uri_names.fold_case(each) for each in uri_names.default_page_names(name)]
            marks = ", ".join("?" * len(roots))
            sql = f"SELECT id FROM resource WHERE folded IN ({marks}) AND standing != 'missing' ORDER BY id LIMIT 1"  # noqa: S608
            found = self._execute(sql, roots).fetchone()
        if found is None:
            return None
        self._execute("INSERT INTO alias VALUES (?, ?)", (name, found[0]))
        return int(found[0])

    def _insert(self, wanted: NewResource) -> int:
        return int(self._execute(_ADD, _row(wanted)).lastrowid or 0)


def _row(wanted: NewResource) -> tuple[object, ...]:
    return wanted.name, uri_names.fold_case(wanted.name), wanted.uri, wanted.link_kind.value, wanted.hops


def _resource(
    row: tuple[int, str, str, str, str, int, str | None, int | None, str | None, int, int],
) -> RecoveryResource:
    number, name, uri, use, standing, hops, near, record, changed, was_recovered, is_linked = row
    return RecoveryResource(
        number, name, uri, LinkKind(use), ResourceStatus(standing), hops, near, record, changed, bool(was_recovered),
        bool(is_linked),
    )  # fmt: skip


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
                uri_names.fold_case(each.name),
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
