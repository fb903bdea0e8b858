"""The report of `unlost refresh learn`, for people."""

import os
from collections.abc import Iterator, Sequence

from unlost.cli.messages import shown
from unlost.cli.refreshlearn import Found, matrix_rows, percent, scheme_rows
from unlost.cli.table import aligned
from unlost.refresh.history import History
from unlost.refresh.matrix import Matrix
from unlost.refresh.schemes import NAMED, OBVIOUS, cells_of, dominators, judge, name_of
from unlost.refresh.tables import both_present, indicator

_MOST_SHOWN = 20


def report(found: Found, schedule: Sequence[tuple[str, float, float | None]]) -> Iterator[str]:
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
    yield from scheme_rows(found, found.shown)
    yield ""
    yield "The obvious schemes:"
    obvious = [judge(matrix, NAMED[name]) for name in OBVIOUS]
    yield from scheme_rows(found, obvious)
    for name, one in zip(OBVIOUS, obvious, strict=True):
        by = [name_of(other.scheme, matrix.used) or "one without a name" for other in dominators(one, found.shown)]
        if by:
            yield f"{name} is dominated by {', '.join(by)}."
    yield from _both(matrix)
    yield ""
    yield _choice(found)
    if found.history is not None:
        yield from _learned(found)
        yield from _hosts(found, found.history)
    if schedule:
        yield ""
        yield "When half of a host's pages will have changed:"
        rows = [
            [_safe(host), f"{rate:.4f}", "never so far" if days is None else f"{days:.1f}"]
            for host, rate, days in schedule
        ]
        yield from aligned(["host", "changes a day", "days"], rows)


def _visits(history: History) -> Iterator[str]:
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


def _indicators(matrix: Matrix) -> list[str]:
    rows = []
    for name, words in (("date", "Last-Modified"), ("tag", "ETag")):
        one = indicator(matrix, name)
        rows.append([words, *(_of(count, all_) for count, all_ in (
            (one.present, matrix.total), (one.missed, matrix.all_changed), (one.unnecessary, matrix.all_unchanged)
        ))])  # fmt: skip
    return aligned(["indicator", "present", "same but changed", "changed but same"], rows)


def _of(count: int, total: int) -> str:
    return f"{count:,} ({100 * count / total:.2f} %)" if total else f"{count:,}"


def _both(matrix: Matrix) -> Iterator[str]:
    both = both_present(matrix)
    if not both.total:
        return
    yield ""
    yield f"With both present: {both.total:,} pairs, {both.all_changed:,} changed"
    rows = []
    for name in OBVIOUS:
        one = judge(both, NAMED[name])
        rows.append(
            [
                name,
                f"{one.missed:,}",
                f"{one.unnecessary:,}",
                f"{100 * one.reliability:.2f}",
                f"{100 * one.usefulness:.1f}",
            ]
        )
    yield from aligned(["scheme", "missed", "unnecessary", "reliability %", "usefulness %"], rows)


def _choice(found: Found) -> str:
    if found.chosen is None:
        return f"No scheme of the 512 surely has a reliability of {100 * found.target:g} %: download everything."
    name = name_of(found.chosen.scheme, found.matrix.used) or "one without a name"
    cells = " ".join(cells_of(found.chosen.scheme))
    return f"For a reliability of {100 * found.target:g} %: {name}, which downloads {cells}."


def _learned(found: Found) -> Iterator[str]:
    stated = found.policy.stated if found.policy is not None else None
    if stated is None:
        yield "With all indicators and by host: nothing surely reaches it either."
        return
    yield (
        f"With all indicators and by host: reliability {percent(stated.reliability)} % "
        f"({percent(stated.interval.low)}-{percent(stated.interval.high)}), usefulness {percent(stated.usefulness)} %, "
        f"tried on {stated.changed:,} changes of {stated.hosts:,} hosts."
    )


def _hosts(found: Found, history: History) -> Iterator[str]:
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
        [_safe(server) if server is not None else "without a name", *(f"{count:,}" for count in counts)]
        for server, counts in servers[:_MOST_SHOWN]
    ]
    yield "Hosts that send an ETag, by server:"
    yield from aligned(["server", "always", "sometimes", "never"], rows)
    liars = found.liars
    if liars:
        yield ""
        yield f"Hosts that say `same` when pages change, out of habit: {len(liars):,}"
        rows = [
            [
                _safe(one.host),
                "Last-Modified" if one.indicator == "date" else "ETag",
                f"{one.lies:,}",
                f"{one.claims:,}",
            ]
            for one in liars[:_MOST_SHOWN]
        ]
        yield from aligned(["host", "header", "lies", "of"], rows)


def _safe(text: str) -> str:
    return shown(os.fsencode(text))
