"""What has come back of a site, a line for each resource: the summary of a recovery."""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from unlost import dates
from unlost.recover.state.resources import Resource, Standing
from unlost.recover.state.state import State

MISSING = "MISSING"


@dataclass(frozen=True, slots=True)
class Entry:
    """One resource.

    when: it was recovered, or found missing, 14 digits. others: archives that list it, too, with their last dates.
    file: the WARC, in the folder of the recovery, and the byte at which the record begins. None all, if it is missing.
    """

    when: str
    uri: str
    mime: str | None
    file: str | None
    archive: str | None
    datetime: str | None
    others: tuple[tuple[str, str], ...]

    def line(self) -> str:
        """Return its fields with tabs between them; of a missing one, the time, the address and `MISSING`."""
        when = dates.to_iso(self.when)
        if self.archive is None:
            return "\t".join((when, _plain(self.uri), MISSING))
        others = ",".join(f"{archive}:{datetime}" for archive, datetime in self.others)
        fields = (
            when,
            self.uri,
            self.mime or "-",
            self.file or "-",
            self.archive,
            self.datetime or "-",
            others,
        )
        return "\t".join(map(_plain, fields))


def entries(state: State) -> Iterator[Entry]:
    """Yield all resources that are recovered or missing, in the order in which they were found."""
    for part in state.resources.parts(Standing.RECOVERED, Standing.MISSING):
        for resource in part:
            yield _entry(resource, state)


def _entry(resource: Resource, state: State) -> Entry:
    when = resource.changed or ""
    listed = state.captures.of(resource.id)
    last: dict[str, str] = {}
    for each in listed:
        archive = each.capture.archive or ""
        last[archive] = max(last.get(archive, ""), each.capture.datetime)
    if resource.standing is Standing.MISSING or resource.record is None:
        return Entry(when, resource.uri, None, None, None, None, tuple(sorted(last.items())))
    record = state.records.get(resource.record).record
    capture = record.capture
    last.pop(capture.archive or "", None)
    place = f"warc/{record.file}:{record.offset}"
    return Entry(
        record.recovered,
        capture.uri,
        capture.mime,
        place,
        capture.archive,
        capture.datetime,
        tuple(sorted(last.items())),
    )


def _plain(text: str) -> str:
    """Return a text without what would break a line into fields, or make a terminal act."""
    return "".join(char if char.isprintable() else quote(char, errors="surrogateescape") for char in text)
