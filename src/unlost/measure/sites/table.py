"""The resources of a site, in little memory: columns of numbers, and two texts for each."""

from array import array
from collections.abc import Iterator

from unlost.measure.resource import NO_DATE, ResourceColumns, SiteResource, SiteResources

_MIGRATED_CODES = {None: 0, False: 1, True: 2}
_MIGRATED_VALUES = (None, False, True)


class ResourceTable(SiteResources):
    """Resources by name. Copies of one that do not count are kept, too: revisits may refer to them.

    A `Resource` is made when it is asked for; its `place` is the number of its row here. Some 400 bytes for each.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._rows: dict[str, int] = {}
        self._uris: list[str] = []
        self._mimes: list[str | None] = []
        self._same_mimes: dict[str, str] = {}
        self._digests: list[bytes] = []
        self._migrated = bytearray()
        self._datetimes, self._modified, self._sizes = array("q"), array("q"), array("q")
        self._parts, self._offsets, self._skips = array("l"), array("q"), array("q")

    def __getitem__(self, name: str) -> SiteResource:
        """Return the copy that counts. Raises KeyError."""
        return self._resource(name, self._rows[name])

    def __contains__(self, name: object) -> bool:
        """Return whether there is one of that name."""
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        """Yield the names, in the order in which they were found."""
        return iter(self._rows)

    def __len__(self) -> int:
        """Return how many names there are."""
        return len(self._rows)

    def columns(self) -> ResourceColumns:
        """Return the copies that count, in the order of their names here."""
        rows = self._rows.values()
        return ResourceColumns(
            list(self._rows),
            [self._uris[row] for row in rows],
            [self._mimes[row] for row in rows],
            [self._digests[row] for row in rows],
            [self._sizes[row] for row in rows],
            [self._datetimes[row] for row in rows],
            [self._modified[row] for row in rows],
        )

    @property
    def rows(self) -> range:
        """The numbers of all copies."""
        return range(len(self._uris))

    def row_of(self, name: str) -> int | None:
        """Return the number of the copy that counts; None if there is none."""
        return self._rows.get(name)

    def locate(self, row: object) -> tuple[int, int, int]:
        """Return where the body of a copy is: which part of the site, its offset there, and what to skip.

        row: its number, or the `place` of a resource of this table. Raises TypeError for that of another site.
        """
        if not isinstance(row, int):
            raise TypeError(f"expected a resource of this site, found a place {row!r}")
        return self._parts[row], self._offsets[row], self._skips[row]

    def digest(self, row: int) -> bytes:
        """Return the digest of a copy."""
        return self._digests[row]

    def datetime(self, row: int) -> int:
        """Return when a copy was made, 14 digits, or `NONE`."""
        return self._datetimes[row]

    def modified(self, row: int) -> int:
        """Return when its original was last changed, 14 digits, or `NONE`."""
        return self._modified[row]

    def size(self, row: int) -> int:
        """Return how many bytes the body of a copy has."""
        return self._sizes[row]

    def add(
        self,
        name: str,
        uri: str,
        datetime: int,
        modified: int,
        mime: str | None,
        digest: bytes,
        size: int,
        migrated: bool | None,
        place: tuple[int, int, int],
    ) -> None:
        """Keep a copy, and let it count if it is the better one. Dates are numbers of 14 digits, or `NONE`.

        One with a body goes before one without; then the later does, then the one that was changed later, then the one
        that was added later.
        """
        row = len(self._uris)
        self._uris.append(uri)
        self._mimes.append(None if mime is None else self._same_mimes.setdefault(mime, mime))
        self._digests.append(digest)
        self._migrated.append(_MIGRATED_CODES[migrated])
        self._datetimes.append(datetime)
        self._modified.append(modified)
        self._sizes.append(size)
        self._parts.append(place[0])
        self._offsets.append(place[1])
        self._skips.append(place[2])
        before = self._rows.get(name)
        if before is None or self._rank(before) <= (size > 0, datetime, modified):
            self._rows[name] = row

    def add_revisit(self, row: int, name: str, uri: str, datetime: int, mime: str | None) -> None:
        """Keep a copy with the body of another one, which is in that row. mime: None if it is that of the other."""
        self.add(
            name,
            uri,
            datetime,
            self._modified[row],
            mime or self._mimes[row],
            self.digest(row),
            self._sizes[row],
            _MIGRATED_VALUES[self._migrated[row]],
            self.locate(row),
        )

    def _rank(self, row: int) -> tuple[bool, int, int]:
        return self._sizes[row] > 0, self._datetimes[row], self._modified[row]

    def _resource(self, name: str, row: int) -> SiteResource:
        return SiteResource(
            name,
            self._uris[row],
            _format_date(self._datetimes[row]),
            _format_date(self._modified[row]),
            self._mimes[row],
            self._digests[row],
            self._sizes[row],
            _MIGRATED_VALUES[self._migrated[row]],
            row,
        )


def _format_date(moment: int) -> str | None:
    return None if moment == NO_DATE else f"{moment:014d}"
