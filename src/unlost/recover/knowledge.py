"""Which archives may hold what no list of theirs has."""

from collections.abc import Mapping, Sequence

from unlost import uri as addresses
from unlost.archives.archive import Archive
from unlost.archives.prefix import PrefixQuery
from unlost.errors import UriError
from unlost.recover.state.listings import ListingStatus, ListingRow


class ListingCoverage:
    """What lister queries have shown of archives.

    archives: those that take part, in the order in which they are asked where nothing else decides.
    """

    def __init__(self, archives: Sequence[Archive], listings: Sequence[ListingRow]) -> None:
        self._archives = [archive.id for archive in archives]
        self._complete_prefixes: dict[str, list[PrefixQuery]] = {}
        self._excluded: set[str] = set()
        for listing in listings:
            if listing.outcome is ListingStatus.DONE:
                self._complete_prefixes.setdefault(listing.archive, []).append(PrefixQuery.parse(listing.prefix))
            elif listing.outcome is ListingStatus.EXCLUDED:
                self._excluded.add(listing.archive)

    def archives_to_query(self, uri: str, asked: Mapping[str, str], among: Sequence[str] | None = None) -> list[str]:
        """Return the archives that may hold an address, and neither list it with others nor were asked for it alone.

        asked: the archives that were. among: only of these archives, in this order; None for all.
        """
        try:
            key = addresses.key(uri)
        except UriError:
            return []
        return [
            archive
            for archive in (self._archives if among is None else among)
            if archive not in asked
            and archive not in self._excluded
            and not any(prefix.covers(key) for prefix in self._complete_prefixes.get(archive, ()))
        ]
