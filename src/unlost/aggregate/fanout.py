"""Queries all archives of a route concurrently, within a deadline."""

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

_GRACE_SECONDS = 0.5  # after the deadline, for cancelled requests to return what they have
_OPEN_MESSAGE = "it failed so often that it is left alone for a while"
_TRIAL_MESSAGE = "it failed so often that it was left alone; it is being tried again, and nobody waits for that"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _PendingQuery:
    target: RouteTarget
    is_trial: bool
    task: asyncio.Task[UpstreamResult]


class FanOut:
    """Queries archives concurrently. Abandoned requests are tracked until they have ended."""

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
        """Query all archives of a route.

        A cancelled call cancels its requests and waits for them.

        Args:
            uri: The page.
            route: The archives to query.
            until: Deadline, in the time of the event loop.
            closest_to: As in `RoutingOptions`.

        Returns:
            The result, and whether it is complete: no archive failed. An archive that by design lists only a part has
            not failed.
        """
        pending: list[_PendingQuery] = []
        reports: list[ArchiveReport] = []
        try:
            for target in route.targets:
                permit = self._breakers.breaker(target.archive.id).acquire()
                if permit is None:
                    reports.append(_skipped_report(target, _OPEN_MESSAGE))
                else:
                    task = asyncio.create_task(self._query(uri, target, permit, until, closest_to))
                    pending.append(_PendingQuery(target, permit.is_trial, task))
            await _wait_for_responses(pending, until)
        except BaseException:
            await _cancel_and_wait({query.task for query in pending})
            raise
        results = [query.task.result() for query in pending if _has_finished(query)]
        reports += [self._abandon(query, until) for query in pending if not _has_finished(query)]
        is_whole = not reports and all(query.final_outcome in ANSWERED_OUTCOMES for query in results)
        reports += [query.report for query in results]
        reports.sort(key=attrgetter("archive"))
        mementos = await merge_mementos([query.mementos for query in results])
        now = self._clock.now()
        is_selection = closest_to is not None and any(query.endpoint == "timegate" for query in results)
        known_ends = all(query.known_ends[0] for query in results), all(query.known_ends[1] for query in results)
        passed_over = tuple(sorted(route.passed_over))
        result = AggregateResult(
            uri, mementos, tuple(reports), passed_over, now, now, is_selection=is_selection, known_ends=known_ends
        )
        return replace(result, retry_at=self._retry_at(result, results)), is_whole

    def _retry_at(self, result: AggregateResult, upstream_results: list[UpstreamResult]) -> float | None:
        times = [each.retry_at for each in upstream_results if each.retry_at is not None]
        for report in result.failures:
            until = self._breakers.breaker(report.archive).status().until
            if until is not None:
                times.append(until)
        return min(times, default=None)

    async def close(self) -> None:
        """Cancel the requests that are still running."""
        await _cancel_and_wait(self._abandoned)

    def _abandon(self, pending: _PendingQuery, until: float) -> ArchiveReport:
        """Return the report of a request that is no longer awaited: a trial, or one that has not ended in time."""
        self._abandoned.add(pending.task)
        pending.task.add_done_callback(self._abandoned.discard)
        loop = asyncio.get_running_loop()
        if loop.time() >= until - TIMER_TOLERANCE:
            return replace(_skipped_report(pending.target, "not answered in time"), outcome="timeout")
        timer = loop.call_at(until, pending.task.cancel)
        pending.task.add_done_callback(lambda _: timer.cancel())
        return _skipped_report(pending.target, _TRIAL_MESSAGE)

    async def _query(
        self, uri: str, target: RouteTarget, permit: BreakerPermit, until: float, closest_to: str | None
    ) -> UpstreamResult:
        """Query one archive and notify the listeners. Raises nothing but CancelledError."""
        archive = target.archive
        outcome: str | None = None
        message = ""
        try:
            result = await self._client.query(uri, target, until, closest_to)
            outcome, message = result.final_outcome, result.report.message
        except asyncio.CancelledError:
            outcome = "timeout" if asyncio.get_running_loop().time() >= until - TIMER_TOLERANCE else None
            raise
        except Exception as error:  # noqa: BLE001  a fault caused by one archive must not lose the mementos of the others
            _log.exception("%s: a fault of unlost while it was asked for %r", archive.id, strip_userinfo(uri)[:200])
            outcome, message = "malformed", f"a fault of unlost: {error!s:.200}"
            report = ArchiveReport(archive.id, target.reason, "malformed", message=message)
            result = UpstreamResult(
                uri, target, self._clock.now(), endpoint_of(archive), NO_MEMENTOS, report, "malformed"
            )
        finally:
            self._breakers.breaker(archive.id).record(permit, outcome, message, uri)
        self._listeners.on_upstream_result(result)
        return result


async def _wait_for_responses(pending: list[_PendingQuery], until: float) -> None:
    """Wait for all responses or the deadline. Trials may hang, so they are awaited only if all requests are trials."""
    awaited = [query.task for query in pending if not query.is_trial] or [query.task for query in pending]
    if not awaited:
        return
    _, late = await asyncio.wait(awaited, timeout=max(0.0, until - asyncio.get_running_loop().time()))
    for task in late:
        task.cancel()
    if late:
        # A cancelled request returns what it has received; the timeout is for those that do not end.
        await asyncio.wait(late, timeout=_GRACE_SECONDS)


def _has_finished(pending: _PendingQuery) -> bool:
    return pending.task.done() and not pending.task.cancelled()


def _skipped_report(target: RouteTarget, message: str) -> ArchiveReport:
    return ArchiveReport(target.archive.id, target.reason, "dormant", message=message)


async def _cancel_and_wait(tasks: set[asyncio.Task[UpstreamResult]]) -> None:
    """Cancel tasks and wait for them, for at most `_GRACE_SECONDS`."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_GRACE_SECONDS)
