"""Takes one step for a resource: asks the archive whose turn it is, keeps what comes, and says what comes next."""

import asyncio
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from urllib.parse import urljoin

from unlost import dates
from unlost.archives.repository import Repository, StoredCopy
from unlost.clock import Clock
from unlost.errors import ArchiveError, DateError, ExcludedError, NotNowError, UriError
from unlost.formats.capture import Capture
from unlost.pages.link import Use
from unlost.recover import choice, keeping
from unlost.recover.choice import ACCEPTED, Worth
from unlost.recover.doors import Doors
from unlost.recover.following import Following
from unlost.recover.keeping import Kept
from unlost.recover.knowledge import Knowledge
from unlost.recover.listing import keep_captures
from unlost.recover.listing_filter import NO_CONTENT
from unlost.recover.other_hosts import OtherHostQueries
from unlost.recover.plan import Plan, Policy
from unlost.recover.record import Record
from unlost.recover.rejecting import Rejecting
from unlost.recover.scope import Scope
from unlost.recover.state.captures import Listed, Outcome
from unlost.recover.state.resources import Resource, Standing
from unlost.recover.state.state import State
from unlost.recover.steps import AskFor, Fetch, Step, Steps, Stored
from unlost.recover.telling import Tell
from unlost.recover.warcs import Warcs
from unlost.uri import naming

_WHOLE = (Worth.GOOD, Worth.MIGRATED, Worth.DOUBTFUL, Worth.REJECTED)  # whose bodies are complete
_SMALL = 1 << 17  # bytes of a body
_DISBELIEF = 10  # copies more that are not as listed than those that are: then it is the list that is wrong
# What web sites number by a query, so that browsers notice a new version.
_VERSIONED = re.compile(r"\.(css|m?js|png|jpe?g|gif|webp|svg|ico|bmp|avif|woff2?|ttf|otf|eot)$", re.IGNORECASE)
_PLANNED = 1000  # steps that are remembered: as many as may be served soon


class Serving:
    """Serves resources.

    knowledge: what lists have shown; to be set anew when another list has ended.
    recovered: how many resources are, over all runs.
    failed_before: the resources of which something failed in an earlier run.
    """

    def __init__(
        self,
        plan: Plan,
        scope: Scope,
        state: State,
        warcs: Warcs,
        repositories: Mapping[str, Repository],
        doors: Doors,
        following: Following,
        clock: Clock,
        tell: Tell,
    ) -> None:
        self._plan = plan
        self._scope = scope
        self._state = state
        self._warcs = warcs
        self._repositories = repositories
        self._doors = doors
        self._following = following
        self._clock = clock
        self._tell = tell
        self._steps = Steps(plan, scope.is_own)
        self._disk = asyncio.Lock()
        self._rejecting = Rejecting(state, warcs, tell, is_dropping=plan.drop_rejected)
        self._other_hosts = OtherHostQueries(plan, scope, state, repositories)
        # Copies that are as their index says, less those that are not: some have digests of something else.
        self._believed: Counter[str] = Counter()
        self._coming: dict[str, asyncio.Event] = {}
        self._versions: dict[int, list[Fetch]] = {}  # of some resources, the last first
        self._planned: dict[int, Step] = {}  # the next steps of some resources, so as not to look twice
        self._knowledge = Knowledge([], [])
        self.failed_before: frozenset[int] = frozenset()
        self.recovered = state.resources.recovered()

    @property
    def knowledge(self) -> Knowledge:
        """What listings have shown."""
        return self._knowledge

    @knowledge.setter
    def knowledge(self, found: Knowledge) -> None:
        self._knowledge = found
        self._other_hosts.note_holding(None)

    def step(self, resource: Resource) -> Step | None:
        """Return the next step for a resource; None if there is none."""
        listed = self._listed(resource)
        asked = self._state.captures.asked(resource.id)
        stored = None
        if resource.record is not None:
            kept = self._state.records.get(resource.record)
            stored = Stored(Worth(kept.worth), kept.record.capture)
        among = self._other_hosts.archives_for(resource)
        return self._steps.next(resource, listed, asked, stored, self.knowledge, self._doors.closed, among)

    def _listed(self, resource: Resource) -> list[Listed]:
        """Return its captures, but for those of archives that were listed and do not take part this time."""
        return [each for each in self._state.captures.of(resource.id) if each.capture.archive in self._repositories]

    def settle(self, resource: Resource) -> str | None:
        """Return the archive whose turn is next; None if the resource is finished, and was said to be."""
        step: Step | None = None
        if self._rejecting.is_doubted(resource.id):
            step = self._opinion(resource)
            resource = self._state.resources.get(resource.id)  # which copy is best may have been decided just now
        kept = None if resource.record is None else self._state.records.get(resource.record)
        may_be_better = self._plan.all_versions or resource.id in self.failed_before
        is_best = kept is not None and kept.worth == Worth.GOOD and not may_be_better
        if step is None and not is_best:
            step = self._next_version(resource) or self.step(resource)
        if step is not None:
            self._state.resources.assign(resource.id, step.archive)
            if len(self._planned) < _PLANNED:
                self._planned[resource.id] = step
            return step.archive
        now = dates.from_epoch(str(int(self._clock.now())))
        if kept is not None and kept.worth <= ACCEPTED:
            is_doubtful = kept.worth == Worth.DOUBTFUL
            if (is_doubtful or self._state.is_followed_again) and not self._state.resources.leads_on(resource.id):
                self._follow_kept(resource)
            self.recovered += not resource.was_recovered
            self._state.resources.finish(resource.id, Standing.RECOVERED, now)
            capture = kept.record.capture
            known = {"uri": capture.uri, "archive": capture.archive, "datetime": capture.datetime}
            self._tell("recovered", {**known, "doubtful": is_doubtful})
        elif self._is_only_looked_for(resource):
            self._state.resources.drop(resource.id)
        else:
            self._end_without_capture(resource, now)
        return None

    def _end_without_capture(self, resource: Resource, now: str) -> None:
        """Finish a resource of which no capture is good enough: another is shown in its place, or it is missing.

        What no link points to, and of which archives have only errors and redirects to other sites, is left out.
        """
        reason = self._why_missing(resource)
        self.recovered -= resource.was_recovered
        other = self._substitute_for(resource) if reason != "failed" else None
        if other is not None:
            self._state.resources.substitute(resource.id, other.id, now, resource.near)
            self._planned.pop(other.id, None)
            self._tell("substituted", {"uri": resource.uri, "by": other.uri})
        elif self._is_without_content(resource):
            self._state.resources.leave_out({resource.id: NO_CONTENT})
        else:
            self.end_as_missing(resource, now, reason)

    def _is_without_content(self, resource: Resource) -> bool:
        """Return whether no link points to a listed resource, and all its captures are known to be no content.

        A capture that is listed as good and could not be had is missing.
        """
        if self._plan.policy is not Policy.COMPLETE or self._is_needed(resource):
            return False
        captures = self._state.captures.of(resource.id)
        return bool(captures) and all(
            each.outcome in (Outcome.STORED, None)
            and (
                each.outcome is Outcome.STORED
                or choice.worth(each.capture, self._scope.is_own, resource.name) > ACCEPTED
            )
            for each in captures
        )

    def end_without_substitute(self, resource: Resource, now: str) -> None:
        """Finish a resource whose substitute did not come back: by another that did, or as missing."""
        other = self._substitute_for(resource, is_recovered=True)
        if other is not None:
            self._state.resources.substitute(resource.id, other.id, now, resource.near)
        else:
            self.end_as_missing(resource, now)

    def forget(self, numbers: Iterable[int]) -> None:
        """Forget what was planned for resources that are no longer there: their ids may be used again."""
        for number in numbers:
            self._planned.pop(number, None)
            self._versions.pop(number, None)

    def end_as_missing(self, resource: Resource, now: str, reason: str | None = None) -> None:
        """Finish a resource as missing. now: 14 digits. reason: None to find it out."""
        why = reason or self._why_missing(resource)
        self._state.resources.finish(resource.id, Standing.MISSING, now, why)
        self._tell("missing", {"uri": resource.uri, "reason": why})

    def _is_needed(self, resource: Resource) -> bool:
        if resource.name in self._scope.named:
            return True
        # The queue counts robots.txt and the sitemap as linked, although no page links to them.
        return self._state.resources.is_linked(resource.id) if resource.use is Use.LIST else resource.is_linked

    def _substitute_for(self, resource: Resource, *, is_recovered: bool = False) -> Resource | None:
        """Return the resource with the same path and another query whose capture is closest in time, if one is listed.

        Style sheets, scripts, fonts and images have version numbers in their queries; of anything else the query says
        what it is. Where archives cannot list what they have, they are queried for the path without a query.
        is_recovered: whether only those count that came back.
        """
        if resource.use is not Use.REQUISITE or not _VERSIONED.search(resource.name.partition("?")[0]):
            return None
        closest: tuple[float, Resource] | None = None
        for other in self._state.resources.with_path(resource.name):
            if other.standing in (Standing.MISSING, Standing.SUBSTITUTED):
                continue
            if is_recovered and other.standing is not Standing.RECOVERED:
                continue
            captures = [each.capture for each in self._listed(other)]
            distances = [
                choice.distance(capture, resource.near)
                for capture in captures
                if choice.worth(capture, self._scope.is_own, other.name) <= Worth.PARTIAL
                and "html" not in (capture.mime or "")
            ]
            if distances and (closest is None or min(distances) < closest[0]):
                closest = min(distances), other
        if closest is not None or is_recovered:
            return closest[1] if closest else None
        return self._following.guess_without_query(resource) if self._may_be_unlisted(resource) else None

    def _may_be_unlisted(self, resource: Resource) -> bool:
        """Return whether the path of a resource without its query may be in an archive that cannot list it."""
        plain = resource.uri.partition("?")[0]
        is_own = self._scope.is_own(resource.uri)
        return "?" in resource.name and is_own and bool(self.knowledge.possible(plain, {}))

    def _is_only_looked_for(self, resource: Resource) -> bool:
        """Return whether nobody can say that a resource ever was: a list that sites may have, a guess from a script."""
        if resource.use is Use.LIST:
            is_listed = self._plan.policy is Policy.COMPLETE and bool(self._state.captures.of(resource.id))
            return not is_listed and not self._state.resources.is_linked(resource.id)
        if resource.was_recovered or resource.name in self._scope.named:
            return False
        is_listed = self._plan.policy.uses_listings and bool(self._state.captures.of(resource.id))
        return not is_listed and self._state.candidates.is_one(resource.id)

    def _opinion(self, resource: Resource) -> Step | None:
        """Return the step that ends a doubt; None if there is no doubt. What nobody can tell ends it, too."""
        if not self._rejecting.is_doubted(resource.id):
            return None
        open_ones = [
            each
            for each in self._steps.left(resource, self._listed(resource), None)
            if each.archive not in self._doors.closed
        ]
        step = self._rejecting.opinion(resource.id, open_ones)
        if step is None:
            self._decide(resource, None, None, Worth.REJECTED)
        return step

    def _next_version(self, resource: Resource) -> Step | None:
        """Return the next of all versions, of which there may be thousands: they are put in order once."""
        if not self._plan.all_versions or resource.record is None:
            return None
        if resource.id not in self._versions and len(self._versions) < _PLANNED:
            self._versions[resource.id] = self._steps.left(resource, self._listed(resource), None)[::-1]
        versions = self._versions.get(resource.id)
        if not versions:
            self._versions.pop(resource.id, None)
            return None
        return versions.pop()

    async def serve(self, resource: Resource, archive: str) -> str | None:
        """Take one step, if it is still this archive's turn, and return as `settle` does. Raises OSError."""
        step = self._planned.pop(resource.id, None)
        if step is None or step.archive != archive or archive in self._doors.closed:
            step = self._opinion(resource) or self.step(resource)
        if isinstance(step, AskFor) and step.archive == archive:
            await self._ask(resource, archive)
        elif isinstance(step, Fetch) and step.archive == archive:
            await self._fetch(resource, step)
        return self.settle(self._state.resources.get(resource.id))

    async def _ask(self, resource: Resource, archive: str) -> None:
        """Ask an archive which captures it has of the page."""
        if await self._other_hosts.list_host(resource, archive):
            return
        self._other_hosts.count(resource, archive)
        found: list[Capture] = []
        outcome = "done"
        try:
            async for capture in self._repositories[archive].captures(naming.asked_as(resource.uri, resource.name)):
                found.append(capture)  # noqa: PERF401  what came before an error is kept
            self._doors.answered(archive)
        except NotNowError as error:
            self._doors.failed(archive, error)
            return
        except ExcludedError:
            outcome = "excluded"
        except ArchiveError as error:
            self._doors.failed(archive, error)
            outcome = "failed"
        if found:
            self._other_hosts.note_holding(archive)
        self._keep_listed(resource, found)
        self._state.captures.note_asked(resource.id, archive, outcome)

    def _keep_listed(self, resource: Resource, found: list[Capture]) -> None:
        """Keep captures with the resource.

        Those that an archive takes for it, though their name is another, are its own if there are no others.
        """
        names = naming.names_of([capture.uri for capture in found], ignore_case=self._plan.ignore_case)
        named = [(name, each) for name, each in zip(names, found, strict=True) if not isinstance(name, UriError)]
        exact = [capture for name, capture in named if name == resource.name]
        self._state.captures.add((resource.id, capture) for capture in exact or [capture for _, capture in named])
        if exact:
            keep_captures([capture for name, capture in named if name != resource.name], self._state, self._plan)

    async def _fetch(self, resource: Resource, step: Fetch) -> None:
        capture = step.listed.capture
        digest = capture.digest if capture.status is not None else None
        while digest in self._coming:
            await self._coming[digest].wait()
        if digest is not None and (same := self._with_payload(digest, capture)) is not None:
            async with self._disk:
                kept = await asyncio.to_thread(keeping.keep_same, self._warcs, capture, same)
            self._keep(resource, step, kept)
            return
        coming = asyncio.Event()
        if digest is not None:
            self._coming[digest] = coming
        try:
            await self._fetch_alone(resource, step)
        finally:
            if digest is not None:
                del self._coming[digest]
            coming.set()

    def _with_payload(self, digest: str, capture: Capture) -> Record | None:
        """Return a record that has the bytes of a capture; None if there is none that is known to.

        An index is believed within its archive; between archives only what the bytes themselves say.
        """
        for kept in self._state.records.with_digest(digest):
            record = kept.record
            is_sure = record.capture.digest == digest or record.capture.archive == capture.archive
            if is_sure and kept.worth in _WHOLE and record.truncated is None and not record.capture.revisit:
                return record
        return None

    async def _fetch_alone(self, resource: Resource, step: Fetch) -> None:
        listed, archive = step.listed, step.archive
        try:
            copy = await self._repositories[archive].fetch(listed.capture)
        except NotNowError as error:
            self._doors.failed(archive, error)
            if error.reason == "told-to-wait":
                is_again = listed.outcome is Outcome.PUT_OFF
                self._state.captures.tried(listed.id, Outcome.FAILED if is_again else Outcome.PUT_OFF)
            return
        except ExcludedError:
            self._state.captures.tried(listed.id, Outcome.EXCLUDED)
            return
        except (ArchiveError, UriError) as error:
            if isinstance(error, ArchiveError):
                self._doors.failed(archive, error)
            self._tell("failed", {"uri": listed.capture.uri, "archive": archive, "message": str(error)})
            self._state.captures.tried(listed.id, Outcome.FAILED)
            return
        self._doors.answered(archive)
        if copy is None or not self._is_wanted(copy):
            self._state.captures.tried(listed.id, Outcome.ABSENT)
            return
        # What the index says is said of the capture that was asked for, not of the closest one.
        told = listed.capture if copy.capture.datetime == listed.capture.datetime else None
        try:
            with copy.body:
                async with self._disk:
                    kept = await self._stored(copy, told)
        except (UriError, DateError) as error:  # no record can have such an address, or date
            self._tell("failed", {"uri": listed.capture.uri, "archive": archive, "message": str(error)})
            self._state.captures.tried(listed.id, Outcome.ABSENT)
            return
        self._keep(resource, step, kept)

    async def _stored(self, copy: StoredCopy, told: Capture | None) -> Kept:
        """Store a copy; unless it is small, others run meanwhile.

        What is small is stored in less time than two threads take that wait for each other's turn with Python.
        """
        if copy.body.seek(0, os.SEEK_END) <= _SMALL:
            return keeping.keep(self._warcs, copy, told)
        return await asyncio.to_thread(keeping.keep, self._warcs, copy, told)

    def _is_wanted(self, copy: StoredCopy) -> bool:
        """Return whether a copy that came for another date is of a time that is wanted."""
        first, last = self._plan.first or "", self._plan.last or "9"
        return first <= copy.capture.datetime <= last

    def _keep(self, resource: Resource, step: Fetch, kept: Kept) -> None:
        is_preferred = step.listed.outcome is Outcome.AGAIN
        number, worth = self.note(resource, kept, is_preferred=is_preferred)
        is_rejected = worth in (Worth.DOUBTFUL, Worth.REJECTED)
        self._state.captures.tried(step.listed.id, Outcome.REJECTED if is_rejected else Outcome.STORED)
        if self._rejecting.is_doubted(resource.id):
            self._decide(resource, number, kept, worth)
        elif not self._rejecting.doubt(resource.id, number, step.listed.id, kept, worth):
            self._follow(resource, kept, worth)

    def _decide(self, resource: Resource, number: int | None, kept: Kept | None, worth: Worth) -> None:
        """End a doubt by a copy from before, if one came, and follow the links of the one that is right."""
        right = self._rejecting.decide(resource.id, number)
        if right is not None:
            self._follow(resource, right, Worth.GOOD)
        elif kept is not None:
            self._follow(resource, kept, worth)

    def note(self, resource: Resource, kept: Kept, *, is_preferred: bool = False) -> tuple[int, Worth]:
        """Keep in the state that a record is there; return its id and its worth.

        is_preferred: whether it goes before one of the same worth that is there already.
        """
        capture = kept.record.capture
        worth = choice.worth_of_copy(
            capture,
            self._scope.is_own,
            resource.name,
            size=kept.size,
            truncated=kept.record.truncated or ("other-digest" if self._is_other(kept) else None),
            ignore_case=self._plan.ignore_case,
        )
        if worth is Worth.MIGRATED and self._plan.most_recent:
            worth = Worth.GOOD  # it is as good as any
        verdict = self._rejecting.verdict(kept.page, worth)
        number = self._state.records.add(resource.id, worth, kept.record)
        if verdict is not None:
            worth = self._rejecting.reject(number, kept.record, worth, verdict)
        self._following.other_hosts.note_stored(resource.uri, kept.record.size)
        best = self._state.records.best(resource.id)
        is_as_good = is_preferred and best is not None and worth <= self._state.records.get(best).worth
        self._state.resources.choose(resource.id, number if is_as_good else best)
        return number, worth

    def _follow_kept(self, resource: Resource) -> None:
        """Queue what the captures link to that were stored before; of doubtful ones, only the chosen one."""
        for kept in self._state.records.of(resource.id):
            is_chosen = kept.worth == Worth.DOUBTFUL and kept.id == resource.record
            if kept.worth <= Worth.REDIRECT or is_chosen:
                is_read = kept.worth <= Worth.PARTIAL or is_chosen
                copy = keeping.reread(self._warcs, kept.record) if is_read else keeping.unread(kept.record)
                self._follow(resource, copy, Worth.GOOD if is_chosen else Worth(kept.worth))

    def _follow(self, resource: Resource, kept: Kept, worth: Worth) -> None:
        """Want what a copy of so much worth leads to."""
        capture = kept.record.capture
        if worth <= Worth.PARTIAL:
            self._following.follow(resource, kept.links, capture.datetime)
            self._following.consider(resource, kept.candidates, capture.datetime)
        elif worth is Worth.REDIRECT and capture.redirect is not None:
            self._following.redirect(resource, urljoin(capture.uri, capture.redirect.strip()))

    def _is_other(self, kept: Kept) -> bool:
        """Return whether a copy is not what its index says, unless the index is usually wrong."""
        if kept.is_as_listed is None:
            return False
        archive = kept.record.capture.archive or ""
        self._believed[archive] += 1 if kept.is_as_listed else -1
        return not kept.is_as_listed and self._believed[archive] > -_DISBELIEF

    def _why_missing(self, resource: Resource) -> str:
        outcomes = {each.outcome for each in self._state.captures.of(resource.id)}
        asked = self._state.captures.asked(resource.id)
        if Outcome.FAILED in outcomes or "failed" in asked.values():
            return "failed"
        if not outcomes:
            return "not-held"
        if Outcome.REJECTED in outcomes:
            return "rejected"
        return "excluded" if outcomes == {Outcome.EXCLUDED} else "no-good-copy"
