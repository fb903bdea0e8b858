"""Which archives may hold what no list of theirs has."""

from collections.abc import Mapping, Sequence

from unlost import uri as addresses
from unlost.archives.archive import Archive
from unlost.archives.prefix import Prefix
from unlost.errors import UriError
from unlost.recover.state.listings import Listed, Listing


class Knowledge:
    """What lister queries have shown of archives.

    archives: those that take part, in the order in which they are asked where nothing else decides.
    """

    def __init__(self, archives: Sequence[Archive], listings: Sequence[Listing]) -> None:
        self._archives = [archive.id for archive in archives]
        self._whole: dict[str, list[Prefix]] = {}
        self._hidden: set[str] = set()
        for listing in listings:
            if listing.outcome is Listed.DONE:
                self._whole.setdefault(listing.archive, []).append(Prefix.below(listing.prefix))
            elif listing.outcome is Listed.EXCLUDED:
                self._hidden.add(listing.archive)

    def possible(self, uri: str, asked: Mapping[str, str], among: Sequence[str] | None = None) -> list[str]:
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
            and archive not in self._hidden
            and not any(prefix.covers(key) for prefix in self._whole.get(archive, ()))
        ]
