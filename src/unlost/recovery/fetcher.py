"""Fetches the resources of a lost site.

The fetcher sends the request that the planner chose, stores the capture, ranks what is stored, follows its links, and
schedules the next archive.
"""

import asyncio
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from urllib.parse import urljoin

from unlost import dates
from unlost.archives.base import ArchiveClient, FetchedCapture
from unlost.capture import Capture
from unlost.clock import Clock
from unlost.errors import ArchiveError, DateError, ExcludedError, NotNowError, UriError
from unlost.html.links import LinkKind
from unlost.http.circuit_breaker import BreakerRegistry
from unlost.recovery import ranking, warc_store
from unlost.recovery.events import (
    CaptureFailed,
    EventListener,
    ResourceMissing,
    ResourceRecovered,
    ResourceSubstituted,
)
from unlost.recovery.frontier import RecoveryFrontier
from unlost.recovery.listings import LISTING_INCOMPLETE, NO_CONTENT, ListingCoverage, store_listed_captures
from unlost.recovery.options import RecoverOptions, RecoverPolicy
from unlost.recovery.page_requisites import RequisiteLookups
from unlost.recovery.planner import BestCapture, FetchCapture, FetchPlanner, QueryCaptures, Step
from unlost.recovery.quality_gate import QualityGate
from unlost.recovery.ranking import WORST_ACCEPTED, CaptureQuality
from unlost.recovery.scope import RecoveryScope
from unlost.recovery.state.captures import CaptureOutcome, CaptureRow
from unlost.recovery.state.resources import RecoveryResource, ResourceStatus
from unlost.recovery.state.store import RecoveryState
from unlost.recovery.warc_records import RecoveryRecord
from unlost.recovery.warc_store import StoredCapture, WarcStore
from unlost.uri import names as uri_names

_COMPLETE_BODY = (
    CaptureQuality.GOOD,
    CaptureQuality.MIGRATED,
    CaptureQuality.DOUBTFUL,
    CaptureQuality.REJECTED,
)  # qualities of records whose payload a revisit may refer to
_MAX_SYNC_BYTES = 1 << 17  # size of a body up to which a thread costs more than it saves
_MAX_DIGEST_MISMATCHES = 10  # excess of mismatches over matches from which an archive's digests are ignored
# Extensions of files that sites version by a query string, so that browsers load a new version.
_VERSIONED_EXTENSION = re.compile(
    r"\.(css|m?js|png|jpe?g|gif|webp|svg|ico|bmp|avif|woff2?|ttf|otf|eot)$", re.IGNORECASE
)
_MAX_PLANNED = 1000  # resources whose next steps are remembered


def record_archive_error(breakers: BreakerRegistry, archive: str, error: ArchiveError) -> None:
    """Record an error with the archive's circuit breaker, unless its listing has to be requested again first."""
    breaker = breakers.breaker(archive)
    if breaker.suspension is None or breaker.suspension.reason != LISTING_INCOMPLETE:
        breaker.record_error(error)


class ResourceFetcher:
    """Moves resources from `QUEUED` to a final status, one request at a time.

    Each call of `fetch_next` sends at most one request. The planner decides what to request; the scheduler decides
    which resource comes next.

    Attributes:
        coverage: What the listings cover; set again whenever a listing has ended.
        recovered: Number of recovered resources, over all runs.
        failed_before: Ids of resources for which a request failed in an earlier run.
    """

    def __init__(
        self,
        options: RecoverOptions,
        scope: RecoveryScope,
        state: RecoveryState,
        warcs: WarcStore,
        clients: Mapping[str, ArchiveClient],
        breakers: BreakerRegistry,
        frontier: RecoveryFrontier,
        clock: Clock,
        on_event: EventListener,
    ) -> None:
        self._options = options
        self._scope = scope
        self._state = state
        self._warcs = warcs
        self._clients = clients
        self._breakers = breakers
        self._frontier = frontier
        self._clock = clock
        self._on_event = on_event
        self._planner = FetchPlanner(options, scope.is_own)
        self._disk = asyncio.Lock()
        self._quality_gate = QualityGate(state, warcs, on_event, drop_rejected=options.drop_rejected)
        self._requisite_lookups = RequisiteLookups(options, scope, state, clients)
        # By archive: captures that match the digest in the index, less those that do not. Some archives hash the body
        # in another form, so a mismatch suggests truncation only if most digests match.
        self._digest_trust: Counter[str] = Counter()
        self._fetches_by_digest: dict[str, asyncio.Event] = {}
        self._versions: dict[int, list[FetchCapture]] = {}  # remaining versions of some resources, last first
        self._planned: dict[int, Step] = {}  # next steps of some resources, so that they are planned once
        self._coverage = ListingCoverage([], [])
        self.failed_before: frozenset[int] = frozenset()
        self.recovered = state.resources.count_recovered()

    @property
    def coverage(self) -> ListingCoverage:
        """What the listings cover."""
        return self._coverage

    @coverage.setter
    def coverage(self, coverage: ListingCoverage) -> None:
        self._coverage = coverage
        self._requisite_lookups.mark_holding(None)

    def next_step(self, resource: RecoveryResource) -> Step | None:
        """Return the next step for a resource, or None if nothing better than what is stored can be fetched."""
        listed = self._listed_captures(resource)
        outcomes = self._state.captures.query_outcomes(resource.id)
        stored = None
        if resource.record is not None:
            best = self._state.records.get(resource.record)
            stored = BestCapture(CaptureQuality(best.quality), best.record.capture)
        allowed = self._requisite_lookups.archives_for(resource)
        return self._planner.next_step(
            resource, listed, outcomes, stored, self.coverage, self._breakers.suspended, allowed
        )

    def _listed_captures(self, resource: RecoveryResource) -> list[CaptureRow]:
        """Return the listed captures of the archives that take part in this run."""
        return [each for each in self._state.captures.of_resource(resource.id) if each.capture.archive in self._clients]

    def schedule_next(self, resource: RecoveryResource) -> str | None:
        """Assign the resource to the next archive to query.

        Returns:
            The archive's id, or None if the resource is finished; then its final status is stored and reported.
        """
        step: Step | None = None
        if self._quality_gate.is_pending(resource.id):
            step = self._second_opinion(resource)
            resource = self._state.resources.get(resource.id)  # the best record may have changed
        best = None if resource.record is None else self._state.records.get(resource.record)
        may_be_better = self._options.all_versions or resource.id in self.failed_before
        is_best = best is not None and best.quality == CaptureQuality.GOOD and not may_be_better
        if step is None and not is_best:
            step = self._next_version(resource) or self.next_step(resource)
        if step is not None:
            self._state.resources.assign(resource.id, step.archive)
            if len(self._planned) < _MAX_PLANNED:
                self._planned[resource.id] = step
            return step.archive
        now = dates.from_epoch(str(int(self._clock.now())))
        if best is not None and best.quality <= WORST_ACCEPTED:
            is_doubtful = best.quality == CaptureQuality.DOUBTFUL
            if (is_doubtful or self._state.must_refollow_links) and not self._state.resources.has_followed_links(
                resource.id
            ):
                self._follow_stored(resource)
            self.recovered += not resource.was_recovered
            self._state.resources.finish(resource.id, ResourceStatus.RECOVERED, now)
            capture = best.record.capture
            self._on_event(ResourceRecovered(capture.uri, capture.archive, capture.datetime, is_doubtful))
        elif self._is_guess(resource):
            self._state.resources.unqueue(resource.id)
        else:
            self._finish_without_capture(resource, now)
        return None

    def _finish_without_capture(self, resource: RecoveryResource, now: str) -> None:
        """Finish a resource without an acceptable capture: it is replaced by a substitute, skipped, or missing."""
        reason = self._missing_reason(resource)
        self.recovered -= resource.was_recovered
        substitute = self._substitute_for(resource) if reason != "failed" else None
        if substitute is not None:
            self._state.resources.substitute(resource.id, substitute.id, now, resource.page_datetime)
            self._planned.pop(substitute.id, None)
            self._on_event(ResourceSubstituted(resource.uri, substitute.uri))
        elif self._has_no_content(resource):
            self._state.resources.skip({resource.id: NO_CONTENT})
        else:
            self.finish_as_missing(resource, now, reason)

    def _has_no_content(self, resource: RecoveryResource) -> bool:
        """Return whether no link points to a listed resource and all its captures are known to have no content.

        A resource with a capture that is listed as good and could not be fetched is missing instead.
        """
        if self._options.policy is not RecoverPolicy.COMPLETE or self._is_needed(resource):
            return False
        captures = self._state.captures.of_resource(resource.id)
        return bool(captures) and all(
            each.outcome in (CaptureOutcome.STORED, None)
            and (
                each.outcome is CaptureOutcome.STORED
                or ranking.listed_quality(each.capture, self._scope.is_own, resource.name) > WORST_ACCEPTED
            )
            for each in captures
        )

    def finish_without_substitute(self, resource: RecoveryResource, now: str) -> None:
        """Finish a resource whose substitute was not recovered: by another substitute, or as missing."""
        substitute = self._substitute_for(resource, is_recovered=True)
        if substitute is not None:
            self._state.resources.substitute(resource.id, substitute.id, now, resource.page_datetime)
        else:
            self.finish_as_missing(resource, now)

    def forget_planned(self, ids: Iterable[int]) -> None:
        """Discard what was planned for resources that were deleted, because their ids may be used again."""
        for id_ in ids:
            self._planned.pop(id_, None)
            self._versions.pop(id_, None)

    def finish_as_missing(self, resource: RecoveryResource, now: str, reason: str | None = None) -> None:
        """Finish a resource as missing.

        Args:
            resource: The resource.
            now: The current time, 14 digits.
            reason: Why it is missing; derived from its captures if None.
        """
        why = reason or self._missing_reason(resource)
        self._state.resources.finish(resource.id, ResourceStatus.MISSING, now, why)
        self._on_event(ResourceMissing(resource.uri, why))

    def _is_needed(self, resource: RecoveryResource) -> bool:
        if resource.name in self._scope.named:
            return True
        # robots.txt and the sitemap were enqueued as if they were linked, although no page may link to them.
        return (
            self._state.resources.is_linked(resource.id) if resource.link_kind is LinkKind.LIST else resource.is_linked
        )

    def _substitute_for(self, resource: RecoveryResource, *, is_recovered: bool = False) -> RecoveryResource | None:
        """Return the resource with the same path and another query whose capture is closest in time.

        The query of a style sheet, script, font or image is usually a version number; that of any other type
        identifies the content. If archives cannot list what they hold, the URL without a query is enqueued.

        Args:
            resource: The resource to replace.
            is_recovered: Whether only recovered resources qualify.
        """
        if resource.link_kind is not LinkKind.REQUISITE or not _VERSIONED_EXTENSION.search(
            resource.name.partition("?")[0]
        ):
            return None
        closest: tuple[float, RecoveryResource] | None = None
        for other in self._state.resources.same_path(resource.name):
            if other.status in (ResourceStatus.MISSING, ResourceStatus.SUBSTITUTED):
                continue
            if is_recovered and other.status is not ResourceStatus.RECOVERED:
                continue
            captures = [each.capture for each in self._listed_captures(other)]
            distances = [
                ranking.datetime_distance(capture, resource.page_datetime)
                for capture in captures
                if ranking.listed_quality(capture, self._scope.is_own, other.name) <= CaptureQuality.PARTIAL
                and "html" not in (capture.mime or "")
            ]
            if distances and (closest is None or min(distances) < closest[0]):
                closest = min(distances), other
        if closest is not None or is_recovered:
            return closest[1] if closest else None
        return self._frontier.enqueue_without_query(resource) if self._may_be_unlisted(resource) else None

    def _may_be_unlisted(self, resource: RecoveryResource) -> bool:
        """Return whether an archive without a complete listing may hold the URL without its query."""
        plain = resource.uri.partition("?")[0]
        is_own = self._scope.is_own(resource.uri)
        return "?" in resource.name and is_own and bool(self.coverage.archives_to_query(plain, {}))

    def _is_guess(self, resource: RecoveryResource) -> bool:
        """Return whether there is no evidence that a resource existed: a well-known URL, or one found in a script."""
        if resource.link_kind is LinkKind.LIST:
            is_listed = self._options.policy is RecoverPolicy.COMPLETE and bool(
                self._state.captures.of_resource(resource.id)
            )
            return not is_listed and not self._state.resources.is_linked(resource.id)
        if resource.was_recovered or resource.name in self._scope.named:
            return False
        is_listed = self._options.policy.uses_listings and bool(self._state.captures.of_resource(resource.id))
        return not is_listed and self._state.candidates.is_candidate(resource.id)

    def _second_opinion(self, resource: RecoveryResource) -> Step | None:
        """Return the step that fetches a second opinion on a pending capture; if there is none, decide without one."""
        if not self._quality_gate.is_pending(resource.id):
            return None
        candidates = [
            each
            for each in self._planner.remaining_fetches(resource, self._listed_captures(resource), None)
            if each.archive not in self._breakers.suspended
        ]
        step = self._quality_gate.next_opinion(resource.id, candidates)
        if step is None:
            self._resolve_pending(resource, None, None, CaptureQuality.REJECTED)
        return step

    def _next_version(self, resource: RecoveryResource) -> Step | None:
        """Return the next version if all are to be recovered. They are ranked once, because there may be thousands."""
        if not self._options.all_versions or resource.record is None:
            return None
        if resource.id not in self._versions and len(self._versions) < _MAX_PLANNED:
            self._versions[resource.id] = self._planner.remaining_fetches(
                resource, self._listed_captures(resource), None
            )[::-1]
        versions = self._versions.get(resource.id)
        if not versions:
            self._versions.pop(resource.id, None)
            return None
        return versions.pop()

    async def fetch_next(self, resource: RecoveryResource, archive: str) -> str | None:
        """Send the next request for the resource if it is still assigned to this archive, and schedule the next step.

        Returns:
            As `schedule_next`.

        Raises:
            OSError: The capture could not be written (disk full). Nothing stored so far is lost.
        """
        step = self._planned.pop(resource.id, None)
        if step is None or step.archive != archive or archive in self._breakers.suspended:
            step = self._second_opinion(resource) or self.next_step(resource)
        if isinstance(step, QueryCaptures) and step.archive == archive:
            await self._query_captures(resource, archive)
        elif isinstance(step, FetchCapture) and step.archive == archive:
            await self._fetch(resource, step)
        return self.schedule_next(self._state.resources.get(resource.id))

    async def _query_captures(self, resource: RecoveryResource, archive: str) -> None:
        """Query an archive for its captures of the resource."""
        if await self._requisite_lookups.list_folder(resource, archive):
            return
        self._requisite_lookups.count_lookups(resource, archive)
        captures: list[Capture] = []
        outcome = "done"
        try:
            async for capture in self._clients[archive].captures(
                uri_names.archive_lookup_url(resource.uri, resource.name)
            ):
                captures.append(capture)  # noqa: PERF401  captures before an error are stored
            self._breakers.record_success(archive)
        except NotNowError as error:
            record_archive_error(self._breakers, archive, error)
            return
        except ExcludedError:
            outcome = "excluded"
        except ArchiveError as error:
            record_archive_error(self._breakers, archive, error)
            outcome = "failed"
        if captures:
            self._requisite_lookups.mark_holding(archive)
        self._store_listed(resource, captures)
        self._state.captures.set_query_outcome(resource.id, archive, outcome)

    def _store_listed(self, resource: RecoveryResource, captures: list[Capture]) -> None:
        """Store captures of the resource.

        Captures whose URL has another name are stored with it only if no capture has its own.
        """
        names = uri_names.page_names([capture.uri for capture in captures], ignore_case=self._options.ignore_case)
        by_name = [(name, each) for name, each in zip(names, captures, strict=True) if not isinstance(name, UriError)]
        exact = [capture for name, capture in by_name if name == resource.name]
        self._state.captures.add((resource.id, capture) for capture in exact or [capture for _, capture in by_name])
        if exact:
            store_listed_captures(
                [capture for name, capture in by_name if name != resource.name], self._state, self._options
            )

    async def _fetch(self, resource: RecoveryResource, step: FetchCapture) -> None:
        capture = step.listed.capture
        digest = capture.digest if capture.status is not None else None
        while digest in self._fetches_by_digest:
            await self._fetches_by_digest[digest].wait()
        if digest is not None and (original := self._with_payload(digest, capture)) is not None:
            async with self._disk:
                stored = await asyncio.to_thread(warc_store.store_revisit, self._warcs, capture, original)
            self._store_fetched(resource, step, stored)
            return
        finished = asyncio.Event()
        if digest is not None:
            self._fetches_by_digest[digest] = finished
        try:
            await self._fetch_capture(resource, step)
        finally:
            if digest is not None:
                del self._fetches_by_digest[digest]
            finished.set()

    def _with_payload(self, digest: str, capture: Capture) -> RecoveryRecord | None:
        """Return a record with the same payload, or None if none is known.

        A digest from an index is trusted within its archive; between archives, only digests of stored bytes are.
        """
        for row in self._state.records.with_digest(digest):
            record = row.record
            is_sure = record.capture.digest == digest or record.capture.archive == capture.archive
            if is_sure and row.quality in _COMPLETE_BODY and record.truncated is None and not record.capture.revisit:
                return record
        return None

    async def _fetch_capture(self, resource: RecoveryResource, step: FetchCapture) -> None:
        listed, archive = step.listed, step.archive
        try:
            fetched = await self._clients[archive].fetch(listed.capture)
        except NotNowError as error:
            record_archive_error(self._breakers, archive, error)
            if error.reason == "told-to-wait":
                was_deferred = listed.outcome is CaptureOutcome.DEFERRED
                self._state.captures.set_outcome(
                    listed.id, CaptureOutcome.FAILED if was_deferred else CaptureOutcome.DEFERRED
                )
            return
        except ExcludedError:
            self._state.captures.set_outcome(listed.id, CaptureOutcome.EXCLUDED)
            return
        except (ArchiveError, UriError) as error:
            if isinstance(error, ArchiveError):
                record_archive_error(self._breakers, archive, error)
            self._on_event(CaptureFailed(listed.capture.uri, archive, str(error)))
            self._state.captures.set_outcome(listed.id, CaptureOutcome.FAILED)
            return
        self._breakers.record_success(archive)
        if fetched is None or not self._is_in_time_range(fetched):
            self._state.captures.set_outcome(listed.id, CaptureOutcome.ABSENT)
            return
        # The archive may have returned the closest capture, which the requested index record does not describe.
        index_record = listed.capture if fetched.capture.datetime == listed.capture.datetime else None
        try:
            with fetched.body:
                async with self._disk:
                    stored = await self._store(fetched, index_record)
        except (UriError, DateError) as error:  # a WARC record cannot have this URL or date
            self._on_event(CaptureFailed(listed.capture.uri, archive, str(error)))
            self._state.captures.set_outcome(listed.id, CaptureOutcome.ABSENT)
            return
        self._store_fetched(resource, step, stored)

    async def _store(self, fetched: FetchedCapture, listed: Capture | None) -> StoredCapture:
        """Store a capture; in a thread unless it is small.

        Storing a small one takes less time than the two threads would wait for the interpreter lock.
        """
        if fetched.body.seek(0, os.SEEK_END) <= _MAX_SYNC_BYTES:
            return warc_store.store_capture(self._warcs, fetched, listed)
        return await asyncio.to_thread(warc_store.store_capture, self._warcs, fetched, listed)

    def _is_in_time_range(self, fetched: FetchedCapture) -> bool:
        """Return whether a fetched capture, which may have another date than requested, is in the time range."""
        first, last = self._options.first or "", self._options.last or "9"
        return first <= fetched.capture.datetime <= last

    def _store_fetched(self, resource: RecoveryResource, step: FetchCapture, stored: StoredCapture) -> None:
        is_preferred = step.listed.outcome is CaptureOutcome.RETRY
        record_id, quality = self.store_record(resource, stored, is_preferred=is_preferred)
        is_rejected = quality in (CaptureQuality.DOUBTFUL, CaptureQuality.REJECTED)
        self._state.captures.set_outcome(
            step.listed.id, CaptureOutcome.REJECTED if is_rejected else CaptureOutcome.STORED
        )
        if self._quality_gate.is_pending(resource.id):
            self._resolve_pending(resource, record_id, stored, quality)
        elif not self._quality_gate.defer(resource.id, record_id, step.listed.id, stored, quality):
            self._follow(resource, stored, quality)

    def _resolve_pending(
        self, resource: RecoveryResource, record_id: int | None, stored: StoredCapture | None, quality: CaptureQuality
    ) -> None:
        """Decide on a pending capture by an earlier one, if any, and follow the links of the accepted one."""
        accepted = self._quality_gate.resolve(resource.id, record_id)
        if accepted is not None:
            self._follow(resource, accepted, CaptureQuality.GOOD)
        elif stored is not None:
            self._follow(resource, stored, quality)

    def store_record(
        self, resource: RecoveryResource, stored: StoredCapture, *, is_preferred: bool = False
    ) -> tuple[int, CaptureQuality]:
        """Add a stored record to the state.

        Args:
            resource: The resource that it is a capture of.
            stored: The record.
            is_preferred: Whether it precedes an existing record of the same quality.

        Returns:
            The id of the record and its quality.
        """
        capture = stored.record.capture
        quality = ranking.stored_quality(
            capture,
            self._scope.is_own,
            resource.name,
            size=stored.size,
            truncated=stored.record.truncated or ("other-digest" if self._is_digest_mismatch(stored) else None),
            ignore_case=self._options.ignore_case,
        )
        if quality is CaptureQuality.MIGRATED and self._options.most_recent:
            quality = CaptureQuality.GOOD  # with `most_recent`, the format does not count
        verdict = self._quality_gate.classify(stored.page, quality)
        record_id = self._state.records.add(resource.id, quality, stored.record)
        if verdict is not None:
            quality = self._quality_gate.reject(record_id, stored.record, quality, verdict)
        self._frontier.requisite_budget.add_stored_bytes(resource.uri, stored.record.size)
        best = self._state.records.best(resource.id)
        is_as_good = is_preferred and best is not None and quality <= self._state.records.get(best).quality
        self._state.resources.set_best_record(resource.id, record_id if is_as_good else best)
        return record_id, quality

    def _follow_stored(self, resource: RecoveryResource) -> None:
        """Enqueue the links of stored captures; of doubtful ones, only those of the chosen one."""
        for row in self._state.records.of_resource(resource.id):
            is_chosen = row.quality == CaptureQuality.DOUBTFUL and row.id == resource.record
            if row.quality <= CaptureQuality.REDIRECT or is_chosen:
                is_read = row.quality <= CaptureQuality.PARTIAL or is_chosen
                stored = (
                    warc_store.load_stored(self._warcs, row.record)
                    if is_read
                    else warc_store.stored_redirect(row.record)
                )
                self._follow(resource, stored, CaptureQuality.GOOD if is_chosen else CaptureQuality(row.quality))

    def _follow(self, resource: RecoveryResource, stored: StoredCapture, quality: CaptureQuality) -> None:
        """Enqueue the links or the redirect target of a capture of this quality."""
        capture = stored.record.capture
        if quality <= CaptureQuality.PARTIAL:
            self._frontier.enqueue_links(resource, stored.links, capture.datetime)
            self._frontier.add_script_candidates(resource, stored.script_urls, capture.datetime)
        elif quality is CaptureQuality.REDIRECT and capture.redirect is not None:
            self._frontier.enqueue_redirect_target(resource, urljoin(capture.uri, capture.redirect.strip()))

    def _is_digest_mismatch(self, stored: StoredCapture) -> bool:
        """Return whether a capture contradicts its digest in the index, unless those of the archive are unreliable."""
        if stored.matches_listed_digest is None:
            return False
        archive = stored.record.capture.archive or ""
        self._digest_trust[archive] += 1 if stored.matches_listed_digest else -1
        return not stored.matches_listed_digest and self._digest_trust[archive] > -_MAX_DIGEST_MISMATCHES

    def _missing_reason(self, resource: RecoveryResource) -> str:
        outcomes = {each.outcome for each in self._state.captures.of_resource(resource.id)}
        queries = self._state.captures.query_outcomes(resource.id)
        if CaptureOutcome.FAILED in outcomes or "failed" in queries.values():
            return "failed"
        if not outcomes:
            return "not-held"
        if CaptureOutcome.REJECTED in outcomes:
            return "rejected"
        return "excluded" if outcomes == {CaptureOutcome.EXCLUDED} else "no-good-copy"
