"""What a sample tells, as a MementoMap, and as a log of answers from which `unlost map exclude` learns."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from unlost.archives.sampling.state import ANSWERS, SampleState
from unlost.archives.spelling import asked
from unlost.formats.output import whole_file
from unlost.formats.ukvs import Header, Row, write_ukvs
from unlost.formats.upstream import Answer, answer_line
from unlost.formats.upstream import Outcome as Told
from unlost.holdings.build import CONTEXT
from unlost.holdings.map_file import FORMAT_VERSION, map_file, with_row_bytes
from unlost.uri import DEFAULT_RULES

FIELDS = {"year": "datetime", "mime": "mime", "language": "language"}
"""By what rows can be told apart, and the key field that each adds, in their order."""

_TOLD: dict[str, Told] = {
    "hit": "hit",
    "miss": "miss",
    "excluded": "http-4xx",
    "refused": "refused",
    "dns": "dns",
    "unreachable": "dns",
    "proxy": "refused",
    "tls": "tls",
    "timeout": "timeout",
    "reset": "reset",
    "status": "http-5xx",
    "too-large": "too-large",
    "redirects": "redirect",
}
"""From outcomes to those of the log; all others are answers that could not be read."""


def write_sample_map(
    state: SampleState,
    output: Path,
    *,
    kind: Literal["uris", "search"],
    by: Iterable[str] = (),
    urir: bool = False,
    limit: int | None = None,
    name: str | None = None,
    id: str | None = None,  # noqa: A002  as in `MapOptions`
) -> int:
    """Write the map of what a sample found, and return its lines; it depends on nothing but the answers.

    Every number is a lower bound: a key has no query, and stands for pages that were not asked for as well. What was
    not found has no row: that a page is not in such a map says nothing.
    by: of `FIELDS`. urir: whether pages are counted, too. limit: only of the first so many pages of the list.
    """
    fields = [field for field in FIELDS if field in set(by)]
    outcomes = state.outcomes(limit)
    size = (
        {"asked": sum(outcomes.get(outcome, 0) for outcome in ANSWERS)}
        if kind == "uris"
        else {"requests": state.requests}
    )
    meta: dict[str, object] = {
        "type": "MementoMap",
        "version": FORMAT_VERSION,
        "rules": DEFAULT_RULES,
        **({"name": name} if name else {}),
        "sample": {"by": kind, **size, "found": state.copies(limit)[1]},
    }
    keys = ("surt", *(FIELDS[field] for field in fields))
    header = Header(CONTEXT, {"uri": id} if id else {}, keys, ("frequency",), meta)
    lines = 0

    def rows() -> Iterator[Row]:
        nonlocal lines
        for *found, mementos, pages in state.rows(fields, limit):
            lines += found[0] != "*"
            yield Row(tuple(found), (f"{mementos}+/{pages}+" if urir else f"{mementos}+",))

    with map_file(output) as file:
        write_ukvs(file, with_row_bytes(header), rows())
    return lines


def write_sample_log(state: SampleState, output: Path, archive: str, limit: int | None = None) -> None:
    """Write the last answer for every page that was asked for, as `unlost.formats.upstream` has it."""
    with whole_file(output) as file:
        for page, outcome in state.answered(limit):
            file.write(
                answer_line(
                    Answer(
                        outcome.time,
                        archive,
                        asked(page.uri),
                        "timemap",
                        _TOLD.get(outcome.outcome, "malformed"),
                        "requested",
                        key=page.key,
                        mementos=outcome.mementos,
                        first=outcome.first,
                        last=outcome.last,
                        duration_ms=outcome.duration_ms,
                    )
                )
            )
