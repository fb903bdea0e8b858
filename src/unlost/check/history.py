# ruff: noqa: S608  what is put into statements are names of our own tables and columns
"""All visits of a site: begun, ended, and what they observed, stored as runs of equal observations."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from unlost.check.availability import AvailabilityState, is_live_resource
from unlost.check.visit_store import CurrentVisit, SiteVisit, VisitDatabase, VisitStage
from unlost.crawl.models import CrawlOutcome
from unlost.sqlite import decode_text, encode_text, transaction


@dataclass(frozen=True, slots=True)
class Observation:
    """What one visit saw of a resource.

    time: of the visit, in seconds since 1970. is_live: whether it was on the web. is_held: whether the archive had it.
    None if that was not found out.
    """

    time: float
    is_live: bool | None
    is_held: bool | None


ANY_ARCHIVE = ""
"""Stands in spans for all archives together."""
_VISIT_COLUMNS = "id, site, time, stage, before"
_SITE_RESOURCES = "SELECT id FROM resource WHERE site = ?"


@dataclass(frozen=True, slots=True)
class FinishedVisit:
    """One visit that is over.

    time: when it was begun, in seconds since 1970. is_dated: whether that can be believed: if the clock went back
    afterwards, it cannot. states: how many resources were in which. fresh: how many were on the web that were never
    seen before. look, reason: how the site looked, in a word and in words.
    """

    id: int
    time: float
    is_dated: bool
    states: Counter[AvailabilityState]
    new_resources: int
    look: str | None
    reason: str | None


class VisitHistory:
    """The visits of one site. clock times are seconds since 1970."""

    def __init__(self, file: VisitDatabase, site: int) -> None:
        self._file = file
        self._data = file.connection
        self.site = site

    def unfinished_visit(self) -> SiteVisit | None:
        """Return the visit that was begun and has not ended; None if there is none."""
        row = self._data.execute(
            f"SELECT {_VISIT_COLUMNS} FROM visit WHERE site = ? AND stage <> ? ORDER BY id DESC LIMIT 1",
            (self.site, VisitStage.DONE),
        ).fetchone()
        return None if row is None else _make_visit(row)

    def begin_visit(self, now: float) -> tuple[SiteVisit, int]:
        """Begin a visit; return it, and how many visits lost their dates since the clock had gone back behind them.

        What a visit left that did not end is forgotten.
        """
        with transaction(self._data):
            self._clear_last_visit()
            self._data.execute("DELETE FROM visit WHERE site = ? AND stage <> ?", (self.site, VisitStage.DONE))
            struck = self._data.execute(
                "UPDATE visit SET is_dated = 0 WHERE site = ? AND is_dated AND time >= ?", (self.site, now)
            ).rowcount
            before = self._data.execute("SELECT max(id) FROM visit WHERE site = ?", (self.site,)).fetchone()[0]
            row = self._data.execute(
                f"INSERT INTO visit (site, time, stage, before) VALUES (?, ?, ?, ?) RETURNING {_VISIT_COLUMNS}",
                (self.site, now, VisitStage.BEGUN, before),
            ).fetchone()
        return _make_visit(row), int(struck)

    def discard_visit(self, visit: SiteVisit) -> None:
        """Forget a visit that is not over, and everything that it saw."""
        with transaction(self._data):
            self._clear_last_visit()
            self._data.execute("DELETE FROM visit WHERE id = ? AND stage <> ?", (visit.id, VisitStage.DONE))

    def current_visit(self, visit: SiteVisit) -> CurrentVisit:
        """Return the tables of a visit that goes on."""
        return CurrentVisit(self._file, visit)

    def finish_visit(
        self, visit: SiteVisit, archives: Iterable[str], also: Callable[[], object] = lambda: None
    ) -> Counter[AvailabilityState]:
        """End a visit: put what it saw behind what others saw, all at once; return how many are in which state.

        also: what else is to be changed with it, or not at all.
        """
        states: Counter[AvailabilityState] = Counter()
        asked_of = tuple(archives)
        with transaction(self._data):
            present = self.current_visit(visit)
            whole = present.complete_listings()
            answered = present.answered_queries()
            fresh = 0
            for number, standing in present.numbered_availabilities(asked_of):
                states[standing.state] += 1
                live = standing.live
                is_good = is_live_resource(live) and live.outcome is CrawlOutcome.FETCHED
                fresh += is_good and self._count_download(number, visit.id, live.digest, live.mime)
                self._extend_span("live_span", (number,), "is_live", visit, standing.is_live)
                if standing.is_held is not None:
                    self._extend_span("held_span", (number, ANY_ARCHIVE), "is_held", visit, standing.is_held)
                has = {each.archive for each in standing.held}
                for archive in asked_of:
                    if archive in has or archive in whole or (number, archive) in answered:
                        self._extend_span("held_span", (number, archive), "is_held", visit, archive in has)
            self._data.execute(
                "UPDATE visit SET stage = ?, fresh = ?, replicated = ?, endangered = ?, vulnerable = ?, "
                "unrecoverable = ?, unknown = ? WHERE id = ?",
                (VisitStage.DONE, fresh, *(states[state] for state in AvailabilityState), visit.id),
            )
            also()
        return states

    def finished_visits(self) -> list[FinishedVisit]:
        """Return all visits that are over, in their order."""
        rows = self._data.execute(
            "SELECT id, time, is_dated, fresh, look, reason, replicated, endangered, vulnerable, unrecoverable, "
            "unknown FROM visit WHERE site = ? AND stage = ? ORDER BY id",
            (self.site, VisitStage.DONE),
        )
        return [
            FinishedVisit(
                number,
                time,
                bool(is_dated),
                Counter(dict(zip(AvailabilityState, counts, strict=True))),
                fresh,
                look,
                decode_text(reason),
            )
            for number, time, is_dated, fresh, look, reason, *counts in rows
        ]

    def last_time(self) -> float | None:
        """Return when the last visit was that is over; None if there was none."""
        row = self._data.execute(
            "SELECT time FROM visit WHERE site = ? AND stage = ? ORDER BY id DESC LIMIT 1", (self.site, VisitStage.DONE)
        ).fetchone()
        return None if row is None else float(row[0])

    def known_urls(self, limit: int) -> list[str]:
        """Return addresses that were on the web at some visit, those that were first seen first."""
        rows = self._data.execute(
            "SELECT uri FROM resource WHERE site = ? AND first_live IS NOT NULL ORDER BY id LIMIT ?", (self.site, limit)
        )
        return [decode_text(uri) for (uri,) in rows]

    def archives(self) -> list[str]:
        """Return the archives that have ever answered."""
        rows = self._data.execute(
            f"SELECT DISTINCT archive FROM held_span WHERE resource IN ({_SITE_RESOURCES}) AND archive <> ? ORDER "
            "BY archive",
            (self.site, ANY_ARCHIVE),
        )
        return [str(archive) for (archive,) in rows]

    def observations(self, archive: str = ANY_ARCHIVE) -> Iterator[tuple[str, str | None, list[Observation]]]:
        """Yield the address and the type of every resource that was ever on the web, and what dated visits saw of it.

        archive: of which one; all together if none is named.
        """
        times = {each.id: each.time for each in self.finished_visits() if each.is_dated}
        for number, uri, mime in self._data.execute(
            "SELECT id, uri, mime FROM resource WHERE site = ? AND first_live IS NOT NULL ORDER BY id", (self.site,)
        ).fetchall():
            lives = dict(self._dated_values("live_span", "is_live", "resource = ?", (number,), times))
            holds = dict(
                self._dated_values("held_span", "is_held", "resource = ? AND archive = ?", (number, archive), times)
            )
            found = [
                Observation(time, lives.get(visit), holds.get(visit))
                for visit, time in times.items()
                if visit in lives or visit in holds
            ]
            yield decode_text(uri), decode_text(mime), found

    def changes(self) -> Iterator[tuple[str, int, int]]:
        """Yield the address of each resource, how often it was downloaded, and how often it had changed since."""
        for uri, downloads, changes in self._data.execute(
            "SELECT uri, downloads, changes FROM resource WHERE site = ? AND downloads > 0 ORDER BY id", (self.site,)
        ):
            yield decode_text(uri), int(downloads), int(changes)

    def _dated_values(
        self, table: str, value: str, where: str, arguments: tuple[object, ...], times: dict[int, float]
    ) -> Iterator[tuple[int, bool]]:
        """Yield which dated visits saw something, and what."""
        order = list(times)
        spans = self._data.execute(f"SELECT first, last, {value} FROM {table} WHERE {where} ORDER BY first", arguments)
        place = 0
        for first, last, is_so in spans:
            while place < len(order) and order[place] < first:
                place += 1
            while place < len(order) and order[place] <= last:
                yield order[place], bool(is_so)
                place += 1

    def _count_download(self, number: int, visit: int, digest: str | None, mime: str | None) -> bool:
        """Count a download; return whether the resource was never seen before."""
        first, before = self._data.execute("SELECT first_live, digest FROM resource WHERE id = ?", (number,)).fetchone()
        has_changed = None not in (before, digest) and before != digest
        self._data.execute(
            "UPDATE resource SET first_live = ?, downloads = downloads + 1, changes = changes + ?, digest = ?, "
            "mime = ? WHERE id = ?",
            (visit if first is None else first, has_changed, digest or before, encode_text(mime), number),
        )
        return first is None

    def _extend_span(self, table: str, place: tuple[object, ...], value: str, visit: SiteVisit, is_so: bool) -> None:
        """Let the span that ended with the visit before go on, if that saw the same; else begin one."""
        names = ("resource", "archive")[: len(place)]
        where = " AND ".join(f"{name} = ?" for name in names)
        done = self._data.execute(
            f"UPDATE {table} SET last = ? WHERE {where} AND last = ? AND {value} = ?",
            (visit.id, *place, visit.before, is_so),
        )
        if not done.rowcount:
            columns = ", ".join((*names, "first", "last", value))
            marks = ", ".join("?" * (len(names) + 3))
            self._data.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", (*place, visit.id, visit.id, is_so))

    def _clear_last_visit(self) -> None:
        """Forget what the last visit has left of its own."""
        for table in ("live", "held", "asked", "judged"):
            self._data.execute(f"DELETE FROM {table} WHERE resource IN ({_SITE_RESOURCES})", (self.site,))
        self._data.execute("DELETE FROM listed WHERE site = ?", (self.site,))


def _make_visit(row: tuple[int, int, float, str, int | None]) -> SiteVisit:
    number, site, time, stage, before = row
    return SiteVisit(number, site, time, VisitStage(stage), before)
