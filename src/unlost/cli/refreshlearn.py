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
from unlost.cli.progress import progress, total_size
from unlost.cli.table import format_columns
from unlost.errors import InputError
from unlost.formats.output import atomic_file
from unlost.formats.problems import Problem, Problems
from unlost.refresh.history import ChangeHistory
from unlost.refresh.intervals import ConfidenceInterval
from unlost.refresh.learning import LearningOptions, learn_policy
from unlost.refresh.liars import UnreliableHost, find_unreliable_hosts
from unlost.refresh.matrix import MATRIX_CELLS, INDICATOR_STATES, DecisionMatrix
from unlost.refresh.plot import render_schemes_plot as drawn
from unlost.refresh.policy import Policy, serialize_policy, write_policy
from unlost.refresh.reading import VisitLogReader
from unlost.refresh.schemes import (
    DOWNLOAD_ALL,
    NAMED_SCHEMES,
    OBVIOUS_SCHEMES,
    SchemeScore,
    scheme_cells,
    choose_scheme,
    find_dominators,
    pareto_front,
    score_scheme,
    score_all_schemes,
    scheme_name,
    distinct_scores,
    filter_scores,
)
from unlost.refresh.tables import restrict_to_both_present, measure_indicator

_RELIABLE, _USEFUL = 0.99, 0.5  # what is worth a line, as in the study that the schemes come from
_MAX_ROWS = 20


@dataclass(slots=True)
class LearnResult:
    """What was learned, ready to be shown."""

    matrix: DecisionMatrix
    target: float
    schemes: list[SchemeScore]
    chosen: SchemeScore | None
    spans: dict[int, ConfidenceInterval] = field(default_factory=dict)
    by_text: bool = False
    history: ChangeHistory | None = None
    policy: Policy | None = None
    problems: Problems = field(default_factory=Problems)
    unknown: dict[str, int] = field(default_factory=dict)

    @property
    def policy_skips(self) -> bool:
        """Whether what was learned with all indicators skips anything."""
        return self.policy is not None and self.policy.estimate is not None

    @property
    def unreliable_hosts(self) -> list[UnreliableHost]:
        """Hosts that lie out of habit."""
        return find_unreliable_hosts(self.history, by_text=self.by_text) if self.history is not None else []


def judge_matrix(text: str, target: float, *, everything: bool) -> LearnResult:
    """Judge the schemes on a matrix alone. Raises UsageError."""
    matrix = DecisionMatrix.parse(sys.stdin.read() if text == "-" else text)
    judged = score_all_schemes(matrix)
    return LearnResult(
        matrix, target, _printed_schemes(judged, matrix, everything=everything), choose_scheme(judged, target)
    )


def learn_from_logs(
    logs: Sequence[Path], target: float, *, by_text: bool, audit: float, seed: int, everything: bool
) -> LearnResult:
    """Learn from logs. Raises InputError, also if there is no visit in them, and OSError."""
    problems = Problems()
    reading = VisitLogReader(problems)
    with progress("reading", total_size(logs)) as bar:
        for log in logs:
            try:
                reading.read(log, bar.update_bytes)
            except InputError as error:  # one that cannot be read at all; the others can
                problems.add(Problem("unreadable", str(log), None, 0, str(error)))
            bar.finish_file(log.stat().st_size)
        history = reading.build_history()
    if history.visits == 0:
        say_problems(problems)
        names = ", ".join(map(str, logs))
        raise InputError(f"{names}: no visit in it: expected harvest logs (NDJSON or Parquet) or WARCs")
    matrix = history.matrix(by_text=by_text)
    judged = score_all_schemes(matrix)
    shown = _printed_schemes(judged, matrix, everything=everything)
    # All that could be chosen, one for each result, so that none is chosen by what is known of another.
    candidates = distinct_scores(pareto_front(judged), matrix.used_cells)
    asked = list({one.scheme: one for one in [*shown, *candidates, *_obvious_schemes(matrix)]})
    spans = dict(zip(asked, history.bootstrap_reliability(asked, seed, by_text=by_text), strict=True))
    chosen = choose_scheme(candidates, target, {scheme: span.low for scheme, span in spans.items()})
    gc.disable()  # else what is learned of a million hosts is looked through for cycles again and again
    try:
        policy = learn_policy(history, LearningOptions(target, by_text=by_text, audit_share=audit))
    finally:
        gc.freeze()
        gc.enable()
    policy.scheme = DOWNLOAD_ALL if chosen is None else chosen.scheme
    return LearnResult(matrix, target, shown, chosen, spans, by_text, history, policy, problems, reading.unknown_fields)


def _printed_schemes(judged: list[SchemeScore], matrix: DecisionMatrix, *, everything: bool) -> list[SchemeScore]:
    return distinct_scores(
        pareto_front(judged if everything else filter_scores(judged, _RELIABLE, _USEFUL)), matrix.used_cells
    )


def _obvious_schemes(matrix: DecisionMatrix) -> list[SchemeScore]:
    return [score_scheme(matrix, NAMED_SCHEMES[name]) for name in OBVIOUS_SCHEMES]


def write_files(found: LearnResult, output: Path | None, picture: Path | None) -> bool:
    """Write what was asked for, and say what could not be read; return whether there was any of that."""
    if picture is not None:
        stated = found.policy.estimate if found.policy is not None else None
        with atomic_file(picture) as file:
            file.write(drawn(score_all_schemes(found.matrix), found.matrix.used_cells, stated).encode())
    if output is not None and found.policy is not None:
        if output == Path("-"):
            for line in serialize_policy(found.policy):
                click.echo(line.decode(), nl=False)
        else:
            write_policy(output, found.policy)
    say_problems(found.problems)
    for name, count in sorted(found.unknown.items()):
        say(f"{name}: no field of a visit, not looked at ({count})", level="warning")
    return found.problems.total > 0


def print_json(found: LearnResult, *, schedule: bool) -> None:
    """Print everything as one object."""
    matrix, policy, history = found.matrix, found.policy, found.history
    result: dict[str, object] = {
        "pairs": matrix.total,
        "changed": matrix.all_changed,
        "matrix": {
            cell: list(both) for cell, *both in zip(MATRIX_CELLS, matrix.changed, matrix.unchanged, strict=True)
        },
        "indicators": [_indicator_object(matrix, name) for name in ("date", "tag")],
        "schemes": [_scheme_object(one, found) for one in found.schemes],
        "obvious": [
            _scheme_object(one, found) | {"dominated_by": _dominating(one, found.schemes, matrix)}
            for one in _obvious_schemes(matrix)
        ],
        "both_present": [
            _scheme_object(score_scheme(restrict_to_both_present(matrix), NAMED_SCHEMES[name]), None) | {"name": name}
            for name in OBVIOUS_SCHEMES
        ],
        "chosen": found.chosen and _scheme_object(found.chosen, found),
    }
    if history is not None and policy is not None:
        stated = policy.estimate
        result |= {
            "visits": history.visits,
            "tally": history.tally,
            "learned": stated
            and {
                "reliability": stated.reliability,
                "interval": [stated.interval.low, stated.interval.high],
                "usefulness": stated.usefulness,
                "most": policy.skip_threshold,
            },
            "bytes_and_text": dict(
                zip(("neither", "bytes", "text", "both"), history.core.bytes_and_text(), strict=True)
            ),
            "tags_by_server": [
                {"server": server, "always": counts[0], "sometimes": counts[1], "never": counts[2]}
                for server, counts in history.tags_by_server()
            ],
            "liars": [
                {"host": one.host, "indicator": one.indicator, "lies": one.false_claims, "claims": one.claims}
                for one in found.unreliable_hosts
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


def _scheme_object(one: SchemeScore, found: LearnResult | None) -> dict[str, object]:
    by_host = found.spans.get(one.scheme) if found is not None else None
    reliability, usefulness = one.reliability_interval, one.usefulness_interval
    result: dict[str, object] = {
        "name": scheme_name(one.scheme, found.matrix.used_cells if found is not None else DOWNLOAD_ALL),
        "download": scheme_cells(one.scheme),
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


def _indicator_object(matrix: DecisionMatrix, name: str) -> dict[str, object]:
    one = measure_indicator(matrix, name)
    return {"name": name, "present": one.present, "missed": one.missed, "unnecessary": one.unnecessary}


def _dominating(one: SchemeScore, shown: list[SchemeScore], matrix: DecisionMatrix) -> list[str]:
    return [
        scheme_name(other.scheme, matrix.used_cells) or "+".join(scheme_cells(other.scheme))
        for other in find_dominators(one, shown)
    ]


def _schedule(found: LearnResult, history: ChangeHistory) -> list[tuple[str, float, float | None]]:
    """Return for each host with pairs how often a page changes a day, and in how many days half of them will have."""
    rows: list[tuple[str, float, float | None]] = []
    rates = history.change_rates(by_text=found.by_text)
    for host, rate in zip(history.hosts(by_text=found.by_text), rates, strict=True):
        if rate is not None:
            days = rate.seconds_until(0.5) / 86400
            rows.append((host.name, rate.per_second * 86400, days if days < 1e6 else None))
    return rows


def print_report(found: LearnResult, *, schedule: bool) -> None:
    """Print tables for people."""
    from unlost.cli.refreshshown import report_lines  # noqa: PLC0415  one of two

    schedules = _schedule(found, found.history) if schedule and found.history is not None else []
    for line in report_lines(found, schedules):
        click.echo(line)


def percent(share: float) -> str:
    """Return a share with the digits that schemes differ in."""
    return f"{100 * share:.4f}"


def scheme_rows(found: LearnResult, judged: Sequence[SchemeScore]) -> list[str]:
    """Return the table of schemes."""
    heads = ["scheme", "downloads", "missed", "unnecessary", "reliability %", "95 % (Wilson)", "usefulness %"]
    if found.spans:
        heads.insert(6, "95 % (by host)")
    rows = []
    for one in judged:
        low = one.reliability_interval
        row = [
            scheme_name(one.scheme, found.matrix.used_cells) or "-",
            " ".join(scheme_cells(one.scheme & found.matrix.used_cells)),
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
    return format_columns(heads, rows)


def matrix_rows(matrix: DecisionMatrix) -> list[str]:
    """Return the matrix as a table."""
    rows = []
    for at, state in enumerate(INDICATOR_STATES):
        cells = range(at * 3, at * 3 + 3)
        rows.append([f"date {state}", *(f"{matrix.changed[cell]:,} / {matrix.unchanged[cell]:,}" for cell in cells)])
    return format_columns(["changed / unchanged", *(f"ETag {state}" for state in INDICATOR_STATES)], rows)
