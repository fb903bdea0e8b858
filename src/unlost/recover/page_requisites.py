"""Page requisites on other hosts: which archives are queried for them, and the limits on files, bytes and lookups."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING

from unlost.archives.base import ArchiveClient
from unlost.errors import ArchiveError, UnsupportedError, UriError
from unlost.html.links import LinkKind
from unlost.recover.options import RecoverOptions
from unlost.recover.scope import RecoveryScope
from unlost.recover.state.resources import NewResource, RecoveryResource, ResourceStatus
from unlost.recover.state.schema import LOOKUPS_FACT
from unlost.recover.state.store import RecoveryState
from unlost.uri import names as uri_names

if TYPE_CHECKING:
    from unlost.capture import Capture


_LISTING_QUERIES = 2  # for a folder: its own page, and what is below it
_MIN_RESOURCES_TO_LIST = 3  # queued resources of one folder, for which a listing is cheaper than looking up each
_MAX_ROWS = 5_000  # of such a listing: a host that has more serves many sites


class RequisiteLookups:
    """Decides which archives are queried for resources of other hosts, and groups queries where that is cheaper.

    An archive that holds nothing of the site is not queried: what its pages need was crawled together with them. The
    archive that has the page comes first. Once `Plan.requisite_lookups` archives have answered for a URL, no other
    archive is queried for it. Sources on this machine cost no request and are always searched.
    """

    def __init__(
        self,
        options: RecoverOptions,
        scope: RecoveryScope,
        state: RecoveryState,
        repositories: Mapping[str, ArchiveClient],
    ) -> None:
        self._options = options
        self._scope = scope
        self._state = state
        self._repositories = repositories
        self._listings: dict[tuple[str, str], asyncio.Event] = {}
        self._holding: set[str] | None = None

    def archives_for(self, resource: RecoveryResource) -> Sequence[str] | None:
        """Return the archives to query for a resource, the most likely first; None for one of the site itself."""
        if self._scope.is_own(resource.uri) or resource.name in self._scope.named:
            return None
        if self._holding is None:
            self._holding = self._state.captures.archives_with_captures()
        first = self._state.records.archive_of_linking_page(resource.id)
        if first is not None:
            self._holding.add(first)
        order = [first] if first is not None and first in self._repositories else []
        order += [each for each in self._repositories if each in self._holding and each != first]
        local = [each for each in order if self._is_local(each)]
        if self._count_responses(resource) >= self._options.requisite_lookups:
            return local
        return local + [each for each in order if each not in local]

    def _count_responses(self, resource: RecoveryResource) -> int:
        """Return how many archives on the network have answered for the resource. A failed query is no answer."""
        outcomes = self._state.captures.query_outcomes(resource.id)
        return sum(outcome == "done" and not self._is_local(each) for each, outcome in outcomes.items())

    def _is_local(self, archive: str) -> bool:
        return archive in self._repositories and self._repositories[archive].archive.folder is not None

    def mark_holding(self, archive: str | None) -> None:
        """Note that an archive holds something of the site; None to find out for all: another listing has ended."""
        if archive is None:
            self._holding = None
        elif self._holding is not None:
            self._holding.add(archive)

    def count_lookups(self, resource: RecoveryResource, archive: str, queries: int = 1) -> None:
        """Count queries to an archive on the network for a resource, if it is one of another host."""
        if not self._scope.is_own(resource.uri) and not self._is_local(archive):
            self._state.set_fact(LOOKUPS_FACT, str(int(self._state.fact(LOOKUPS_FACT) or 0) + queries))

    async def list_folder(self, resource: RecoveryResource, archive: str) -> bool:
        """List a folder of another host if many resources of it are queued; return whether that answers for this one.

        Raises nothing that an archive could cause: what cannot be listed is looked up one by one.
        """
        if self._scope.is_own(resource.uri):
            return False
        folder = resource.name.partition("?")[0].rpartition("/")[0] + "/"
        event = self._listings.get((archive, folder))
        if event is None:
            queued = self._state.resources.queued_below(folder)
            if len(queued) < _MIN_RESOURCES_TO_LIST:
                return False
            event = self._listings[archive, folder] = asyncio.Event()
            try:
                await self._query_listing(queued, archive, folder, resource)
            finally:
                event.set()
        else:
            await event.wait()
        return archive in self._state.captures.query_outcomes(resource.id)

    async def _query_listing(
        self, queued: Sequence[RecoveryResource], archive: str, folder: str, resource: RecoveryResource
    ) -> None:
        place = resource.uri.partition("://")[0] + "://" + folder
        names = {each.name: each.id for each in queued}
        rows = 0
        found: list[tuple[int, Capture]] = []
        listed = self._repositories[archive].list_prefix(place, self._options.first, self._options.last)
        try:
            async for capture in listed:
                rows += 1
                (name,) = uri_names.page_names([capture.uri], ignore_case=self._options.ignore_case)
                if not isinstance(name, UriError) and name in names:
                    found.append((names[name], capture))
                if rows >= _MAX_ROWS:
                    break
        except UnsupportedError:
            return
        except (ArchiveError, UriError):
            rows = _MAX_ROWS
        finally:
            if isinstance(listed, AsyncGenerator):
                await listed.aclose()  # at once: it may have a response open
        self.count_lookups(resource, archive, _LISTING_QUERIES)
        self._state.captures.add(found)
        is_whole = rows < _MAX_ROWS
        for number in names.values() if is_whole else {number for number, _ in found}:
            if self._state.resources.get(number).status is ResourceStatus.QUEUED:
                self._state.captures.set_query_outcome(number, archive, "done")


class RequisiteBudget:
    """Counts what pages need from other hosts, over all runs, and keeps it within the caps of a plan."""

    def __init__(self, options: RecoverOptions, scope: RecoveryScope, state: RecoveryState) -> None:
        self._options = options
        self._scope = scope
        self._state = state
        found = state.resources.other_host_sizes(scope.host)
        sizes = [size for uri, size in found if not scope.is_own(uri)]
        self._files = len(sizes)
        self._bytes = sum(sizes)

    def add_stored_bytes(self, uri: str, size: int) -> None:
        """Count the bytes of a capture that was stored, if it is one of another host."""
        if not self._scope.is_own(uri):
            self._bytes += size

    def admit(self, wanted: list[NewResource]) -> tuple[list[NewResource], int]:
        """Return what may be queued, and how many requisites of other hosts may not."""
        others = {
            each.name for each in wanted if each.link_kind is LinkKind.REQUISITE and not self._scope.is_own(each.uri)
        }
        if not others:
            return wanted, 0
        new = sorted(others - self._state.resources.find_ids(others).keys())
        room = max(0, self._options.requisite_files - self._files) if self._bytes < self._options.requisite_bytes else 0
        self._files += min(room, len(new))
        left_out = set(new[room:])
        return [each for each in wanted if each.name not in left_out], len(left_out)
