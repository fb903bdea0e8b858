"""Tables of the frontier: resources with status and queue, aliases, links, and candidate URLs from scripts."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby, islice

from unlost.html.links import LinkKind
from unlost.recovery.state.schema import RecoveryStateFile
from unlost.uri import names as uri_names


class ResourceStatus(StrEnum):
    """Status of a resource."""

    LISTED = "listed"
    """An archive lists it, but it is not fetched: it is skipped, or no link points to it."""
    QUEUED = "queued"
    RECOVERED = "recovered"
    SUBSTITUTED = "substituted"
    """No archive has it; it is replaced by a resource with the same path and another query."""
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class RecoveryResource:
    """A page or page requisite.

    Attributes:
        id: Id in the database.
        name: Page name (`unlost.uri.names`), which identifies it.
        uri: Its URL in the first spelling found.
        link_kind: The strongest kind of link to it.
        status: Its status.
        hops: Number of links between a start URL and it; for a requisite, that of its page.
        page_datetime: Datetime of the page that needs it, 14 digits; None if there is none.
        record: Id of its best record; None without one.
        changed: When it was last recovered or found missing, 14 digits; None if never.
        was_recovered: Whether it is recovered, or was before it was queued again.
        is_linked: Whether a link points to it. Otherwise it is known only from a listing.
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
    """A URL to enqueue, with the attributes of `RecoveryResource`."""

    name: str
    uri: str
    link_kind: LinkKind
    hops: int
    page_datetime: str | None = None


UNASSIGNED = ""
"""Archive id of queued resources that are not assigned to an archive yet."""
_WAS_RECOVERED = "changed IS NOT NULL AND reason IS NULL"
_COLUMNS = f"id, name, uri, use, standing, hops, near, record, changed, {_WAS_RECOVERED}, uses > 0"
_BATCH_SIZE = 400  # names or rows per query
_MAX_ROWS_PER_STATEMENT = 10_000  # SQLite holds the changed rows of a statement in memory until it ends
_LAST_RANK = 1 << 40  # above any rank
_LISTED_RANK = 1 << 39  # above any rank of linked resources
# Lower ranks come first: resources near a start URL, then those that many pages use. Page requisites come before the
# next pages, so that an interrupted recovery yields complete pages.
_RANK = """32 * {hops} + CASE {use} WHEN 'requisite' THEN 8 WHEN 'list' THEN 4 ELSE 0 END
- CASE WHEN {uses} < 2 THEN 0 WHEN {uses} < 4 THEN 4 WHEN {uses} < 8 THEN 8 WHEN {uses} < 32 THEN 12 ELSE 16 END"""
_NEW_RANK = _RANK.format(hops="?2", use="?3", uses="1")
_UPDATED_RANK = _RANK.format(hops="min(hops, ?2)", use="min(use, ?3)", uses="(uses + 1)")
# The names of link kinds sort from strong to weak (`list`, `page`, `requisite`), so min() selects the strongest. A
# resource that was only listed had no rank so far.
_ENQUEUE = f"""
UPDATE resource SET
    hops = CASE WHEN standing = 'listed' OR uses = 0 THEN ?2 ELSE min(hops, ?2) END,
    use = CASE WHEN standing = 'listed' OR uses = 0 THEN ?3 ELSE min(use, ?3) END,
    near = coalesce(near, ?4), uses = uses + 1,
    rank = CASE WHEN standing = 'listed' OR uses = 0 THEN {_NEW_RANK} ELSE {_UPDATED_RANK} END,
    reason = CASE standing WHEN 'listed' THEN NULL ELSE reason END,
    standing = CASE standing WHEN 'listed' THEN 'queued' ELSE standing END
WHERE id = ?1
"""  # noqa: S608  no external input in it
_ADD = """INSERT OR IGNORE INTO resource (name, folded, uri, use, hops, standing, archive)
VALUES (?, ?, ?, ?, ?, 'listed', '')"""


class RecoveryResourceTable:
    """The tables of resources, aliases and links."""

    def __init__(self, file: RecoveryStateFile) -> None:
        self._file = file
        self._execute = file.connection.execute
        self._execute_many = file.connection.executemany

    def enqueue(self, resources: Sequence[NewResource], source: int | None = None) -> list[int]:
        """Queue resources, or count another use of them; return their ids in order.

        A name that is not known and differs from a known one only in letter case or in the name of a default page
        becomes an alias of that.

        Args:
            resources: The resources to queue.
            source: Id of the resource that links to them; several links from it count as one use.
        """
        self._file.begin()
        known = self.find_ids({each.name for each in resources})
        for each in resources:
            if each.name not in known:
                known[each.name] = self._find_alias_target(each.name) or self._insert(each)
        already_linked = self._linked_ids(source) if source is not None else set()
        new = {known[each.name]: each for each in reversed(resources) if known[each.name] not in already_linked}
        self._execute_many(
            _ENQUEUE, [(id_, each.hops, each.link_kind.value, each.page_datetime) for id_, each in new.items()]
        )
        if source is not None:
            self._execute_many("INSERT INTO link VALUES (?, ?)", [(source, id_) for id_ in new])
        return [known[each.name] for each in resources]

    def deprioritize(self, ids: Collection[int]) -> None:
        """Move queued resources without other links to the end of the queue."""
        self._file.begin()
        self._execute_many(
            f"UPDATE resource SET rank = rank + {_LAST_RANK} WHERE id = ? AND standing = 'queued' AND uses = 1",  # noqa: S608
            [(id_,) for id_ in ids],
        )

    def enqueue_listed(self, ids: Collection[int]) -> None:
        """Queue listed resources after all linked ones."""
        self._file.begin()
        rank = _RANK.format(hops="hops", use="use", uses="0")
        self._execute_many(
            f"UPDATE resource SET standing = 'queued', archive = '{UNASSIGNED}', uses = 0, reason = NULL, "  # noqa: S608
            f"rank = {_LISTED_RANK} + {rank} WHERE id = ? AND standing = 'listed'",
            [(id_,) for id_ in ids],
        )

    def skip(self, reasons: Mapping[int, str]) -> None:
        """Mark listed resources as skipped, with the reason that is reported."""
        self._file.begin()
        self._execute_many(
            "UPDATE resource SET standing = 'listed', reason = ?, uses = 0 WHERE id = ?",
            [(reason, id_) for id_, reason in reasons.items()],
        )

    def clear_skip_reasons(self, resource_ids: Iterable[int] | None = None, reason: str | None = None) -> None:
        """Reset the decision to skip listed resources.

        Args:
            resource_ids: Ids of the resources; None for all.
            reason: Only resources skipped for this reason; None for any.
        """
        self._file.begin()
        sql = "UPDATE resource SET reason = NULL WHERE standing = 'listed' AND coalesce(?1, reason) = reason"
        if resource_ids is None:
            self._execute(sql, (reason,))
        else:
            self._execute_many(f"{sql} AND id = ?2", [(reason, resource_id) for resource_id in resource_ids])

    def undecided_batches(self) -> Iterator[list[RecoveryResource]]:
        """Yield the listed resources that were not skipped, in batches. They may be changed during iteration."""
        sql = f"SELECT {_COLUMNS} FROM resource WHERE id > ? AND standing = 'listed' AND reason IS NULL ORDER BY id LIMIT {_BATCH_SIZE}"  # noqa: S608, E501
        last = 0
        while rows := self._execute(sql, (last,)).fetchall():
            yield [_resource(row) for row in rows]
            last = rows[-1][0]

    def substitute(self, resource_id: int, other: int, changed: str, page_datetime: str | None) -> None:
        """Replace a resource that no archive has by another one.

        Args:
            resource_id: Id of the resource.
            other: Id of its substitute.
            changed: The current time, 14 digits.
            page_datetime: Datetime of the page that needs the resource, 14 digits.
        """
        self.finish(resource_id, ResourceStatus.SUBSTITUTED, changed, ResourceStatus.SUBSTITUTED.value)
        self._execute("INSERT OR REPLACE INTO substitute VALUES (?, ?)", (resource_id, other))
        self._execute("UPDATE resource SET near = coalesce(near, ?) WHERE id = ? AND uses = 0", (page_datetime, other))
        self.enqueue_listed([other])

    def without_substitute(self) -> list[RecoveryResource]:
        """Return the resources whose substitute was not recovered and is not queued."""
        rows = self._execute(
            f"SELECT {_COLUMNS} FROM resource WHERE standing = 'substituted' AND NOT EXISTS (SELECT 1 FROM substitute "  # noqa: S608
            "JOIN resource AS other ON other.id = substitute.other WHERE substitute.resource = resource.id "
            "AND (other.standing = 'queued' "
            "OR (other.changed IS NOT NULL AND other.reason IS NULL AND other.record IS NOT NULL)))"
        ).fetchall()
        return [_resource(row) for row in rows]

    def same_path(self, name: str) -> list[RecoveryResource]:
        """Return up to 100 resources with the same path and another query or none."""
        path = name.partition("?")[0]
        rows = self._execute(
            f"SELECT {_COLUMNS} FROM resource WHERE (name = ?1 OR (name >= ?1 || '?' AND name < ?1 || '@')) "  # noqa: S608
            "AND name != ?2 LIMIT 100",
            (path, name),
        )
        return [_resource(row) for row in rows]

    def queued_below(self, folder: str) -> list[RecoveryResource]:
        """Return up to 5,000 queued resources in a folder, which ends with a slash."""
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
        """Make a resource without a record an alias of another one, which gets its captures and links."""
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
            "UPDATE resource SET uses = resource.uses + merged.uses, hops = min(resource.hops, merged.hops), "
            "rank = CASE merged.standing WHEN 'queued' THEN min(resource.rank, merged.rank) ELSE resource.rank END, "
            "use = min(resource.use, merged.use), "
            "standing = CASE WHEN resource.standing = 'listed' THEN merged.standing ELSE resource.standing END, "
            "reason = CASE WHEN resource.standing = 'listed' THEN NULL ELSE resource.reason END "
            "FROM (SELECT * FROM resource WHERE id = :other) AS merged WHERE resource.id = :into",
            values,
        )
        self._execute("DELETE FROM resource WHERE id = :other", values)

    def add(self, listed: Collection[NewResource]) -> dict[str, int]:
        """Add listed resources unless they are known; return the ids by name.

        A name that is an alias remains one.
        """
        self._file.begin()
        known = self.find_ids({each.name for each in listed})
        new = {each.name: each for each in listed if each.name not in known}
        self._execute_many(_ADD, [_row(each) for each in new.values()])
        return known | self.find_ids(new)

    def find_ids(self, names: Collection[str]) -> dict[str, int]:
        """Return the ids of known resources by these names, including aliases."""
        ids: dict[str, int] = {}
        remaining = iter(names)
        while batch := list(islice(remaining, _BATCH_SIZE)):
            placeholders = ", ".join("?" * len(batch))
            ids.update(self._execute(f"SELECT name, id FROM resource WHERE name IN ({placeholders})", batch))  # noqa: S608
            if len(ids) < len(names):
                ids.update(self._execute(f"SELECT name, resource FROM alias WHERE name IN ({placeholders})", batch))  # noqa: S608
        return ids

    def next_queued(self, archive: str, in_flight: Collection[int]) -> RecoveryResource | None:
        """Return the first resource in the queue of an archive, or None.

        Args:
            archive: Id of the archive, or `UNASSIGNED`.
            in_flight: Ids of resources that are being fetched.
        """
        rows = self._execute(
            f"SELECT {_COLUMNS} FROM resource WHERE standing = 'queued' AND archive = ? ORDER BY rank, id LIMIT ?",  # noqa: S608
            (archive, len(in_flight) + 1),
        )
        return next((_resource(row) for row in rows if row[0] not in in_flight), None)

    def get(self, resource_id: int) -> RecoveryResource:
        """Return the resource with this id."""
        return _resource(self._execute(f"SELECT {_COLUMNS} FROM resource WHERE id = ?", (resource_id,)).fetchone())  # noqa: S608

    def assign(self, resource_id: int, archive: str) -> None:
        """Assign a resource to an archive."""
        self._file.begin()
        self._execute("UPDATE resource SET archive = ? WHERE id = ?", (archive, resource_id))

    def assign_all(self, before: str, archive: str = UNASSIGNED) -> None:
        """Reassign all queued resources of one archive to another."""
        self._file.begin()
        self._execute("UPDATE resource SET archive = ? WHERE standing = 'queued' AND archive = ?", (archive, before))

    def finish(self, resource_id: int, status: ResourceStatus, changed: str, reason: str | None = None) -> None:
        """Set the final status of a resource, with the time (14 digits) and for missing ones the reason."""
        self._file.begin()
        self._execute(
            "UPDATE resource SET standing = ?, changed = ?, reason = ? WHERE id = ?",
            (status.value, changed, reason, resource_id),
        )
        self._execute("DELETE FROM substitute WHERE resource = ?", (resource_id,))

    def find_case_variant(self, name: str) -> str | None:
        """Return the URL of a resource whose name differs only in letter case, or None."""
        row = self._execute(
            "SELECT uri FROM resource WHERE folded = ? LIMIT 1", (uri_names.fold_case(name),)
        ).fetchone()
        return None if row is None else str(row[0])

    def is_linked(self, resource_id: int) -> bool:
        """Return whether another resource links to this one."""
        return self._execute("SELECT 1 FROM link WHERE target = ? LIMIT 1", (resource_id,)).fetchone() is not None

    def has_followed_links(self, resource_id: int) -> bool:
        """Return whether links of this resource were followed."""
        return self._execute("SELECT 1 FROM link WHERE source = ? LIMIT 1", (resource_id,)).fetchone() is not None

    def reset_discovery(self) -> None:
        """Forget how resources were found, because the scope has changed.

        Recovered resources are queued, so that their links are followed again. Others become listed, or are deleted if
        no archive lists them.
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

    def unqueue(self, resource_id: int) -> None:
        """Remove a resource from the queue: it becomes listed, or is deleted if no archive lists it."""
        self._file.begin()
        self._execute("UPDATE resource SET standing = 'listed', uses = 0, reason = NULL WHERE id = ?", (resource_id,))
        self._execute("DELETE FROM asked WHERE resource = ?", (resource_id,))
        self._execute("DELETE FROM substitute WHERE ? IN (resource, other)", (resource_id,))  # SQLite may reuse the id
        self._execute(
            "DELETE FROM resource WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM capture WHERE resource = ?1)",
            (resource_id,),
        )

    def set_best_record(self, resource_id: int, record: int | None) -> None:
        """Set the best record of a resource."""
        self._file.begin()
        self._execute("UPDATE resource SET record = ? WHERE id = ?", (record, resource_id))

    def requeue(self, condition: str, *values: object) -> int:
        """Queue the resources that meet a trusted SQL condition; return their number."""
        self._file.begin()
        changed = self._execute(
            f"UPDATE resource SET standing = 'queued', archive = '{UNASSIGNED}' WHERE standing != 'queued' AND {condition}",  # noqa: S608, E501
            values,
        )
        return changed.rowcount

    def counts(self) -> dict[ResourceStatus, int]:
        """Return the number of resources by status."""
        counts = dict(self._execute("SELECT standing, count(*) FROM resource GROUP BY standing"))
        return {status: counts.get(status.value, 0) for status in ResourceStatus}

    def count_recovered(self) -> int:
        """Return the number of resources that are recovered, or were before they were queued again."""
        return int(self._execute(f"SELECT count(*) FROM resource WHERE {_WAS_RECOVERED}").fetchone()[0])  # noqa: S608

    def other_host_sizes(self, host: str) -> Iterator[tuple[str, int]]:
        """Yield URL and stored size in bytes of resources on other hosts that are or will be fetched."""
        rows = self._execute(
            "SELECT resource.uri, coalesce(record.size, 0) FROM resource "
            "LEFT JOIN record ON record.id = resource.record "
            "WHERE (name < ?1 || '/' OR name >= ?1 || '0') AND standing != 'listed'",
            (host,),
        )
        yield from rows

    def count_doubtful(self) -> int:
        """Return the number of recovered resources whose only captures were rejected by the classifier."""
        return int(
            self._execute(
                "SELECT count(*) FROM resource JOIN rejected ON rejected.record = resource.record "
                "WHERE standing = 'recovered'"
            ).fetchone()[0]
        )

    def count_skipped(self) -> dict[str, int]:
        """Return the number of skipped resources by reason."""
        rows = self._execute(
            "SELECT reason, count(*) FROM resource WHERE standing = 'listed' AND reason IS NOT NULL GROUP BY reason"
        )
        return dict(rows)

    def count_failed(self) -> int:
        """Return the number of resources that are missing because an archive failed."""
        return int(
            self._execute("SELECT count(*) FROM resource WHERE standing = 'missing' AND reason = 'failed'").fetchone()[
                0
            ]
        )

    def count_queued_by_archive(self) -> dict[str, int]:
        """Return the number of queued resources by assigned archive."""
        return dict(self._execute("SELECT archive, count(*) FROM resource WHERE standing = 'queued' GROUP BY archive"))

    def batches(self, *statuses: ResourceStatus) -> Iterator[list[RecoveryResource]]:
        """Yield the resources with these statuses in batches, in order of discovery.

        They may be changed during iteration.
        """
        marks = ", ".join("?" * len(statuses))
        sql = f"SELECT {_COLUMNS} FROM resource WHERE id > ? AND standing IN ({marks}) ORDER BY id LIMIT {_BATCH_SIZE}"  # noqa: S608
        last = 0
        while rows := self._execute(sql, (last, *statuses)).fetchall():
            yield [_resource(row) for row in rows]
            last = rows[-1][0]

    def _linked_ids(self, source: int) -> set[int]:
        return {target for (target,) in self._execute("SELECT target FROM link WHERE source = ?", (source,))}

    def _find_alias_target(self, name: str) -> int | None:
        """Return the id of the resource that a name becomes an alias of, as in `enqueue`; None without one."""
        row = self._execute("SELECT id FROM resource WHERE folded = ? LIMIT 1", (uri_names.fold_case(name),)).fetchone()
        if row is None:
            roots = [uri_names.fold_case(each) for each in uri_names.default_page_names(name)]
            marks = ", ".join("?" * len(roots))
            sql = f"SELECT id FROM resource WHERE folded IN ({marks}) AND standing != 'missing' ORDER BY id LIMIT 1"  # noqa: S608
            row = self._execute(sql, roots).fetchone()
        if row is None:
            return None
        self._execute("INSERT INTO alias VALUES (?, ?)", (name, row[0]))
        return int(row[0])

    def _insert(self, resource: NewResource) -> int:
        return int(self._execute(_ADD, _row(resource)).lastrowid or 0)


def _row(resource: NewResource) -> tuple[object, ...]:
    return resource.name, uri_names.fold_case(resource.name), resource.uri, resource.link_kind.value, resource.hops


def _resource(
    row: tuple[int, str, str, str, str, int, str | None, int | None, str | None, int, int],
) -> RecoveryResource:
    id_, name, uri, link_kind, status, hops, page_datetime, record, changed, was_recovered, is_linked = row
    return RecoveryResource(
        id_, name, uri, LinkKind(link_kind), ResourceStatus(status), hops, page_datetime, record, changed,
        bool(was_recovered), bool(is_linked),
    )  # fmt: skip


MAX_CANDIDATES = 100_000
"""Candidates that are stored, about 20 MB. A site with more generates them."""
_PENDING_CANDIDATES = "SELECT name, uri, use, hops, near FROM candidate WHERE wanted = 0"
_IS_LISTED = """EXISTS (
    SELECT 1 FROM resource WHERE resource.folded = candidate.folded AND resource.standing = 'listed'
    AND EXISTS (SELECT 1 FROM capture WHERE capture.resource = resource.id))"""
_IS_UNKNOWN = "NOT EXISTS (SELECT 1 FROM resource WHERE resource.folded = candidate.folded)"
_NAMES_PER_QUERY = 400


class CandidateTable:
    """The table of URLs guessed from scripts. Each is enqueued once, until `reset_enqueued`."""

    def __init__(self, file: RecoveryStateFile) -> None:
        self._file = file
        self._execute = file.connection.execute
        self._count: int | None = None

    def add(self, candidates: Iterable[NewResource]) -> int:
        """Store candidates; return how many were dropped because of the limit."""
        self._file.begin()
        if self._count is None:
            self._count = int(self._execute("SELECT count(*) FROM candidate").fetchone()[0])
        dropped = 0
        sql = "INSERT OR IGNORE INTO candidate (name, folded, uri, use, hops, near) VALUES (?, ?, ?, ?, ?, ?)"
        for each in candidates:
            if self._count >= MAX_CANDIDATES:
                dropped += 1
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
        return dropped

    def pending_listed(self, names: Sequence[str] | None = None) -> list[NewResource]:
        """Return the listed candidates that were not enqueued yet.

        Args:
            names: Page names of the candidates to consider; None for all.
        """
        return self._pending(_IS_LISTED, names)

    def pending_unknown(self, limit: int, names: Sequence[str] | None = None) -> list[NewResource]:
        """Return up to `limit` candidates that were not enqueued yet and are not known as resources."""
        return self._pending(_IS_UNKNOWN, names)[: max(limit, 0)]

    def _pending(self, condition: str, names: Sequence[str] | None) -> list[NewResource]:
        if names is None:
            return list(map(_candidate, self._execute(f"{_PENDING_CANDIDATES} AND {condition} ORDER BY rowid")))
        candidates: list[NewResource] = []
        for start in range(0, len(names), _NAMES_PER_QUERY):
            batch = names[start : start + _NAMES_PER_QUERY]
            marks = ", ".join("?" * len(batch))
            rows = self._execute(f"{_PENDING_CANDIDATES} AND name IN ({marks}) AND {condition} ORDER BY rowid", batch)
            candidates.extend(map(_candidate, rows))
        return candidates

    def mark_enqueued(self, candidates: Iterable[NewResource]) -> None:
        """Mark candidates as enqueued."""
        self._file.begin()
        self._file.connection.executemany(
            "UPDATE candidate SET wanted = 1 WHERE name = ?", [(each.name,) for each in candidates]
        )

    def count_enqueued(self) -> int:
        """Return the number of candidates that are or were enqueued."""
        return int(self._execute("SELECT count(*) FROM candidate WHERE wanted = 1").fetchone()[0])

    def is_candidate(self, resource: int) -> bool:
        """Return whether a resource was enqueued as a candidate and has no other link."""
        sql = """SELECT 1 FROM resource JOIN candidate USING (folded) WHERE resource.id = ?1 AND candidate.wanted = 1
            AND NOT EXISTS (SELECT 1 FROM link WHERE link.target = ?1) LIMIT 1"""
        return self._execute(sql, (resource,)).fetchone() is not None

    def reset_enqueued(self) -> None:
        """Allow candidates that are not queued to be enqueued again, because archives may have gained captures."""
        self._file.begin()
        self._execute(
            "UPDATE candidate SET wanted = 0 WHERE NOT EXISTS "
            "(SELECT 1 FROM resource WHERE resource.folded = candidate.folded AND resource.standing = 'queued')"
        )

    def clear(self) -> None:
        """Delete all candidates, because the scope has changed."""
        self._file.begin()
        self._execute("DELETE FROM candidate")
        self._count = 0


def _candidate(row: tuple[str, str, str, int, str | None]) -> NewResource:
    name, uri, link_kind, hops, page_datetime = row
    return NewResource(name, uri, LinkKind(link_kind), hops, page_datetime)
