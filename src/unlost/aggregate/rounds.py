"""Asks all archives of a route at once, and waits for no one longer than for the others or the deadline."""

import asyncio
import logging
from dataclasses import dataclass, replace
from operator import attrgetter

from unlost.aggregate.asking import EARLY, NOTHING, Asked, Asker, endpoint_of, merged
from unlost.aggregate.breaker import Breakers, Entry
from unlost.aggregate.found import Found
from unlost.aggregate.listener import Listeners
from unlost.aggregate.report import ANSWERS, Report
from unlost.aggregate.route import Choice, Route
from unlost.clock import Clock
from unlost.shown.redaction import strip_userinfo

_GRACE = 0.5  # seconds behind the deadline in which what was asked may end by itself
_DORMANT = "it failed so often that it is left alone for a while"
_TRIED = "it failed so often that it was left alone; it is being tried again, and nobody waits for that"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Going:
    """A question on its way."""

    choice: Choice
    is_trial: bool
    task: asyncio.Task[Asked]


class Rounds:
    """Asks archives together. What is not waited for any more is kept in hand until it has ended."""

    def __init__(self, asker: Asker, clock: Clock, breakers: Breakers, listeners: Listeners) -> None:
        self._asker = asker
        self._clock = clock
        self._breakers = breakers
        self._listeners = listeners
        self._unattended: set[asyncio.Task[Asked]] = set()

    async def ask(self, uri: str, route: Route, until: float, selects: str | None = None) -> tuple[Found, bool]:
        """Return what was found, and whether no archive failed; one that always lists a part, and did, has not.

        until: the deadline, by the time of the event loop. Cancelled, it leaves nothing behind. selects: as in `Wish`.
        """
        going: list[_Going] = []
        reports: list[Report] = []
        try:
            for choice in route.asked:
                entry = self._breakers.of(choice.archive.id).enter()
                if entry is None:
                    reports.append(_unasked(choice, _DORMANT))
                else:
                    task = asyncio.create_task(self._ask(uri, choice, entry, until, selects))
                    going.append(_Going(choice, entry.is_trial, task))
            await _wait(going, until)
        except BaseException:
            await _ended({each.task for each in going})
            raise
        answers = [each.task.result() for each in going if _has_answered(each)]
        reports += [self._given_up(each, until) for each in going if not _has_answered(each)]
        is_whole = not reports and all(each.ended in ANSWERS for each in answers)
        reports += [each.report for each in answers]
        reports.sort(key=attrgetter("archive"))
        mementos = await merged([each.mementos for each in answers])
        made = self._clock.now()
        is_selection = selects is not None and any(each.endpoint == "timegate" for each in answers)
        ends = all(each.known_ends[0] for each in answers), all(each.known_ends[1] for each in answers)
        passed_over = tuple(sorted(route.passed_over))
        found = Found(
            uri, mementos, tuple(reports), passed_over, made, made, is_selection=is_selection, known_ends=ends
        )
        return replace(found, retry_at=self._retry_at(found, answers)), is_whole

    def _retry_at(self, found: Found, answers: list[Asked]) -> float | None:
        """Return when the first archive that did not answer admits requests again; None if that is not known."""
        times = [each.retry_at for each in answers if each.retry_at is not None]
        for report in found.failures:
            until = self._breakers.of(report.archive).condition().until
            if until is not None:
                times.append(until)
        return min(times, default=None)

    async def close(self) -> None:
        """End whatever is still going on."""
        await _ended(self._unattended)

    def _given_up(self, going: _Going, until: float) -> Report:
        """Return the report of a question that is not waited for any more: a trial, or one that does not end."""
        self._unattended.add(going.task)
        going.task.add_done_callback(self._unattended.discard)
        loop = asyncio.get_running_loop()
        if loop.time() >= until - EARLY:
            return replace(_unasked(going.choice, "not answered in time"), outcome="timeout")
        timer = loop.call_at(until, going.task.cancel)
        going.task.add_done_callback(lambda _: timer.cancel())
        return _unasked(going.choice, _TRIED)

    async def _ask(self, uri: str, choice: Choice, entry: Entry, until: float, selects: str | None) -> Asked:
        """Ask one archive, and tell everybody. Raises nothing but CancelledError."""
        archive = choice.archive
        ended: str | None = None
        message = ""
        try:
            asked = await self._asker.ask(uri, choice, until, selects)
            ended, message = asked.ended, asked.report.message
        except asyncio.CancelledError:
            ended = "timeout" if asyncio.get_running_loop().time() >= until - EARLY else None
            raise
        except Exception as error:  # noqa: BLE001  whatever one archive sends must not spoil what the others have
            _log.exception("%s: a fault of unlost while it was asked for %r", archive.id, strip_userinfo(uri)[:200])
            ended, message = "malformed", f"a fault of unlost: {error!s:.200}"
            report = Report(archive.id, choice.reason, "malformed", message=message)
            asked = Asked(uri, choice, self._clock.now(), endpoint_of(archive), NOTHING, report, "malformed")
        finally:
            self._breakers.of(archive.id).leave(entry, ended, message, uri)
        self._listeners.heard(asked)
        return asked


async def _wait(going: list[_Going], until: float) -> None:
    """Wait for all answers, or the deadline. Trials may hang, as they did before: they are waited for if all are."""
    awaited = [each.task for each in going if not each.is_trial] or [each.task for each in going]
    if not awaited:
        return
    _, late = await asyncio.wait(awaited, timeout=max(0.0, until - asyncio.get_running_loop().time()))
    for task in late:
        task.cancel()
    if late:
        # They say what they have; the grace is for what does not end.
        await asyncio.wait(late, timeout=_GRACE)


def _has_answered(going: _Going) -> bool:
    return going.task.done() and not going.task.cancelled()


def _unasked(choice: Choice, message: str) -> Report:
    return Report(choice.archive.id, choice.reason, "dormant", message=message)


async def _ended(tasks: set[asyncio.Task[Asked]]) -> None:
    """Cancel tasks, and wait for them, for a moment: who does not end then never will."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_GRACE)
