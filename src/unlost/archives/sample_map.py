"""Writes a sample as a MementoMap, and as a log that `unlost map exclude` reads."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from unlost.archives.sample_state import ANSWERED_OUTCOMES, SampleState
from unlost.atomic import atomic_file
from unlost.index.ukvs import UkvsHeader, UkvsRow, write_ukvs
from unlost.logs.upstream import UpstreamLogEntry, UpstreamOutcome, format_log_entry
from unlost.mementomap.builder import MAP_CONTEXT
from unlost.mementomap.map_file import FORMAT_VERSION, atomic_map_file, with_row_bytes
from unlost.uri import DEFAULT_RULES
from unlost.uri.normalize import normalize_input_url

FIELDS = {"year": "datetime", "mime": "mime", "language": "language"}
"""The properties by which rows can be distinguished, and the key field of each, in order."""

_LOGGED_OUTCOMES: dict[str, UpstreamOutcome] = {
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
"""From outcomes of a sample to those of the log. Any other outcome is logged as `malformed`."""


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
    """Write the map of a sample, and return the number of its rows.

    All numbers are lower bounds: a key has no query, and stands for pages that were not queried, too. A page without a
    row may have mementos nevertheless.

    Args:
        state: The state of the sample, which determines the map.
        output: The file to write.
        kind: How the sample was taken.
        by: Properties by which rows are distinguished, keys of `FIELDS`.
        urir: Count pages, too.
        limit: Use only the first pages of the list, this many.
        name: Name of the archive.
        id: URI of the archive.
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
    row_count = 0

    def rows() -> Iterator[UkvsRow]:
        nonlocal row_count
        for *key, mementos, pages in state.iter_map_rows(fields, limit):
            row_count += key[0] != "*"
            yield UkvsRow(tuple(key), (f"{mementos}+/{pages}+" if urir else f"{mementos}+",))

    with atomic_map_file(output) as file:
        write_ukvs(file, with_row_bytes(header), rows())
    return row_count


def write_sample_log(state: SampleState, output: Path, archive: str, limit: int | None = None) -> None:
    """Write the last outcome of every queried page, in the format of `unlost.logs.upstream`."""
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
