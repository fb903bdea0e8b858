"""The one place that makes a running service of options: courier, finder, application."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from unlost import uri as addresses
from unlost.aggregate.found import Found
from unlost.aggregate.mementos import Memento, Mementos
from unlost.aggregate.report import Outcome, Report
from unlost.aggregate.wish import Freshness, Wish
from unlost.archives.archive import Archive
from unlost.archives.asking.courier import Courier
from unlost.archives.asking.exchange import Deadlines
from unlost.archives.asking.question import Asks
from unlost.archives.manners.limit_store import FileLimitStore
from unlost.archives.opening import open_repository
from unlost.clock import Clock, SystemClock
from unlost.errors import (
    ArchiveError,
    ExcludedError,
    FailedError,
    InputError,
    ListCutError,
    NotKeptError,
    NotNowError,
    UsageError,
)
from unlost.service.copies import Copies
from unlost.service.metrics import Metrics
from unlost.service.monitor import Monitor
from unlost.service.parts import Parts
from unlost.service.standing import Standing
from unlost.service.telling import Telling


@dataclass(frozen=True, slots=True)
class Options:
    """What a service, or a command that asks once, is told.

    archives: all that there are, also those that are off. state: the folder for what must outlive the process.
    deadline: seconds that one answer may take. keep: seconds for which what was found is kept; keep_misses: for which
        it is kept that nothing was.
    root, published, wish: as `Parts` has them. upstream_log: where every answer of an archive is written, NDJSON.
    contact: whom archives can write to. tell: gets what people should know, a line each.
    """

    archives: Sequence[Archive]
    state: Path
    tell: Callable[[str], None]
    deadline: float = 10.0
    keep: float = 86_400.0
    keep_misses: float = 3_600.0
    root: str | None = None
    published: Path | None = None
    wish: Wish = field(default_factory=Wish)
    upstream_log: Path | None = None
    contact: str | None = None


@asynccontextmanager
async def assembled(options: Options, clock: Clock | None = None) -> AsyncIterator[Parts]:
    """Yield the parts of a service, ready to ask; close everything that they opened afterwards."""
    clock = clock or SystemClock()
    metrics, monitor = Metrics(), Monitor()

    store = FileLimitStore(options.state / "limits", tell=options.tell)
    deadlines = Deadlines(connect=min(5.0, options.deadline), first_byte=options.deadline, total=options.deadline)
    async with Courier(store, clock, options.contact, deadlines, options.deadline, tell=options.tell) as courier:
        finds = _Broadcast(options, courier, clock, Telling(metrics, monitor))
        copies = Copies(options.archives, courier)
        yield Parts(
            finds, copies, finds, clock, metrics, monitor, options.root, options.published, options.wish
        )  # fmt: skip


class _Broadcast:
    """Asks every archive, and keeps nothing: in the place of the aggregator until that is here."""

    def __init__(self, options: Options, courier: Asks, clock: Clock, telling: Telling) -> None:
        self._options = options
        self._courier = courier
        self._clock = clock
        self._telling = telling

    def standings(self) -> list[Standing]:
        """Return all archives."""
        return [
            Standing(each, each.enabled, "it has no map" if each.enabled else "it is off: only if it is named")
            for each in self._options.archives
        ]

    async def find(self, uri: str, wish: Wish = Wish(), freshness: Freshness = Freshness()) -> Found:  # noqa: B008
        """Return what all archives list that answer in time."""
        addresses.key(uri)
        known = {each.id: each for each in self._options.archives}
        if unknown := sorted((wish.archives or frozenset()) - known.keys()):
            raise UsageError(f"no archive `{unknown[0][:100]}`. There are {', '.join(known)}")
        if freshness.only_if_cached:
            raise NotKeptError("nothing was kept")
        chosen = [each for each in known.values() if (each.id in wish.archives if wish.archives else each.enabled)]
        asked = await asyncio.gather(*(self._ask(each, uri) for each in sorted(chosen, key=lambda each: each.id)))
        mementos = Mementos(row for rows, _ in asked for row in rows)
        now = self._clock.now()
        keep = self._options.keep if len(mementos) else self._options.keep_misses
        found = Found(uri, mementos, tuple(report for _, report in asked), (), now, now + keep)
        self._telling.found(found)
        return found

    async def _ask(self, archive: Archive, uri: str) -> tuple[list[Memento], Report]:
        rows: list[Memento] = []
        begun, outcome, message = self._clock.now(), "miss", ""
        try:
            async with asyncio.timeout(self._options.deadline):
                async for capture in open_repository(archive, self._courier).captures(uri):
                    rows.append(Memento(capture.datetime, archive.id, capture.urim or ""))  # noqa: PERF401  some may do
            outcome = "hit" if rows else "miss"
        except TimeoutError:
            outcome, message = "timeout", "not answered in time"
        except (ArchiveError, InputError) as error:
            outcome, message = _outcome(error, bool(rows)), str(error)
        milliseconds = (self._clock.now() - begun) * 1_000
        return rows, Report(archive.id, "broadcast", outcome, len(rows), milliseconds, message)  # type: ignore[arg-type]


def _outcome(error: Exception, has_some: bool) -> Outcome:
    match error:
        case ExcludedError():
            return "excluded"
        case NotNowError():
            return "not-now"
        case ListCutError():
            return "incomplete" if has_some else "miss"
        case FailedError() if error.kind in ("refused", "timeout", "tls", "reset", "too-large"):
            return error.kind  # type: ignore[return-value]
        case FailedError():
            return {"unreachable": "dns", "redirects": "redirect", "status": "http-5xx"}.get(error.kind, "malformed")  # type: ignore[return-value]
        case _:
            return "malformed"
