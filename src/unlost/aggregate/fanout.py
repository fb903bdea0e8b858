"""Queries all archives of a route at once; waits for none beyond the deadline."""

import asyncio
import logging
from dataclasses import dataclass, replace
from operator import attrgetter

from unlost.aggregate.listeners import ListenerGroup
from unlost.aggregate.models import ANSWERED_OUTCOMES, AggregateResult, ArchiveReport
from unlost.aggregate.router import ArchiveRoute, RouteTarget
from unlost.aggregate.upstream import (
    NO_MEMENTOS,
    TIMER_TOLERANCE,
    UpstreamClient,
    UpstreamResult,
    endpoint_of,
    merge_mementos,
)
from unlost.clock import Clock
from unlost.http.circuit_breaker import BreakerPermit, BreakerRegistry
from unlost.redaction import strip_userinfo

_GRACE_SECONDS = 0.5  # seconds behind the deadline in which what was asked may end by itself
_OPEN_MESSAGE = "it failed so often that it is left alone for a while"
_TRIAL_MESSAGE = "it failed so often that it was left alone; it is being tried again, and nobody waits for that"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _PendingQuery:
    """A question on its way."""

    target: RouteTarget
    is_trial: bool
    task: asyncio.Task[UpstreamResult]


class FanOut:
    """Asks archives together. What is not waited for any more is kept in hand until it has ended."""

    def __init__(
        self, client: UpstreamClient, clock: Clock, breakers: BreakerRegistry, listeners: ListenerGroup
    ) -> None:
        self._client = client
        self._clock = clock
        self._breakers = breakers
        self._listeners = listeners
        self._abandoned: set[asyncio.Task[UpstreamResult]] = set()

    async def query_all(
        self, uri: str, route: ArchiveRoute, until: float, closest_to: str | None = None
    ) -> tuple[AggregateResult, bool]:
        """Return what was found, and whether no archive failed; one that always lists a part, and did, has not.

        until: the deadline, by the time of the event loop. Cancelled, it leaves nothing behind. selects: as in `Wish`.
        """
        going: list[_PendingQuery] = []
        reports: list[ArchiveReport] = []
        try:
            for choice in route.targets:
                entry = self._breakers.breaker(choice.archive.id).acquire()
                if entry is None:
                    reports.append(_skipped_report(choice, _OPEN_MESSAGE))
                else:
                    task = asyncio.create_task(self._query(uri, choice, entry, until, closest_to))
                    going.append(_PendingQuery(choice, entry.is_trial, task))
            await _wait_for_responses(going, until)
        except BaseException:
            await _cancel_and_wait({each.task for each in going})
            raise
        answers = [each.task.result() for each in going if _has_finished(each)]
        reports += [self._abandon(each, until) for each in going if not _has_finished(each)]
        is_whole = not reports and all(each.final_outcome in ANSWERED_OUTCOMES for each in answers)
        reports += [each.report for each in answers]
        reports.sort(key=attrgetter("archive"))
        mementos = await merge_mementos([each.mementos for each in answers])
        made = self._clock.now()
        is_selection = closest_to is not None and any(each.endpoint == "timegate" for each in answers)
        ends = all(each.known_ends[0] for each in answers), all(each.known_ends[1] for each in answers)
        passed_over = tuple(sorted(route.passed_over))
        found = AggregateResult(
            uri, mementos, tuple(reports), passed_over, made, made, is_selection=is_selection, known_ends=ends
        )
        return replace(found, retry_at=self._retry_at(found, answers)), is_whole

    def _retry_at(self, result: AggregateResult, answers: list[UpstreamResult]) -> float | None:
        """Return when the first archive that did not answer admits requests again; None if that is not known."""
        times = [each.retry_at for each in answers if each.retry_at is not None]
        for report in result.failures:
            until = self._breakers.breaker(report.archive).status().until
            if until is not None:
                times.append(until)
        return min(times, default=None)

    async def close(self) -> None:
        """End whatever is still going on."""
        await _cancel_and_wait(self._abandoned)

    def _abandon(self, going: _PendingQuery, until: float) -> ArchiveReport:
        """Return the report of a question that is not waited for any more: a trial, or one that does not end."""
        self._abandoned.add(going.task)
        going.task.add_done_callback(self._abandoned.discard)
        loop = asyncio.get_running_loop()
        if loop.time() >= until - TIMER_TOLERANCE:
            return replace(_skipped_report(going.target, "not answered in time"), outcome="timeout")
        timer = loop.call_at(until, going.task.cancel)
        going.task.add_done_callback(lambda _: timer.cancel())
        return _skipped_report(going.target, _TRIAL_MESSAGE)

    async def _query(
        self, uri: str, target: RouteTarget, entry: BreakerPermit, until: float, closest_to: str | None
    ) -> UpstreamResult:
        """Ask one archive, and tell everybody. Raises nothing but CancelledError."""
        archive = target.archive
        ended: str | None = None
        message = ""
        try:
            asked = await self._client.query(uri, target, until, closest_to)
            ended, message = asked.final_outcome, asked.report.message
        except asyncio.CancelledError:
            ended = "timeout" if asyncio.get_running_loop().time() >= until - TIMER_TOLERANCE else None
            raise
        except Exception as error:  # noqa: BLE001  whatever one archive sends must not spoil what the others have
            _log.exception("%s: a fault of unlost while it was asked for %r", archive.id, strip_userinfo(uri)[:200])
            ended, message = "malformed", f"a fault of unlost: {error!s:.200}"
            report = ArchiveReport(archive.id, target.reason, "malformed", message=message)
            asked = UpstreamResult(
                uri, target, self._clock.now(), endpoint_of(archive), NO_MEMENTOS, report, "malformed"
            )
        finally:
            self._breakers.breaker(archive.id).record(entry, ended, message, uri)
        self._listeners.on_upstream_result(asked)
        return asked


async def _wait_for_responses(going: list[_PendingQuery], until: float) -> None:
    """Wait for all answers, or the deadline. Trials may hang, as they did before: they are waited for if all are."""
    awaited = [each.task for each in going if not each.is_trial] or [each.task for each in going]
    if not awaited:
        return
    _, late = await asyncio.wait(awaited, timeout=max(0.0, until - asyncio.get_running_loop().time()))
    for task in late:
        task.cancel()
    if late:
        # They say what they have; the grace is for what does not end.
        await asyncio.wait(late, timeout=_GRACE_SECONDS)


def _has_finished(going: _PendingQuery) -> bool:
    return going.task.done() and not going.task.cancelled()


def _skipped_report(target: RouteTarget, message: str) -> ArchiveReport:
    return ArchiveReport(target.archive.id, target.reason, "dormant", message=message)


async def _cancel_and_wait(tasks: set[asyncio.Task[UpstreamResult]]) -> None:
    """Cancel tasks, and wait for them, for a moment: who does not end then never will."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_GRACE_SECONDS)
