"""The visit that goes on: what was seen on the web, what archives were asked and have; kept as it comes."""

# ruff: noqa: S608  what is put into statements are names of our own tables and columns

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from unlost import dates
from unlost.crawl.resource import LiveResource, Outcome
from unlost.measure.availability.standing import Held, Standing
from unlost.measure.availability.states import is_counted, is_live
from unlost.measure.visits.file import VisitsFile
from unlost.state_file import storable, text_of
from unlost.transactions import transaction

_FIELDS = (
    "uri, outcome, status, mime, length, digest, seen, last_modified, redirect, hops, linked_from, is_in_sitemap, "
    "is_noarchive, cache_control"
)
_SET = ", ".join(f"{name} = excluded.{name}" for name in _FIELDS.split(", "))
_LIVE_FIELDS = ", ".join(f"live.{name}" for name in _FIELDS.split(", "))
_SEEN = "live JOIN resource ON resource.id = live.resource WHERE resource.site = ?"
_PART = 500  # rows at once


class Stage(StrEnum):
    """How far a visit has come."""

    BEGUN = "begun"
    CRAWLED = "crawled"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Visit:
    """One visit of a site. time: when it was begun, in seconds since 1970. before: the visit before it."""

    id: int
    site: int
    time: float
    stage: Stage
    before: int | None


@dataclass(frozen=True, slots=True)
class Listed:
    """How a lister query ended.

    is_whole: whether everything was listed. rows: captures. beside: addresses that it has and the site was not seen to.
    """

    archive: str
    prefix: str
    is_whole: bool
    rows: int = 0
    beside: int = 0
    message: str | None = None


class Present:
    """The tables of the visit that goes on."""

    def __init__(self, file: VisitsFile, visit: Visit) -> None:
        self.visit = visit
        self._data = file.connection

    def _change(self) -> AbstractContextManager[None]:
        return transaction(self._data)

    def see(self, resources: Sequence[LiveResource]) -> None:
        """Keep what was seen on the web.

        Addresses with one key are one resource, and the best answer counts: `http://` often redirects to `https://`.
        """
        with self._change():
            for each in resources:
                number = self._number(each)
                before = self._seen(number)
                if before is None or before.uri == each.uri or _worth(before) < _worth(each):
                    self._data.execute(
                        f"INSERT INTO live (resource, {_FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                        f"ON CONFLICT (resource) DO UPDATE SET {_SET}",
                        (number, *_columns(each)),
                    )

    def crawled(self) -> None:
        """Note that all was seen that there is to see."""
        self._data.execute("UPDATE visit SET stage = ? WHERE id = ?", (Stage.CRAWLED, self.visit.id))

    def seen(self) -> int:
        """Return how many addresses were seen."""
        return int(self._data.execute(f"SELECT count(*) FROM {_SEEN}", (self.visit.site,)).fetchone()[0])

    def is_seen(self, keys: Sequence[str]) -> set[str]:
        """Return which of these were seen on the web, or at least looked for."""
        found: set[str] = set()
        for start in range(0, len(keys), _PART):
            part = keys[start : start + _PART]
            marks = ", ".join("?" * len(part))
            rows = self._data.execute(f"SELECT key FROM {_SEEN} AND key IN ({marks})", (self.visit.site, *part))
            found.update(str(key) for (key,) in rows)
        return found

    def note_list(self, listed: Listed, held: Mapping[str, Held]) -> None:
        """Keep what an archive lists, by key, and how that ended: all at once. Only what was seen is kept."""
        with self._change():
            numbers = dict(self._seen_numbers(held))
            self._hold((numbers[key], each) for key, each in held.items() if key in numbers)
            self._data.execute(
                "INSERT OR REPLACE INTO listed VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    self.visit.site,
                    listed.archive,
                    listed.prefix,
                    listed.is_whole,
                    listed.rows,
                    listed.beside,
                    storable(listed.message),
                ),
            )

    def hold(self, held: Mapping[str, Held]) -> None:
        """Keep what an archive has, by key, of what was seen meanwhile."""
        with self._change():
            numbers = dict(self._seen_numbers(held))
            self._hold((numbers[key], each) for key, each in held.items() if key in numbers)

    def lists(self) -> list[Listed]:
        """Return how all lister queries ended."""
        rows = self._data.execute(
            "SELECT archive, prefix, is_whole, rows, beside, message FROM listed WHERE site = ? ORDER BY 1, 2",
            (self.visit.site,),
        )
        return [
            Listed(archive, prefix, bool(whole), count, beside, text_of(message))
            for archive, prefix, whole, count, beside, message in rows
        ]

    def note_asked(self, resource: int, archive: str, held: Held | None, *, has_answered: bool) -> None:
        """Keep what one archive said of one resource."""
        with self._change():
            if held is not None:
                self._hold([(resource, held)])
            self._data.execute("INSERT OR REPLACE INTO asked VALUES (?, ?, ?)", (resource, archive, has_answered))

    def draw(self, most: int | None, *, also_held: bool) -> None:
        """Choose which resources archives are asked for one by one.

        most: how many; None for all. also_held: whether those are, too, that an archive is known to have.
        Those with the lowest hashes of their keys are chosen: the same ones at every visit, and as good as at random.
        """
        rows = self._data.execute(f"SELECT resource, key, {_LIVE_FIELDS} FROM {_SEEN}", (self.visit.site,)).fetchall()
        held = {number for (number,) in self._data.execute("SELECT DISTINCT resource FROM held")}
        there = [
            (sha256(str(key).encode("utf-8", "surrogatepass")).digest(), number)
            for number, key, *fields in rows
            if is_counted(_live(str(key), fields)) and (also_held or number not in held)
        ]
        there.sort()
        chosen = there if most is None else there[:most]
        with self._change():
            self._data.execute(
                "UPDATE live SET is_drawn = 0 WHERE resource IN (SELECT id FROM resource WHERE site = ?)",
                (self.visit.site,),
            )
            self._data.executemany(
                "UPDATE live SET is_drawn = 1 WHERE resource = ?", [(number,) for _, number in chosen]
            )

    def drawn(self) -> list[tuple[int, str, str | None]]:
        """Return those that were chosen: number, address, media type; in an order that says nothing of them."""
        rows = self._data.execute(
            f"SELECT live.resource, live.uri, live.mime FROM {_SEEN} AND is_drawn ORDER BY live.resource",
            (self.visit.site,),
        )
        return [(int(number), text_of(uri), text_of(mime)) for number, uri, mime in rows]

    def judge(self, number: int, verdict: str) -> None:
        """Keep what is wrong with the copies of a resource, in a word; empty if nothing is."""
        self._data.execute("INSERT OR REPLACE INTO judged VALUES (?, ?)", (number, verdict))

    def judged(self) -> dict[int, str]:
        """Return what came of judging copies, by the number of the resource."""
        rows = self._data.execute(
            "SELECT judged.resource, verdict FROM judged JOIN resource ON resource.id = judged.resource WHERE site = ?",
            (self.visit.site,),
        )
        return {int(number): str(verdict) for number, verdict in rows}

    def answered(self) -> set[tuple[int, str]]:
        """Return which archives have answered which single questions: number of the resource, and archive."""
        rows = self._data.execute(
            "SELECT asked.resource, archive FROM asked JOIN resource ON resource.id = asked.resource "
            "WHERE site = ? AND has_answered",
            (self.visit.site,),
        )
        return {(int(number), str(archive)) for number, archive in rows}

    def standings(self, archives: Iterable[str]) -> Iterator[Standing]:
        """Yield all resources that count, by address, with what these archives have of them.

        archives: those that might have it: a resource is settled if each has listed the site, or answered for it.
        """
        for _, standing in self.numbered(archives):
            yield standing

    def numbered(self, archives: Iterable[str]) -> Iterator[tuple[int, Standing]]:
        """Yield the same, each with its number."""
        asked_of = frozenset(archives)
        whole, verdicts = self.whole_lists(), self.judged()
        rows = self._data.execute(
            f"SELECT resource.id, key, (SELECT time FROM visit WHERE id = first_live), is_drawn, {_LIVE_FIELDS} "
            f"FROM {_SEEN} ORDER BY key",
            (self.visit.site,),
        ).fetchall()
        for number, key, first, is_drawn, *fields in rows:
            live = _live(str(key), fields)
            # What was there once and is a redirect now has gone; what was left out was not looked at.
            if live.outcome is Outcome.LEFT_OUT or (first is None and not is_counted(live)):
                continue
            held = tuple(
                Held(archive, copies, begin, end, digest, None if migrated is None else bool(migrated))
                for archive, copies, begin, end, digest, migrated in self._data.execute(
                    "SELECT archive, copies, first, last, digest, migrated FROM held WHERE resource = ? "
                    "ORDER BY archive",
                    (number,),
                )
            )
            answers = self._answers(number)
            is_settled = asked_of <= whole | answers
            seen_first = None if first is None else dates.from_epoch(str(int(first)))
            yield (
                int(number),
                Standing(live, held, is_settled, bool(is_drawn), seen_first, verdicts.get(int(number))),
            )

    def whole_lists(self) -> frozenset[str]:
        """Return which archives have listed all of the site."""
        found: dict[str, bool] = {}
        for each in self.lists():
            found[each.archive] = found.get(each.archive, True) and each.is_whole
        return frozenset(archive for archive, is_whole in found.items() if is_whole)

    def _answers(self, number: int) -> set[str]:
        rows = self._data.execute("SELECT archive FROM asked WHERE resource = ? AND has_answered", (number,))
        return {str(archive) for (archive,) in rows}

    def _hold(self, rows: Iterable[tuple[int, Held]]) -> None:
        self._data.executemany(
            "INSERT OR REPLACE INTO held VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (number, each.archive, each.copies, each.first, each.last, each.digest, each.migrated)
                for number, each in rows
            ],
        )

    def _seen_numbers(self, keys: Iterable[str]) -> Iterator[tuple[str, int]]:
        """Yield the numbers of those that were seen, by key."""
        for key in keys:
            row = self._data.execute(f"SELECT id FROM {_SEEN} AND key = ?", (self.visit.site, key)).fetchone()
            if row is not None:
                yield key, int(row[0])

    def _number(self, resource: LiveResource) -> int:
        """Return the number of a resource, which is noted if it is new."""
        row = self._data.execute(
            "INSERT INTO resource (site, key, uri) VALUES (?, ?, ?) "
            "ON CONFLICT (site, key) DO UPDATE SET uri = uri RETURNING id",
            (self.visit.site, resource.key, storable(resource.uri)),
        ).fetchone()
        return int(row[0])

    def _seen(self, number: int) -> LiveResource | None:
        row = self._data.execute(f"SELECT {_FIELDS} FROM live WHERE resource = ?", (number,)).fetchone()
        return None if row is None else _live("", row)


def _worth(resource: LiveResource) -> int:
    """Return which of several answers at one key counts: a page, then what is forbidden, then what is missing."""
    if not is_counted(resource):
        return 0
    if is_live(resource):
        return 3 if resource.outcome is Outcome.FETCHED else 2
    return 1


def _columns(each: LiveResource) -> tuple[object, ...]:
    return (
        storable(each.uri),
        each.outcome.value,
        each.status,
        storable(each.mime),
        each.length,
        each.digest,
        each.seen,
        each.last_modified,
        storable(each.redirect),
        each.hops,
        each.linked_from,
        each.is_in_sitemap,
        each.is_noarchive,
        storable(each.cache_control),
    )


def _live(key: str, fields: Sequence[object]) -> LiveResource:
    uri, outcome, status, mime, length, digest, seen, modified, redirect, hops, links, sitemap, noarchive, cache = map(
        text_of, fields
    )
    return LiveResource(
        uri, key, Outcome(outcome), status, mime, length, digest, seen, modified, redirect, hops, links,
        bool(sitemap), bool(noarchive), cache,
    )  # fmt: skip
