"""Fetches resources.

Sends the request that is planned, stores and ranks the capture, and schedules the next archive.
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
from unlost.http.circuit_breaker import CircuitBreakers
from unlost.recover import ranking, warc_store
from unlost.recover.frontier import RecoveryFrontier
from unlost.recover.listings import NO_CONTENT, ListingCoverage, store_listed_captures
from unlost.recover.options import EventCallback, RecoverOptions, RecoverPolicy
from unlost.recover.page_requisites import RequisiteLookups
from unlost.recover.planner import BestCapture, FetchCapture, FetchPlanner, QueryCaptures, Step
from unlost.recover.quality_gate import QualityGate
from unlost.recover.ranking import WORST_ACCEPTED, CaptureQuality
from unlost.recover.scope import RecoveryScope
from unlost.recover.state.captures import CaptureOutcome, CaptureRow
from unlost.recover.state.resources import RecoveryResource, ResourceStatus
from unlost.recover.state.store import RecoveryState
from unlost.recover.warc_records import RecoveryRecord
from unlost.recover.warc_store import StoredCapture, WarcStore
from unlost.uri import names as uri_names

_COMPLETE_BODY = (
    CaptureQuality.GOOD,
    CaptureQuality.MIGRATED,
    CaptureQuality.DOUBTFUL,
    CaptureQuality.REJECTED,
)  # whose bodies are complete
_MAX_SYNC_BYTES = 1 << 17  # bytes of a body
_MAX_DIGEST_MISMATCHES = 10  # copies more that are not as listed than those that are: then it is the list that is wrong
# What web sites number by a query, so that browsers notice a new version.
_VERSIONED_EXTENSION = re.compile(
    r"\.(css|m?js|png|jpe?g|gif|webp|svg|ico|bmp|avif|woff2?|ttf|otf|eot)$", re.IGNORECASE
)
_MAX_PLANNED = 1000  # steps that are remembered: as many as may be served soon


class ResourceFetcher:
    """Serves resources.

    knowledge: what lists have shown; to be set anew when another list has ended.
    recovered: how many resources are, over all runs.
    failed_before: the resources of which something failed in an earlier run.
    """

    def __init__(
        self,
        options: RecoverOptions,
        scope: RecoveryScope,
        state: RecoveryState,
        warcs: WarcStore,
        repositories: Mapping[str, ArchiveClient],
        breakers: CircuitBreakers,
        frontier: RecoveryFrontier,
        clock: Clock,
        on_event: EventCallback,
    ) -> None:
        self._options = options
        self._scope = scope
        self._state = state
        self._warcs = warcs
        self._repositories = repositories
        self._breakers = breakers
        self._frontier = frontier
        self._clock = clock
        self._on_event = on_event
        self._planner = FetchPlanner(options, scope.is_own)
        self._disk = asyncio.Lock()
        self._quality_gate = QualityGate(state, warcs, on_event, drop_rejected=options.drop_rejected)
        self._requisite_lookups = RequisiteLookups(options, scope, state, repositories)
        # Copies that are as their index says, less those that are not: some have digests of something else.
        self._digest_trust: Counter[str] = Counter()
        self._fetches_by_digest: dict[str, asyncio.Event] = {}
        self._versions: dict[int, list[FetchCapture]] = {}  # of some resources, the last first
        self._planned: dict[int, Step] = {}  # the next steps of some resources, so as not to look twice
        self._coverage = ListingCoverage([], [])
        self.failed_before: frozenset[int] = frozenset()
        self.recovered = state.resources.count_recovered()

    @property
    def coverage(self) -> ListingCoverage:
        """What listings have shown."""
        return self._coverage

    @coverage.setter
    def coverage(self, found: ListingCoverage) -> None:
        self._coverage = found
        self._requisite_lookups.mark_holding(None)

    def next_step(self, resource: RecoveryResource) -> Step | None:
        """Return the next step for a resource; None if there is none."""
        listed = self._listed_captures(resource)
        asked = self._state.captures.query_outcomes(resource.id)
        stored = None
        if resource.record is not None:
            kept = self._state.records.get(resource.record)
            stored = BestCapture(CaptureQuality(kept.quality), kept.record.capture)
        among = self._requisite_lookups.archives_for(resource)
        return self._planner.next_step(resource, listed, asked, stored, self.coverage, self._breakers.suspended, among)

    def _listed_captures(self, resource: RecoveryResource) -> list[CaptureRow]:
        """Return its captures, but for those of archives that were listed and do not take part this time."""
        return [
            each for each in self._state.captures.of_resource(resource.id) if each.capture.archive in self._repositories
        ]

    def schedule_next(self, resource: RecoveryResource) -> str | None:
        """Return the archive whose turn is next; None if the resource is finished, and was said to be."""
        step: Step | None = None
        if self._quality_gate.is_pending(resource.id):
            step = self._second_opinion(resource)
            resource = self._state.resources.get(resource.id)  # which copy is best may have been decided just now
        kept = None if resource.record is None else self._state.records.get(resource.record)
        may_be_better = self._options.all_versions or resource.id in self.failed_before
        is_best = kept is not None and kept.quality == CaptureQuality.GOOD and not may_be_better
        if step is None and not is_best:
            step = self._next_version(resource) or self.next_step(resource)
        if step is not None:
            self._state.resources.assign(resource.id, step.archive)
            if len(self._planned) < _MAX_PLANNED:
                self._planned[resource.id] = step
            return step.archive
        now = dates.from_epoch(str(int(self._clock.now())))
        if kept is not None and kept.quality <= WORST_ACCEPTED:
            is_doubtful = kept.quality == CaptureQuality.DOUBTFUL
            if (is_doubtful or self._state.must_refollow_links) and not self._state.resources.has_followed_links(
                resource.id
            ):
                self._follow_stored(resource)
            self.recovered += not resource.was_recovered
            self._state.resources.finish(resource.id, ResourceStatus.RECOVERED, now)
            capture = kept.record.capture
            known = {"uri": capture.uri, "archive": capture.archive, "datetime": capture.datetime}
            self._on_event("recovered", {**known, "doubtful": is_doubtful})
        elif self._is_guess(resource):
            self._state.resources.unqueue(resource.id)
        else:
            self._finish_without_capture(resource, now)
        return None

    def _finish_without_capture(self, resource: RecoveryResource, now: str) -> None:
        """Finish a resource of which no capture is good enough: another is shown in its place, or it is missing.

        What no link points to, and of which archives have only errors and redirects to other sites, is left out.
        """
        reason = self._missing_reason(resource)
        self.recovered -= resource.was_recovered
        other = self._substitute_for(resource) if reason != "failed" else None
        if other is not None:
            self._state.resources.substitute(resource.id, other.id, now, resource.page_datetime)
            self._planned.pop(other.id, None)
            self._on_event("substituted", {"uri": resource.uri, "by": other.uri})
        elif self._has_no_content(resource):
            self._state.resources.skip({resource.id: NO_CONTENT})
        else:
            self.finish_as_missing(resource, now, reason)

    def _has_no_content(self, resource: RecoveryResource) -> bool:
        """Return whether no link points to a listed resource, and all its captures are known to be no content.

        A capture that is listed as good and could not be had is missing.
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
        """Finish a resource whose substitute did not come back: by another that did, or as missing."""
        other = self._substitute_for(resource, is_recovered=True)
        if other is not None:
            self._state.resources.substitute(resource.id, other.id, now, resource.page_datetime)
        else:
            self.finish_as_missing(resource, now)

    def forget_planned(self, numbers: Iterable[int]) -> None:
        """Forget what was planned for resources that are no longer there: their ids may be used again."""
        for number in numbers:
            self._planned.pop(number, None)
            self._versions.pop(number, None)

    def finish_as_missing(self, resource: RecoveryResource, now: str, reason: str | None = None) -> None:
        """Finish a resource as missing. now: 14 digits. reason: None to find it out."""
        why = reason or self._missing_reason(resource)
        self._state.resources.finish(resource.id, ResourceStatus.MISSING, now, why)
        self._on_event("missing", {"uri": resource.uri, "reason": why})

    def _is_needed(self, resource: RecoveryResource) -> bool:
        if resource.name in self._scope.named:
            return True
        # The queue counts robots.txt and the sitemap as linked, although no page links to them.
        return (
            self._state.resources.is_linked(resource.id) if resource.link_kind is LinkKind.LIST else resource.is_linked
        )

    def _substitute_for(self, resource: RecoveryResource, *, is_recovered: bool = False) -> RecoveryResource | None:
        """Return the resource with the same path and another query whose capture is closest in time, if one is listed.

        Style sheets, scripts, fonts and images have version numbers in their queries; of anything else the query says
        what it is. Where archives cannot list what they have, they are queried for the path without a query.
        is_recovered: whether only those count that came back.
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
        """Return whether the path of a resource without its query may be in an archive that cannot list it."""
        plain = resource.uri.partition("?")[0]
        is_own = self._scope.is_own(resource.uri)
        return "?" in resource.name and is_own and bool(self.coverage.archives_to_query(plain, {}))

    def _is_guess(self, resource: RecoveryResource) -> bool:
        """Return whether nobody can say that a resource ever was: a list that sites may have, a guess from a script."""
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
        """Return the step that ends a doubt; None if there is no doubt. What nobody can tell ends it, too."""
        if not self._quality_gate.is_pending(resource.id):
            return None
        open_ones = [
            each
            for each in self._planner.remaining_fetches(resource, self._listed_captures(resource), None)
            if each.archive not in self._breakers.suspended
        ]
        step = self._quality_gate.next_opinion(resource.id, open_ones)
        if step is None:
            self._resolve_pending(resource, None, None, CaptureQuality.REJECTED)
        return step

    def _next_version(self, resource: RecoveryResource) -> Step | None:
        """Return the next of all versions, of which there may be thousands: they are put in order once."""
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
        """Take one step, if it is still this archive's turn, and return as `settle` does. Raises OSError."""
        step = self._planned.pop(resource.id, None)
        if step is None or step.archive != archive or archive in self._breakers.suspended:
            step = self._second_opinion(resource) or self.next_step(resource)
        if isinstance(step, QueryCaptures) and step.archive == archive:
            await self._query_captures(resource, archive)
        elif isinstance(step, FetchCapture) and step.archive == archive:
            await self._fetch(resource, step)
        return self.schedule_next(self._state.resources.get(resource.id))

    async def _query_captures(self, resource: RecoveryResource, archive: str) -> None:
        """Ask an archive which captures it has of the page."""
        if await self._requisite_lookups.list_folder(resource, archive):
            return
        self._requisite_lookups.count_lookups(resource, archive)
        found: list[Capture] = []
        outcome = "done"
        try:
            async for capture in self._repositories[archive].captures(
                uri_names.archive_lookup_url(resource.uri, resource.name)
            ):
                found.append(capture)  # noqa: PERF401  what came before an error is kept
            self._breakers.record_success(archive)
        except NotNowError as error:
            self._breakers.record_failure(archive, error)
            return
        except ExcludedError:
            outcome = "excluded"
        except ArchiveError as error:
            self._breakers.record_failure(archive, error)
            outcome = "failed"
        if found:
            self._requisite_lookups.mark_holding(archive)
        self._store_listed(resource, found)
        self._state.captures.set_query_outcome(resource.id, archive, outcome)

    def _store_listed(self, resource: RecoveryResource, found: list[Capture]) -> None:
        """Keep captures with the resource.

        Those that an archive takes for it, though their name is another, are its own if there are no others.
        """
        names = uri_names.page_names([capture.uri for capture in found], ignore_case=self._options.ignore_case)
        named = [(name, each) for name, each in zip(names, found, strict=True) if not isinstance(name, UriError)]
        exact = [capture for name, capture in named if name == resource.name]
        self._state.captures.add((resource.id, capture) for capture in exact or [capture for _, capture in named])
        if exact:
            store_listed_captures(
                [capture for name, capture in named if name != resource.name], self._state, self._options
            )

    async def _fetch(self, resource: RecoveryResource, step: FetchCapture) -> None:
        capture = step.listed.capture
        digest = capture.digest if capture.status is not None else None
        while digest in self._fetches_by_digest:
            await self._fetches_by_digest[digest].wait()
        if digest is not None and (same := self._with_payload(digest, capture)) is not None:
            async with self._disk:
                kept = await asyncio.to_thread(warc_store.store_revisit, self._warcs, capture, same)
            self._store_fetched(resource, step, kept)
            return
        coming = asyncio.Event()
        if digest is not None:
            self._fetches_by_digest[digest] = coming
        try:
            await self._fetch_capture(resource, step)
        finally:
            if digest is not None:
                del self._fetches_by_digest[digest]
            coming.set()

    def _with_payload(self, digest: str, capture: Capture) -> RecoveryRecord | None:
        """Return a record that has the bytes of a capture; None if there is none that is known to.

        An index is believed within its archive; between archives only what the bytes themselves say.
        """
        for kept in self._state.records.with_digest(digest):
            record = kept.record
            is_sure = record.capture.digest == digest or record.capture.archive == capture.archive
            if is_sure and kept.quality in _COMPLETE_BODY and record.truncated is None and not record.capture.revisit:
                return record
        return None

    async def _fetch_capture(self, resource: RecoveryResource, step: FetchCapture) -> None:
        listed, archive = step.listed, step.archive
        try:
            copy = await self._repositories[archive].fetch(listed.capture)
        except NotNowError as error:
            self._breakers.record_failure(archive, error)
            if error.reason == "told-to-wait":
                is_again = listed.outcome is CaptureOutcome.DEFERRED
                self._state.captures.set_outcome(
                    listed.id, CaptureOutcome.FAILED if is_again else CaptureOutcome.DEFERRED
                )
            return
        except ExcludedError:
            self._state.captures.set_outcome(listed.id, CaptureOutcome.EXCLUDED)
            return
        except (ArchiveError, UriError) as error:
            if isinstance(error, ArchiveError):
                self._breakers.record_failure(archive, error)
            self._on_event("failed", {"uri": listed.capture.uri, "archive": archive, "message": str(error)})
            self._state.captures.set_outcome(listed.id, CaptureOutcome.FAILED)
            return
        self._breakers.record_success(archive)
        if copy is None or not self._is_in_time_range(copy):
            self._state.captures.set_outcome(listed.id, CaptureOutcome.ABSENT)
            return
        # What the index says is said of the capture that was asked for, not of the closest one.
        told = listed.capture if copy.capture.datetime == listed.capture.datetime else None
        try:
            with copy.body:
                async with self._disk:
                    kept = await self._store(copy, told)
        except (UriError, DateError) as error:  # no record can have such an address, or date
            self._on_event("failed", {"uri": listed.capture.uri, "archive": archive, "message": str(error)})
            self._state.captures.set_outcome(listed.id, CaptureOutcome.ABSENT)
            return
        self._store_fetched(resource, step, kept)

    async def _store(self, copy: FetchedCapture, listed: Capture | None) -> StoredCapture:
        """Store a copy; unless it is small, others run meanwhile.

        What is small is stored in less time than two threads take that wait for each other's turn with Python.
        """
        if copy.body.seek(0, os.SEEK_END) <= _MAX_SYNC_BYTES:
            return warc_store.store_capture(self._warcs, copy, listed)
        return await asyncio.to_thread(warc_store.store_capture, self._warcs, copy, listed)

    def _is_in_time_range(self, copy: FetchedCapture) -> bool:
        """Return whether a copy that came for another date is of a time that is wanted."""
        first, last = self._options.first or "", self._options.last or "9"
        return first <= copy.capture.datetime <= last

    def _store_fetched(self, resource: RecoveryResource, step: FetchCapture, stored: StoredCapture) -> None:
        is_preferred = step.listed.outcome is CaptureOutcome.RETRY
        number, worth = self.store_record(resource, stored, is_preferred=is_preferred)
        is_rejected = worth in (CaptureQuality.DOUBTFUL, CaptureQuality.REJECTED)
        self._state.captures.set_outcome(
            step.listed.id, CaptureOutcome.REJECTED if is_rejected else CaptureOutcome.STORED
        )
        if self._quality_gate.is_pending(resource.id):
            self._resolve_pending(resource, number, stored, worth)
        elif not self._quality_gate.defer(resource.id, number, step.listed.id, stored, worth):
            self._follow(resource, stored, worth)

    def _resolve_pending(
        self, resource: RecoveryResource, number: int | None, stored: StoredCapture | None, quality: CaptureQuality
    ) -> None:
        """End a doubt by a copy from before, if one came, and follow the links of the one that is right."""
        right = self._quality_gate.resolve(resource.id, number)
        if right is not None:
            self._follow(resource, right, CaptureQuality.GOOD)
        elif stored is not None:
            self._follow(resource, stored, quality)

    def store_record(
        self, resource: RecoveryResource, stored: StoredCapture, *, is_preferred: bool = False
    ) -> tuple[int, CaptureQuality]:
        """Keep in the state that a record is there; return its id and its worth.

        is_preferred: whether it goes before one of the same worth that is there already.
        """
        capture = stored.record.capture
        worth = ranking.stored_quality(
            capture,
            self._scope.is_own,
            resource.name,
            size=stored.size,
            truncated=stored.record.truncated or ("other-digest" if self._is_digest_mismatch(stored) else None),
            ignore_case=self._options.ignore_case,
        )
        if worth is CaptureQuality.MIGRATED and self._options.most_recent:
            worth = CaptureQuality.GOOD  # it is as good as any
        verdict = self._quality_gate.classify(stored.page, worth)
        number = self._state.records.add(resource.id, worth, stored.record)
        if verdict is not None:
            worth = self._quality_gate.reject(number, stored.record, worth, verdict)
        self._frontier.requisite_budget.add_stored_bytes(resource.uri, stored.record.size)
        best = self._state.records.best(resource.id)
        is_as_good = is_preferred and best is not None and worth <= self._state.records.get(best).quality
        self._state.resources.set_best_record(resource.id, number if is_as_good else best)
        return number, worth

    def _follow_stored(self, resource: RecoveryResource) -> None:
        """Queue what the captures link to that were stored before; of doubtful ones, only the chosen one."""
        for kept in self._state.records.of_resource(resource.id):
            is_chosen = kept.quality == CaptureQuality.DOUBTFUL and kept.id == resource.record
            if kept.quality <= CaptureQuality.REDIRECT or is_chosen:
                is_read = kept.quality <= CaptureQuality.PARTIAL or is_chosen
                copy = (
                    warc_store.load_stored(self._warcs, kept.record)
                    if is_read
                    else warc_store.stored_redirect(kept.record)
                )
                self._follow(resource, copy, CaptureQuality.GOOD if is_chosen else CaptureQuality(kept.quality))

    def _follow(self, resource: RecoveryResource, stored: StoredCapture, quality: CaptureQuality) -> None:
        """Want what a copy of so much worth leads to."""
        capture = stored.record.capture
        if quality <= CaptureQuality.PARTIAL:
            self._frontier.enqueue_links(resource, stored.links, capture.datetime)
            self._frontier.add_script_candidates(resource, stored.script_urls, capture.datetime)
        elif quality is CaptureQuality.REDIRECT and capture.redirect is not None:
            self._frontier.enqueue_redirect_target(resource, urljoin(capture.uri, capture.redirect.strip()))

    def _is_digest_mismatch(self, stored: StoredCapture) -> bool:
        """Return whether a copy is not what its index says, unless the index is usually wrong."""
        if stored.matches_listed_digest is None:
            return False
        archive = stored.record.capture.archive or ""
        self._digest_trust[archive] += 1 if stored.matches_listed_digest else -1
        return not stored.matches_listed_digest and self._digest_trust[archive] > -_MAX_DIGEST_MISMATCHES

    def _missing_reason(self, resource: RecoveryResource) -> str:
        outcomes = {each.outcome for each in self._state.captures.of_resource(resource.id)}
        asked = self._state.captures.query_outcomes(resource.id)
        if CaptureOutcome.FAILED in outcomes or "failed" in asked.values():
            return "failed"
        if not outcomes:
            return "not-held"
        if CaptureOutcome.REJECTED in outcomes:
            return "rejected"
        return "excluded" if outcomes == {CaptureOutcome.EXCLUDED} else "no-good-copy"
