"""What `unlost refresh learn` does and prints."""

import gc
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from json import dumps
from pathlib import Path

import click

from unlost.cli.messages import say
from unlost.cli.problems import say_problems
from unlost.cli.progress import progress, size_of
from unlost.cli.table import aligned
from unlost.errors import InputError
from unlost.formats.output import whole_file
from unlost.formats.problems import Problem, Problems
from unlost.refresh.history import History
from unlost.refresh.intervals import Interval
from unlost.refresh.learning import Wanted, learn
from unlost.refresh.liars import Liar, liars_of
from unlost.refresh.matrix import CELLS, STATES, Matrix
from unlost.refresh.plot import plot as drawn
from unlost.refresh.policy import Policy, policy_lines, write_policy
from unlost.refresh.reading import Reading
from unlost.refresh.schemes import (
    ALL,
    NAMED,
    OBVIOUS,
    Judged,
    cells_of,
    choose,
    dominators,
    front,
    judge,
    judge_all,
    name_of,
    points,
    within,
)
from unlost.refresh.tables import both_present, indicator

_RELIABLE, _USEFUL = 0.99, 0.5  # what is worth a line, as in the study that the schemes come from
_MOST_SHOWN = 20


@dataclass(slots=True)
class Found:
    """What was learned, ready to be shown."""

    matrix: Matrix
    target: float
    shown: list[Judged]
    chosen: Judged | None
    spans: dict[int, Interval] = field(default_factory=dict)
    by_text: bool = False
    history: History | None = None
    policy: Policy | None = None
    problems: Problems = field(default_factory=Problems)
    unknown: dict[str, int] = field(default_factory=dict)

    @property
    def policy_skips(self) -> bool:
        """Whether what was learned with all indicators skips anything."""
        return self.policy is not None and self.policy.stated is not None

    @property
    def liars(self) -> list[Liar]:
        """Hosts that lie out of habit."""
        return liars_of(self.history, by_text=self.by_text) if self.history is not None else []


def of_matrix(text: str, target: float, *, everything: bool) -> Found:
    """Judge the schemes on a matrix alone. Raises UsageError."""
    matrix = Matrix.parse(sys.stdin.read() if text == "-" else text)
    judged = judge_all(matrix)
    return Found(matrix, target, _shown(judged, matrix, everything=everything), choose(judged, target))


def learned(logs: Sequence[Path], target: float, *, by_text: bool, audit: float, seed: int, everything: bool) -> Found:
    """Learn from logs. Raises InputError, also if there is no visit in them, and OSError."""
    problems = Problems()
    reading = Reading(problems)
    with progress("reading", size_of(logs)) as bar:
        for log in logs:
            try:
                reading.read(log, bar.read)
            except InputError as error:  # one that cannot be read at all; the others can
                problems.add(Problem("unreadable", str(log), None, 0, str(error)))
            bar.next_file(log.stat().st_size)
        history = reading.finish()
    if history.visits == 0:
        say_problems(problems)
        names = ", ".join(map(str, logs))
        raise InputError(f"{names}: no visit in it: expected harvest logs (NDJSON or Parquet) or WARCs")
    matrix = history.matrix(by_text=by_text)
    judged = judge_all(matrix)
    shown = _shown(judged, matrix, everything=everything)
    # All that could be chosen, one for each result, so that none is chosen by what is known of another.
    candidates = points(front(judged), matrix.used)
    asked = list({one.scheme: one for one in [*shown, *candidates, *_obvious(matrix)]})
    spans = dict(zip(asked, history.resampled(asked, seed, by_text=by_text), strict=True))
    chosen = choose(candidates, target, {scheme: span.low for scheme, span in spans.items()})
    gc.disable()  # else what is learned of a million hosts is looked through for cycles again and again
    try:
        policy = learn(history, Wanted(target, by_text=by_text, audit=audit))
    finally:
        gc.freeze()
        gc.enable()
    policy.scheme = ALL if chosen is None else chosen.scheme
    return Found(matrix, target, shown, chosen, spans, by_text, history, policy, problems, reading.unknown)


def _shown(judged: list[Judged], matrix: Matrix, *, everything: bool) -> list[Judged]:
    return points(front(judged if everything else within(judged, _RELIABLE, _USEFUL)), matrix.used)


def _obvious(matrix: Matrix) -> list[Judged]:
    return [judge(matrix, NAMED[name]) for name in OBVIOUS]


def write_files(found: Found, output: Path | None, picture: Path | None) -> bool:
    """Write what was asked for, and say what could not be read; return whether there was any of that."""
    if picture is not None:
        stated = found.policy.stated if found.policy is not None else None
        with whole_file(picture) as file:
            file.write(drawn(judge_all(found.matrix), found.matrix.used, stated).encode())
    if output is not None and found.policy is not None:
        if output == Path("-"):
            for line in policy_lines(found.policy):
                click.echo(line.decode(), nl=False)
        else:
            write_policy(output, found.policy)
    say_problems(found.problems)
    for name, count in sorted(found.unknown.items()):
        say(f"{name}: no field of a visit, not looked at ({count})", level="warning")
    return found.problems.total > 0


def print_json(found: Found, *, schedule: bool) -> None:
    """Print everything as one object."""
    matrix, policy, history = found.matrix, found.policy, found.history
    result: dict[str, object] = {
        "pairs": matrix.total,
        "changed": matrix.all_changed,
        "matrix": {cell: list(both) for cell, *both in zip(CELLS, matrix.changed, matrix.unchanged, strict=True)},
        "indicators": [_indicator_object(matrix, name) for name in ("date", "tag")],
        "schemes": [_object(one, found) for one in found.shown],
        "obvious": [
            _object(one, found) | {"dominated_by": _dominating(one, found.shown, matrix)} for one in _obvious(matrix)
        ],
        "both_present": [_object(judge(both_present(matrix), NAMED[name]), None) | {"name": name} for name in OBVIOUS],
        "chosen": found.chosen and _object(found.chosen, found),
    }
    if history is not None and policy is not None:
        stated = policy.stated
        result |= {
            "visits": history.visits,
            "tally": history.tally,
            "learned": stated
            and {
                "reliability": stated.reliability,
                "interval": [stated.interval.low, stated.interval.high],
                "usefulness": stated.usefulness,
                "most": policy.most,
            },
            "bytes_and_text": dict(
                zip(("neither", "bytes", "text", "both"), history.core.bytes_and_text(), strict=True)
            ),
            "tags_by_server": [
                {"server": server, "always": counts[0], "sometimes": counts[1], "never": counts[2]}
                for server, counts in history.tags_by_server()
            ],
            "liars": [
                {"host": one.host, "indicator": one.indicator, "lies": one.lies, "claims": one.claims}
                for one in found.liars
            ],
            "problems": found.problems.counts,
            "unknown_fields": found.unknown,
        }
        if schedule:
            result["schedule"] = [
                {"host": host, "changes_a_day": rate, "look_again_after_days": days}
                for host, rate, days in _schedule(found, history)
            ]
    click.echo(dumps(result))


def _object(one: Judged, found: Found | None) -> dict[str, object]:
    by_host = found.spans.get(one.scheme) if found is not None else None
    reliability, usefulness = one.reliability_interval, one.usefulness_interval
    result: dict[str, object] = {
        "name": name_of(one.scheme, found.matrix.used if found is not None else ALL),
        "download": cells_of(one.scheme),
        "missed": one.missed,
        "unnecessary": one.unnecessary,
        "reliability": one.reliability,
        "usefulness": one.usefulness,
        "wilson": [reliability.low, reliability.high],
        "usefulness_wilson": [usefulness.low, usefulness.high],
    }
    if by_host is not None:
        result["by_host"] = [by_host.low, by_host.high]
    return result


def _indicator_object(matrix: Matrix, name: str) -> dict[str, object]:
    one = indicator(matrix, name)
    return {"name": name, "present": one.present, "missed": one.missed, "unnecessary": one.unnecessary}


def _dominating(one: Judged, shown: list[Judged], matrix: Matrix) -> list[str]:
    return [name_of(other.scheme, matrix.used) or "+".join(cells_of(other.scheme)) for other in dominators(one, shown)]


def _schedule(found: Found, history: History) -> list[tuple[str, float, float | None]]:
    """Return for each host with pairs how often a page changes a day, and in how many days half of them will have."""
    rows: list[tuple[str, float, float | None]] = []
    rates = history.rates(by_text=found.by_text)
    for host, rate in zip(history.hosts(by_text=found.by_text), rates, strict=True):
        if rate is not None:
            days = rate.seconds_until(0.5) / 86400
            rows.append((host.name, rate.per_second * 86400, days if days < 1e6 else None))
    return rows


def print_report(found: Found, *, schedule: bool) -> None:
    """Print tables for people."""
    from unlost.cli.refreshshown import report  # noqa: PLC0415  one of two

    schedules = _schedule(found, found.history) if schedule and found.history is not None else []
    for line in report(found, schedules):
        click.echo(line)


def percent(share: float) -> str:
    """Return a share with the digits that schemes differ in."""
    return f"{100 * share:.4f}"


def scheme_rows(found: Found, judged: Sequence[Judged]) -> list[str]:
    """Return the table of schemes."""
    heads = ["scheme", "downloads", "missed", "unnecessary", "reliability %", "95 % (Wilson)", "usefulness %"]
    if found.spans:
        heads.insert(6, "95 % (by host)")
    rows = []
    for one in judged:
        low = one.reliability_interval
        row = [
            name_of(one.scheme, found.matrix.used) or "-",
            " ".join(cells_of(one.scheme & found.matrix.used)),
            f"{one.missed:,}",
            f"{one.unnecessary:,}",
            percent(one.reliability),
            f"{percent(low.low)}-{percent(low.high)}",
            percent(one.usefulness),
        ]
        if found.spans:
            span = found.spans.get(one.scheme)
            row.insert(6, "" if span is None else f"{percent(span.low)}-{percent(span.high)}")
        rows.append(row)
    return aligned(heads, rows)


def matrix_rows(matrix: Matrix) -> list[str]:
    """Return the matrix as a table."""
    rows = []
    for at, state in enumerate(STATES):
        cells = range(at * 3, at * 3 + 3)
        rows.append([f"date {state}", *(f"{matrix.changed[cell]:,} / {matrix.unchanged[cell]:,}" for cell in cells)])
    return aligned(["changed / unchanged", *(f"ETag {state}" for state in STATES)], rows)
