"""The report of `unlost refresh learn`, for people."""

import os
from collections.abc import Iterator, Sequence

from unlost.cli.messages import escape_untrusted
from unlost.cli.refreshlearn import LearnResult, matrix_rows, percent, scheme_rows
from unlost.cli.table import format_columns
from unlost.refresh.history import ChangeHistory
from unlost.refresh.matrix import DecisionMatrix
from unlost.refresh.schemes import (
    NAMED_SCHEMES,
    OBVIOUS_SCHEMES,
    scheme_cells,
    find_dominators,
    score_scheme,
    scheme_name,
)
from unlost.refresh.tables import restrict_to_both_present, measure_indicator

_MAX_ROWS = 20


def report_lines(found: LearnResult, schedule: Sequence[tuple[str, float, float | None]]) -> Iterator[str]:
    """Yield the lines of the report."""
    matrix = found.matrix
    if found.history is not None:
        yield from _visits(found.history)
    share = f"{100 * matrix.all_changed / matrix.total:.1f} %" if matrix.total else "n/a"
    yield f"{matrix.total:,} pairs of consecutive visits, {matrix.all_changed:,} changed ({share})"
    yield ""
    yield from matrix_rows(matrix)
    yield ""
    yield from _indicators(matrix)
    yield ""
    yield "Schemes that no other dominates:"
    yield from scheme_rows(found, found.schemes)
    yield ""
    yield "The obvious schemes:"
    obvious = [score_scheme(matrix, NAMED_SCHEMES[name]) for name in OBVIOUS_SCHEMES]
    yield from scheme_rows(found, obvious)
    for name, one in zip(OBVIOUS_SCHEMES, obvious, strict=True):
        by = [
            scheme_name(other.scheme, matrix.used_cells) or "one without a name"
            for other in find_dominators(one, found.schemes)
        ]
        if by:
            yield f"{name} is dominated by {', '.join(by)}."
    yield from _both_present_lines(matrix)
    yield ""
    yield _choice(found)
    if found.history is not None:
        yield from _learned(found)
        yield from _hosts(found, found.history)
    if schedule:
        yield ""
        yield "When half of a host's pages will have changed:"
        rows = [
            [_escape(host), f"{rate:.4f}", "never so far" if days is None else f"{days:.1f}"]
            for host, rate, days in schedule
        ]
        yield from format_columns(["host", "changes a day", "days"], rows)


def _visits(history: ChangeHistory) -> Iterator[str]:
    tally = history.tally
    pages = f"{tally['pages']:,} pages of {tally['hosts']:,} hosts"
    yield f"{history.visits:,} visits: {tally['successful']:,} successful, to {pages}"
    for name, words in (
        ("not_modified", "answered 304, without a body to compare"),
        ("failed", "failed, or answered with another status"),
        ("without_digest", "without a digest: skipped"),
        ("without_host", "at an address that is none of the web"),
        ("duplicate", "at the same moment as another to the same page"),
        ("out_of_order", "behind a later one in the log: sorted"),
    ):
        if tally[name]:
            yield f"  {tally[name]:,} {words}"


def _indicators(matrix: DecisionMatrix) -> list[str]:
    rows = []
    for name, words in (("date", "Last-Modified"), ("tag", "ETag")):
        one = measure_indicator(matrix, name)
        rows.append([words, *(_format_part(count, all_) for count, all_ in (
            (one.present, matrix.total), (one.missed, matrix.all_changed), (one.unnecessary, matrix.all_unchanged)
        ))])  # fmt: skip
    return format_columns(["indicator", "present", "same but changed", "changed but same"], rows)


def _format_part(count: int, total: int) -> str:
    return f"{count:,} ({100 * count / total:.2f} %)" if total else f"{count:,}"


def _both_present_lines(matrix: DecisionMatrix) -> Iterator[str]:
    both = restrict_to_both_present(matrix)
    if not both.total:
        return
    yield ""
    yield f"With both present: {both.total:,} pairs, {both.all_changed:,} changed"
    rows = []
    for name in OBVIOUS_SCHEMES:
        one = score_scheme(both, NAMED_SCHEMES[name])
        rows.append(
            [
                name,
                f"{one.missed:,}",
                f"{one.unnecessary:,}",
                f"{100 * one.reliability:.2f}",
                f"{100 * one.usefulness:.1f}",
            ]
        )
    yield from format_columns(["scheme", "missed", "unnecessary", "reliability %", "usefulness %"], rows)


def _choice(found: LearnResult) -> str:
    if found.chosen is None:
        return f"No scheme of the 512 surely has a reliability of {100 * found.target:g} %: download everything."
    name = scheme_name(found.chosen.scheme, found.matrix.used_cells) or "one without a name"
    cells = " ".join(scheme_cells(found.chosen.scheme))
    return f"For a reliability of {100 * found.target:g} %: {name}, which downloads {cells}."


def _learned(found: LearnResult) -> Iterator[str]:
    stated = found.policy.estimate if found.policy is not None else None
    if stated is None:
        yield "With all indicators and by host: nothing surely reaches it either."
        return
    yield (
        f"With all indicators and by host: reliability {percent(stated.reliability)} % "
        f"({percent(stated.interval.low)}-{percent(stated.interval.high)}), usefulness {percent(stated.usefulness)} %, "
        f"tried on {stated.changed:,} changes of {stated.hosts:,} hosts."
    )


def _hosts(found: LearnResult, history: ChangeHistory) -> Iterator[str]:
    neither, of_bytes, of_text, both = history.core.bytes_and_text()
    if neither + of_bytes + of_text + both:
        yield ""
        changed = f"{both + of_text:,} changed in it, {of_bytes:,} only in other bytes"
        yield f"Where text is known: {changed}, {neither:,} in nothing"
    yield ""
    servers = history.tags_by_server()
    totals = [sum(counts[at] for _, counts in servers) for at in range(3)]
    rows = [["all", *(f"{count:,}" for count in totals)]]
    rows += [
        [_escape(server) if server is not None else "without a name", *(f"{count:,}" for count in counts)]
        for server, counts in servers[:_MAX_ROWS]
    ]
    yield "Hosts that send an ETag, by server:"
    yield from format_columns(["server", "always", "sometimes", "never"], rows)
    liars = found.unreliable_hosts
    if liars:
        yield ""
        yield f"Hosts that say `same` when pages change, out of habit: {len(liars):,}"
        rows = [
            [
                _escape(one.host),
                "Last-Modified" if one.indicator == "date" else "ETag",
                f"{one.false_claims:,}",
                f"{one.claims:,}",
            ]
            for one in liars[:_MAX_ROWS]
        ]
        yield from format_columns(["host", "header", "lies", "of"], rows)


def _escape(text: str) -> str:
    return escape_untrusted(os.fsencode(text))
