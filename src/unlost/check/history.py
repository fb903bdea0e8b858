# ruff: noqa: S608  only names of tables and columns are inserted into statements
"""All visits of a site and their observations, stored as runs of equal observations."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from unlost.check.availability import AvailabilityState, is_live_resource
from unlost.check.visit_store import CurrentVisit, SiteVisit, VisitDatabase, VisitStage
from unlost.crawl.models import CrawlOutcome
from unlost.sqlite import decode_text, encode_text, transaction


@dataclass(frozen=True, slots=True)
class Observation:
    """The observation of a resource at one visit.

    Attributes:
        time: Start of the visit, in seconds since 1970.
        is_live: Whether the resource was on the web; None if unknown.
        is_held: Whether the archive held it; None if unknown.
    """

    time: float
    is_live: bool | None
    is_held: bool | None


ANY_ARCHIVE = ""
"""The archive id that stands for any archive in the table of spans."""
_VISIT_COLUMNS = "id, site, time, stage, before"
_SITE_RESOURCES = "SELECT id FROM resource WHERE site = ?"


@dataclass(frozen=True, slots=True)
class FinishedVisit:
    """A finished visit.

    Attributes:
        id: The visit's id.
        time: Start of the visit, in seconds since 1970.
        is_dated: Whether `time` is reliable: it is not if the clock was set back afterwards.
        states: Number of resources in each state.
        new_resources: Number of resources on the web that no earlier visit saw.
        health: Health of the site, a value of `SiteHealth`; None if it was not checked.
        reason: Explanation of the health.
    """

    id: int
    time: float
    is_dated: bool
    states: Counter[AvailabilityState]
    new_resources: int
    health: str | None
    reason: str | None


class VisitHistory:
    """The visits of one site. Times are in seconds since 1970."""

    def __init__(self, file: VisitDatabase, site: int) -> None:
        self._file = file
        self._data = file.connection
        self.site = site

    def unfinished_visit(self) -> SiteVisit | None:
        """Return the unfinished visit; None if there is none."""
        row = self._data.execute(
            f"SELECT {_VISIT_COLUMNS} FROM visit WHERE site = ? AND stage <> ? ORDER BY id DESC LIMIT 1",
            (self.site, VisitStage.DONE),
        ).fetchone()
        return None if row is None else _make_visit(row)

    def begin_visit(self, now: float) -> tuple[SiteVisit, int]:
        """Begin a visit, and delete the data of an unfinished one.

        Returns:
            The visit, and how many earlier visits lost their dates because the clock was set back.
        """
        with transaction(self._data):
            self._clear_last_visit()
            self._data.execute("DELETE FROM visit WHERE site = ? AND stage <> ?", (self.site, VisitStage.DONE))
            undated = self._data.execute(
                "UPDATE visit SET is_dated = 0 WHERE site = ? AND is_dated AND time >= ?", (self.site, now)
            ).rowcount
            before = self._data.execute("SELECT max(id) FROM visit WHERE site = ?", (self.site,)).fetchone()[0]
            row = self._data.execute(
                f"INSERT INTO visit (site, time, stage, before) VALUES (?, ?, ?, ?) RETURNING {_VISIT_COLUMNS}",
                (self.site, now, VisitStage.BEGUN, before),
            ).fetchone()
        return _make_visit(row), int(undated)

    def discard_visit(self, visit: SiteVisit) -> None:
        """Delete an unfinished visit and everything it observed."""
        with transaction(self._data):
            self._clear_last_visit()
            self._data.execute("DELETE FROM visit WHERE id = ? AND stage <> ?", (visit.id, VisitStage.DONE))

    def current_visit(self, visit: SiteVisit) -> CurrentVisit:
        """Return the tables of the visit in progress."""
        return CurrentVisit(self._file, visit)

    def finish_visit(
        self, visit: SiteVisit, archives: Iterable[str], also: Callable[[], object] = lambda: None
    ) -> Counter[AvailabilityState]:
        """Finish a visit: add its observations to the history, in one transaction.

        Args:
            visit: The visit.
            archives: Ids of the archives that were queried.
            also: Runs in the same transaction.

        Returns:
            The number of resources in each state.
        """
        states: Counter[AvailabilityState] = Counter()
        queried = tuple(archives)
        with transaction(self._data):
            current = self.current_visit(visit)
            listed_archives = current.complete_listings()
            answered = current.answered_queries()
            new_resources = 0
            for resource_id, availability in current.numbered_availabilities(queried):
                states[availability.state] += 1
                live = availability.live
                is_good = is_live_resource(live) and live.outcome is CrawlOutcome.FETCHED
                new_resources += is_good and self._count_download(resource_id, visit.id, live.digest, live.mime)
                self._extend_span("live_span", (resource_id,), "is_live", visit, availability.is_live)
                if availability.is_held is not None:
                    self._extend_span("held_span", (resource_id, ANY_ARCHIVE), "is_held", visit, availability.is_held)
                holders = {each.archive for each in availability.held}
                for archive in queried:
                    if archive in holders or archive in listed_archives or (resource_id, archive) in answered:
                        self._extend_span("held_span", (resource_id, archive), "is_held", visit, archive in holders)
            self._data.execute(
                "UPDATE visit SET stage = ?, fresh = ?, replicated = ?, endangered = ?, vulnerable = ?, "
                "unrecoverable = ?, unknown = ? WHERE id = ?",
                (VisitStage.DONE, new_resources, *(states[state] for state in AvailabilityState), visit.id),
            )
            also()
        return states

    def finished_visits(self) -> list[FinishedVisit]:
        """Return all finished visits in order."""
        rows = self._data.execute(
            "SELECT id, time, is_dated, fresh, look, reason, replicated, endangered, vulnerable, unrecoverable, "
            "unknown FROM visit WHERE site = ? AND stage = ? ORDER BY id",
            (self.site, VisitStage.DONE),
        )
        return [
            FinishedVisit(
                visit_id,
                time,
                bool(is_dated),
                Counter(dict(zip(AvailabilityState, counts, strict=True))),
                new_resources,
                health,
                decode_text(reason),
            )
            for visit_id, time, is_dated, new_resources, health, reason, *counts in rows
        ]

    def last_time(self) -> float | None:
        """Return when the last finished visit began; None if there is none."""
        row = self._data.execute(
            "SELECT time FROM visit WHERE site = ? AND stage = ? ORDER BY id DESC LIMIT 1", (self.site, VisitStage.DONE)
        ).fetchone()
        return None if row is None else float(row[0])

    def known_urls(self, limit: int) -> list[str]:
        """Return URLs that were on the web at some visit, the earliest seen first."""
        rows = self._data.execute(
            "SELECT uri FROM resource WHERE site = ? AND first_live IS NOT NULL ORDER BY id LIMIT ?", (self.site, limit)
        )
        return [decode_text(uri) for (uri,) in rows]

    def archives(self) -> list[str]:
        """Return the archives that have ever responded."""
        rows = self._data.execute(
            f"SELECT DISTINCT archive FROM held_span WHERE resource IN ({_SITE_RESOURCES}) AND archive <> ? ORDER "
            "BY archive",
            (self.site, ANY_ARCHIVE),
        )
        return [str(archive) for (archive,) in rows]

    def observations(self, archive: str = ANY_ARCHIVE) -> Iterator[tuple[str, str | None, list[Observation]]]:
        """Yield the URL, the media type and the observations of every resource that was ever on the web.

        Only dated visits count.

        Args:
            archive: Id of the archive whose holdings are observed; any archive by default.
        """
        times = {each.id: each.time for each in self.finished_visits() if each.is_dated}
        for resource_id, uri, mime in self._data.execute(
            "SELECT id, uri, mime FROM resource WHERE site = ? AND first_live IS NOT NULL ORDER BY id", (self.site,)
        ).fetchall():
            live_by_visit = dict(self._dated_values("live_span", "is_live", "resource = ?", (resource_id,), times))
            held_by_visit = dict(
                self._dated_values(
                    "held_span", "is_held", "resource = ? AND archive = ?", (resource_id, archive), times
                )
            )
            observations = [
                Observation(time, live_by_visit.get(visit), held_by_visit.get(visit))
                for visit, time in times.items()
                if visit in live_by_visit or visit in held_by_visit
            ]
            yield decode_text(uri), decode_text(mime), observations

    def changes(self) -> Iterator[tuple[str, int, int]]:
        """Yield the URL, the number of downloads and the number of changes between them of each resource."""
        for uri, downloads, changes in self._data.execute(
            "SELECT uri, downloads, changes FROM resource WHERE site = ? AND downloads > 0 ORDER BY id", (self.site,)
        ):
            yield decode_text(uri), int(downloads), int(changes)

    def _dated_values(
        self, table: str, value: str, where: str, arguments: tuple[object, ...], times: dict[int, float]
    ) -> Iterator[tuple[int, bool]]:
        """Yield the id of each dated visit that observed a value, and the value."""
        visits = list(times)
        spans = self._data.execute(f"SELECT first, last, {value} FROM {table} WHERE {where} ORDER BY first", arguments)
        index = 0
        for first, last, observed in spans:
            while index < len(visits) and visits[index] < first:
                index += 1
            while index < len(visits) and visits[index] <= last:
                yield visits[index], bool(observed)
                index += 1

    def _count_download(self, resource_id: int, visit: int, digest: str | None, mime: str | None) -> bool:
        """Count a download; return whether no earlier visit saw the resource."""
        first, before = self._data.execute(
            "SELECT first_live, digest FROM resource WHERE id = ?", (resource_id,)
        ).fetchone()
        has_changed = None not in (before, digest) and before != digest
        self._data.execute(
            "UPDATE resource SET first_live = ?, downloads = downloads + 1, changes = changes + ?, digest = ?, "
            "mime = ? WHERE id = ?",
            (visit if first is None else first, has_changed, digest or before, encode_text(mime), resource_id),
        )
        return first is None

    def _extend_span(self, table: str, key: tuple[object, ...], value: str, visit: SiteVisit, observed: bool) -> None:
        """Extend the span that ends at the previous visit if the value is unchanged; otherwise begin a new one."""
        names = ("resource", "archive")[: len(key)]
        where = " AND ".join(f"{name} = ?" for name in names)
        cursor = self._data.execute(
            f"UPDATE {table} SET last = ? WHERE {where} AND last = ? AND {value} = ?",
            (visit.id, *key, visit.before, observed),
        )
        if not cursor.rowcount:
            columns = ", ".join((*names, "first", "last", value))
            placeholders = ", ".join("?" * (len(names) + 3))
            self._data.execute(
                f"INSERT INTO {table} ({columns}) VALUES ({placeholders})", (*key, visit.id, visit.id, observed)
            )

    def _clear_last_visit(self) -> None:
        """Delete the data of the last visit that is not part of the history."""
        for table in ("live", "held", "asked", "judged"):
            self._data.execute(f"DELETE FROM {table} WHERE resource IN ({_SITE_RESOURCES})", (self.site,))
        self._data.execute("DELETE FROM listed WHERE site = ?", (self.site,))


def _make_visit(row: tuple[int, int, float, str, int | None]) -> SiteVisit:
    visit_id, site, time, stage, before = row
    return SiteVisit(visit_id, site, time, VisitStage(stage), before)
