"""Page requisites on other hosts: which archives are queried for them, and limits on files, bytes and lookups."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING

from unlost.archives.base import ArchiveClient
from unlost.errors import ArchiveError, UnsupportedError, UriError
from unlost.html.links import LinkKind
from unlost.recovery.options import RecoverOptions
from unlost.recovery.scope import RecoveryScope
from unlost.recovery.state.resources import NewResource, RecoveryResource, ResourceStatus
from unlost.recovery.state.schema import LOOKUPS_FACT
from unlost.recovery.state.store import RecoveryState
from unlost.uri import names as uri_names

if TYPE_CHECKING:
    from unlost.capture import Capture


_LISTING_QUERIES = 2  # requests for the listing of a folder: its own URL, and everything below it
_MIN_RESOURCES_TO_LIST = 3  # queued resources of one folder from which a listing is cheaper than single queries
_MAX_ROWS = 5_000  # rows read from such a listing; a host with more serves many sites


class RequisiteLookups:
    """Decides which archives are queried for resources on other hosts, and replaces queries by listings of folders.

    An archive that holds nothing of the site is not queried, because crawlers fetch page requisites together with
    their pages. The archive that holds the linking page comes first. Once `RecoverOptions.requisite_lookups` archives
    have responded for a URL, no other archive is queried for it. Local sources cost no request and are always searched.
    """

    def __init__(
        self,
        options: RecoverOptions,
        scope: RecoveryScope,
        state: RecoveryState,
        clients: Mapping[str, ArchiveClient],
    ) -> None:
        self._options = options
        self._scope = scope
        self._state = state
        self._clients = clients
        self._listings: dict[tuple[str, str], asyncio.Event] = {}
        self._holding: set[str] | None = None

    def archives_for(self, resource: RecoveryResource) -> Sequence[str] | None:
        """Return the archives to query for a resource, most likely first; None for a resource on the site's hosts."""
        if self._scope.is_own(resource.uri) or resource.name in self._scope.named:
            return None
        if self._holding is None:
            self._holding = self._state.captures.archives_with_captures()
        first = self._state.records.archive_of_linking_page(resource.id)
        if first is not None:
            self._holding.add(first)
        ordered = [first] if first is not None and first in self._clients else []
        ordered += [each for each in self._clients if each in self._holding and each != first]
        local = [each for each in ordered if self._is_local(each)]
        if self._count_responses(resource) >= self._options.requisite_lookups:
            return local
        return local + [each for each in ordered if each not in local]

    def _count_responses(self, resource: RecoveryResource) -> int:
        """Return how many remote archives have responded for the resource. Failed queries do not count."""
        outcomes = self._state.captures.query_outcomes(resource.id)
        return sum(outcome == "done" and not self._is_local(each) for each, outcome in outcomes.items())

    def _is_local(self, archive: str) -> bool:
        return archive in self._clients and self._clients[archive].archive.folder is not None

    def mark_holding(self, archive: str | None) -> None:
        """Record that an archive holds something of the site.

        Args:
            archive: Id of the archive; None to determine all of them again, after a listing has ended.
        """
        if archive is None:
            self._holding = None
        elif self._holding is not None:
            self._holding.add(archive)

    def count_lookups(self, resource: RecoveryResource, archive: str, queries: int = 1) -> None:
        """Count queries to a remote archive, if the resource is on another host."""
        if not self._scope.is_own(resource.uri) and not self._is_local(archive):
            self._state.set_fact(LOOKUPS_FACT, str(int(self._state.fact(LOOKUPS_FACT) or 0) + queries))

    async def list_folder(self, resource: RecoveryResource, archive: str) -> bool:
        """List a folder of another host if many of its resources are queued.

        Errors of the archive are not raised: resources that cannot be listed are queried one by one.

        Returns:
            Whether the listing has answered the query for this resource.
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
        prefix = resource.uri.partition("://")[0] + "://" + folder
        names = {each.name: each.id for each in queued}
        rows = 0
        captures: list[tuple[int, Capture]] = []
        listed = self._clients[archive].list_prefix(prefix, self._options.first, self._options.last)
        try:
            async for capture in listed:
                rows += 1
                (name,) = uri_names.page_names([capture.uri], ignore_case=self._options.ignore_case)
                if not isinstance(name, UriError) and name in names:
                    captures.append((names[name], capture))
                if rows >= _MAX_ROWS:
                    break
        except UnsupportedError:
            return
        except (ArchiveError, UriError):
            rows = _MAX_ROWS
        finally:
            if isinstance(listed, AsyncGenerator):
                await listed.aclose()  # otherwise a response may stay open until garbage collection
        self.count_lookups(resource, archive, _LISTING_QUERIES)
        self._state.captures.add(captures)
        is_complete = rows < _MAX_ROWS
        for id_ in names.values() if is_complete else {id_ for id_, _ in captures}:
            if self._state.resources.get(id_).status is ResourceStatus.QUEUED:
                self._state.captures.set_query_outcome(id_, archive, "done")


class RequisiteBudget:
    """Counts page requisites on other hosts over all runs, and enforces their limits."""

    def __init__(self, options: RecoverOptions, scope: RecoveryScope, state: RecoveryState) -> None:
        self._options = options
        self._scope = scope
        self._state = state
        resources = state.resources.other_host_sizes(scope.host)
        sizes = [size for uri, size in resources if not scope.is_own(uri)]
        self._files = len(sizes)
        self._bytes = sum(sizes)

    def add_stored_bytes(self, uri: str, size: int) -> None:
        """Add the size of a stored capture, if it is on another host."""
        if not self._scope.is_own(uri):
            self._bytes += size

    def admit(self, resources: list[NewResource]) -> tuple[list[NewResource], int]:
        """Return the resources that may be enqueued, and how many were rejected by the limits."""
        external = {
            each.name for each in resources if each.link_kind is LinkKind.REQUISITE and not self._scope.is_own(each.uri)
        }
        if not external:
            return resources, 0
        new = sorted(external - self._state.resources.find_ids(external).keys())
        remaining = (
            max(0, self._options.requisite_files - self._files) if self._bytes < self._options.requisite_bytes else 0
        )
        self._files += min(remaining, len(new))
        rejected = set(new[remaining:])
        return [each for each in resources if each.name not in rejected], len(rejected)
