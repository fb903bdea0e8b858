"""Writes a sample as a MementoMap, and as a log from which `unlost map exclude` learns."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from unlost.archives.sample_state import ANSWERED_OUTCOMES, SampleState
from unlost.atomic import atomic_file
from unlost.index.ukvs import UkvsHeader, UkvsRow, write_ukvs
from unlost.logs.upstream import UpstreamLogEntry, format_log_entry
from unlost.logs.upstream import UpstreamOutcome as Told
from unlost.mementomap.builder import MAP_CONTEXT
from unlost.mementomap.map_file import FORMAT_VERSION, atomic_map_file, with_row_bytes
from unlost.uri import DEFAULT_RULES
from unlost.uri.normalize import normalize_input_url

FIELDS = {"year": "datetime", "mime": "mime", "language": "language"}
"""By what rows can be told apart, and the key field that each adds, in their order."""

_LOGGED_OUTCOMES: dict[str, Told] = {
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
    outcomes = state.count_outcomes(limit)
    size = (
        {"asked": sum(outcomes.get(outcome, 0) for outcome in ANSWERED_OUTCOMES)}
        if kind == "uris"
        else {"requests": state.requests}
    )
    meta: dict[str, object] = {
        "type": "MementoMap",
        "version": FORMAT_VERSION,
        "rules": DEFAULT_RULES,
        **({"name": name} if name else {}),
        "sample": {"by": kind, **size, "found": state.count_mementos(limit)[1]},
    }
    keys = ("surt", *(FIELDS[field] for field in fields))
    header = UkvsHeader(MAP_CONTEXT, {"uri": id} if id else {}, keys, ("frequency",), meta)
    lines = 0

    def rows() -> Iterator[UkvsRow]:
        nonlocal lines
        for *found, mementos, pages in state.iter_map_rows(fields, limit):
            lines += found[0] != "*"
            yield UkvsRow(tuple(found), (f"{mementos}+/{pages}+" if urir else f"{mementos}+",))

    with atomic_map_file(output) as file:
        write_ukvs(file, with_row_bytes(header), rows())
    return lines


def write_sample_log(state: SampleState, output: Path, archive: str, limit: int | None = None) -> None:
    """Write the last answer for every page that was asked for, as `unlost.logs.upstream` has it."""
    with atomic_file(output) as file:
        for page, outcome in state.iter_outcomes(limit):
            file.write(
                format_log_entry(
                    UpstreamLogEntry(
                        outcome.time,
                        archive,
                        normalize_input_url(page.uri),
                        "timemap",
                        _LOGGED_OUTCOMES.get(outcome.outcome, "malformed"),
                        "requested",
                        key=page.key,
                        mementos=outcome.mementos,
                        first=outcome.first,
                        last=outcome.last,
                        duration_ms=outcome.duration_ms,
                    )
                )
            )
