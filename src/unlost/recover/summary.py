"""What has come back of a site, a line for each resource: the summary of a recovery."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

from unlost import dates
from unlost.recover.state.ended import FinishedResource

MISSING = "MISSING"


@dataclass(frozen=True, slots=True)
class SummaryRow:
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

    def to_tsv(self) -> str:
        """Return its fields with tabs between them; of a missing one, the time, the address and `MISSING`."""
        when = dates.to_iso(self.when)
        if self.archive is None:
            return "\t".join((when, escape_unprintable(self.uri), MISSING))
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
        return "\t".join(map(escape_unprintable, fields))


class FinishedResources(Protocol):
    """The state of a recovery, held by its owner or read by somebody else."""

    def finished_resources(self) -> Iterator[FinishedResource]:
        """Yield what was recovered, and what is missing."""


def summary_rows(state: FinishedResources) -> Iterator[SummaryRow]:
    """Yield all resources that are recovered or missing, in the order in which they were found."""
    return map(summary_row, state.finished_resources())


def summary_row(ended: FinishedResource) -> SummaryRow:
    """Return the summary of one."""
    chosen = ended.chosen
    if chosen is None:
        return SummaryRow(ended.finished_at, ended.uri, None, None, None, None, ended.holders)
    others = tuple(each for each in ended.holders if each[0] != (chosen.archive or ""))
    place = f"warc/{chosen.file}:{chosen.offset}"
    uri = chosen.uri if ended.substitute is None else ended.uri
    return SummaryRow(chosen.recovered, uri, chosen.mime, place, chosen.archive, chosen.datetime, others)


def escape_unprintable(text: str) -> str:
    """Return a text without what would break a line into fields, or make a terminal act."""
    if text.isprintable():  # a fifth of the time, and almost always
        return text
    return "".join(char if char.isprintable() else _percent_encode(char) for char in text)


def _percent_encode(char: str) -> str:
    try:
        return quote(char, errors="surrogateescape")
    except UnicodeEncodeError:  # half of a letter that was never bytes
        return quote(char, errors="surrogatepass")
