"""`unlost refresh`: learns from logs when ETag and Last-Modified can be trusted, and simulates webs."""

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from json import dumps
from pathlib import Path

import click

from unlost.atomic import atomic_file
from unlost.cli import types
from unlost.cli.messages import escape_untrusted, say
from unlost.cli.output import check_output_file, format_columns, is_standard_output
from unlost.cli.problems import EXIT_SKIPPED_INPUT, say_problems
from unlost.cli.progress import progress, total_size
from unlost.errors import InputError, UsageError
from unlost.problems import Problem, Problems
from unlost.refresh.confidence import ConfidenceInterval
from unlost.refresh.decision_matrix import (
    INDICATOR_STATES,
    MATRIX_CELLS,
    DecisionMatrix,
    measure_indicator,
    restrict_to_both_present,
)
from unlost.refresh.history import ChangeHistory, UnreliableHost, find_unreliable_hosts
from unlost.refresh.log_reader import VisitLogReader
from unlost.refresh.policy import LearningOptions, Policy, learn_policy, serialize_policy, write_policy
from unlost.refresh.schemes import (
    DOWNLOAD_ALL,
    NAMED_SCHEMES,
    OBVIOUS_SCHEMES,
    SchemeScore,
    choose_scheme,
    distinct_scores,
    filter_scores,
    find_dominators,
    render_schemes_plot,
    scheme_cells,
    scheme_name,
    score_all_schemes,
    score_scheme,
    undominated_schemes,
)
from unlost.refresh.visit import serialize_visit
from unlost.research.refresh_simulation import SimulationScore, SimulationTrial, run_trial, to_log
from unlost.research.simulated_web import MIXTURES, TRAITS, get_mixture, simulate_visits

_RELIABLE, _USEFUL = 0.99, 0.5  # thresholds for printing a scheme, as in the study that defines the schemes
_MAX_ROWS = 20


@dataclass(slots=True)
class LearnResult:
    """The learned policy and the scores, ready to print."""

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
        """Whether the policy learned with all indicators skips any download."""
        return self.policy is not None and self.policy.estimate is not None

    @property
    def unreliable_hosts(self) -> list[UnreliableHost]:
        """Hosts whose ETag or Last-Modified is habitually wrong."""
        return find_unreliable_hosts(self.history, by_text=self.by_text) if self.history is not None else []


def judge_matrix(text: str, target: float, *, everything: bool) -> LearnResult:
    """Score the schemes on a decision matrix alone. Raises UsageError."""
    matrix = DecisionMatrix.parse(sys.stdin.read() if text == "-" else text)
    scores = score_all_schemes(matrix)
    return LearnResult(
        matrix, target, _printed_schemes(scores, matrix, everything=everything), choose_scheme(scores, target)
    )


def learn_from_logs(
    logs: Sequence[Path], target: float, *, by_text: bool, audit: float, seed: int, everything: bool
) -> LearnResult:
    """Learn a policy from logs. Raises InputError, also if the logs contain no visit, and OSError."""
    problems = Problems()
    reading = VisitLogReader(problems)
    with progress("reading", total_size(logs)) as bar:
        for log in logs:
            try:
                reading.read(log, bar.update_bytes)
            except InputError as error:  # skip a log that cannot be read at all
                problems.add(Problem("unreadable", str(log), None, 0, str(error)))
            bar.finish_file(log.stat().st_size)
        history = reading.build_history()
    if history.visits == 0:
        say_problems(problems)
        names = ", ".join(map(str, logs))
        raise InputError(f"{names}: no visit in it: expected harvest logs (NDJSON or Parquet) or WARCs")
    matrix = history.matrix(by_text=by_text)
    scores = score_all_schemes(matrix)
    shown = _printed_schemes(scores, matrix, everything=everything)
    # All candidates: one per distinct result, so that none is chosen by the interval of another with equal results.
    candidates = distinct_scores(undominated_schemes(scores), matrix.used_cells)
    sampled_scores = list({one.scheme: one for one in [*shown, *candidates, *_obvious_schemes(matrix)]})
    intervals = dict(
        zip(sampled_scores, history.bootstrap_reliability(sampled_scores, seed, by_text=by_text), strict=True)
    )
    chosen = choose_scheme(candidates, target, {scheme: span.low for scheme, span in intervals.items()})
    gc.disable()  # otherwise the collector would scan the data of a million hosts repeatedly
    try:
        policy = learn_policy(history, LearningOptions(target, by_text=by_text, audit_share=audit))
    finally:
        gc.freeze()
        gc.enable()
    policy.scheme = DOWNLOAD_ALL if chosen is None else chosen.scheme
    return LearnResult(
        matrix, target, shown, chosen, intervals, by_text, history, policy, problems, reading.unknown_fields
    )


def _printed_schemes(scores: list[SchemeScore], matrix: DecisionMatrix, *, everything: bool) -> list[SchemeScore]:
    return distinct_scores(
        undominated_schemes(scores if everything else filter_scores(scores, _RELIABLE, _USEFUL)), matrix.used_cells
    )


def _obvious_schemes(matrix: DecisionMatrix) -> list[SchemeScore]:
    return [score_scheme(matrix, NAMED_SCHEMES[name]) for name in OBVIOUS_SCHEMES]


def write_files(learned: LearnResult, output: Path | None, plot: Path | None) -> bool:
    """Write the requested files, and print what could not be read; return whether there was any."""
    if plot is not None:
        estimate = learned.policy.estimate if learned.policy is not None else None
        with atomic_file(plot) as file:
            file.write(
                render_schemes_plot(score_all_schemes(learned.matrix), learned.matrix.used_cells, estimate).encode()
            )
    if output is not None and learned.policy is not None:
        if output == Path("-"):
            for line in serialize_policy(learned.policy):
                click.echo(line.decode(), nl=False)
        else:
            write_policy(output, learned.policy)
    say_problems(learned.problems)
    for name, count in sorted(learned.unknown.items()):
        say(f"{name}: no field of a visit, not looked at ({count})", level="warning")
    return learned.problems.total > 0


def print_json(learned: LearnResult, *, schedule: bool) -> None:
    """Print everything as one JSON object."""
    matrix, policy, history = learned.matrix, learned.policy, learned.history
    result: dict[str, object] = {
        "pairs": matrix.total,
        "changed": matrix.all_changed,
        "matrix": {
            cell: list(both) for cell, *both in zip(MATRIX_CELLS, matrix.changed, matrix.unchanged, strict=True)
        },
        "indicators": [_indicator_object(matrix, name) for name in ("date", "tag")],
        "schemes": [_scheme_object(one, learned) for one in learned.schemes],
        "obvious": [
            _scheme_object(one, learned) | {"dominated_by": _dominating(one, learned.schemes, matrix)}
            for one in _obvious_schemes(matrix)
        ],
        "both_present": [
            _scheme_object(score_scheme(restrict_to_both_present(matrix), NAMED_SCHEMES[name]), None) | {"name": name}
            for name in OBVIOUS_SCHEMES
        ],
        "chosen": learned.chosen and _scheme_object(learned.chosen, learned),
    }
    if history is not None and policy is not None:
        estimate = policy.estimate
        result |= {
            "visits": history.visits,
            "tally": history.visit_stats,
            "learned": estimate
            and {
                "reliability": estimate.reliability,
                "interval": [estimate.interval.low, estimate.interval.high],
                "usefulness": estimate.usefulness,
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
                for one in learned.unreliable_hosts
            ],
            "problems": learned.problems.counts,
            "unknown_fields": learned.unknown,
        }
        if schedule:
            result["schedule"] = [
                {"host": host, "changes_a_day": rate, "look_again_after_days": days}
                for host, rate, days in _schedule(learned, history)
            ]
    click.echo(dumps(result))


def _scheme_object(one: SchemeScore, learned: LearnResult | None) -> dict[str, object]:
    by_host = learned.spans.get(one.scheme) if learned is not None else None
    reliability, usefulness = one.reliability_interval, one.usefulness_interval
    result: dict[str, object] = {
        "name": scheme_name(one.scheme, learned.matrix.used_cells if learned is not None else DOWNLOAD_ALL),
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


def _schedule(learned: LearnResult, history: ChangeHistory) -> list[tuple[str, float, float | None]]:
    """Return for each host the changes per page and day, and the days until half of its pages have changed.

    The days are None if they are a million or more. Hosts without an estimate are left out.
    """
    rows: list[tuple[str, float, float | None]] = []
    rates = history.change_rates(by_text=learned.by_text)
    for host, rate in zip(history.hosts(by_text=learned.by_text), rates, strict=True):
        if rate is not None:
            days = rate.seconds_until(0.5) / 86400
            rows.append((host.name, rate.per_second * 86400, days if days < 1e6 else None))
    return rows


def print_report(learned: LearnResult, *, schedule: bool) -> None:
    """Print the report as text."""
    schedules = _schedule(learned, learned.history) if schedule and learned.history is not None else []
    for line in report_lines(learned, schedules):
        click.echo(line)


def percent(share: float) -> str:
    """Return a share as a percentage, with enough digits to distinguish schemes."""
    return f"{100 * share:.4f}"


def scheme_rows(learned: LearnResult, scores: Sequence[SchemeScore]) -> list[str]:
    """Return the table of schemes."""
    heads = ["scheme", "downloads", "missed", "unnecessary", "reliability %", "95 % (Wilson)", "usefulness %"]
    if learned.spans:
        heads.insert(6, "95 % (by host)")
    rows = []
    for one in scores:
        low = one.reliability_interval
        row = [
            scheme_name(one.scheme, learned.matrix.used_cells) or "-",
            " ".join(scheme_cells(one.scheme & learned.matrix.used_cells)),
            f"{one.missed:,}",
            f"{one.unnecessary:,}",
            percent(one.reliability),
            f"{percent(low.low)}-{percent(low.high)}",
            percent(one.usefulness),
        ]
        if learned.spans:
            span = learned.spans.get(one.scheme)
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


def report_lines(learned: LearnResult, schedule: Sequence[tuple[str, float, float | None]]) -> Iterator[str]:
    """Yield the lines of the report."""
    matrix = learned.matrix
    if learned.history is not None:
        yield from _visits(learned.history)
    share = f"{100 * matrix.all_changed / matrix.total:.1f} %" if matrix.total else "n/a"
    yield f"{matrix.total:,} pairs of consecutive visits, {matrix.all_changed:,} changed ({share})"
    yield ""
    yield from matrix_rows(matrix)
    yield ""
    yield from _indicators(matrix)
    yield ""
    yield "Schemes that no other dominates:"
    yield from scheme_rows(learned, learned.schemes)
    yield ""
    yield "The obvious schemes:"
    obvious = [score_scheme(matrix, NAMED_SCHEMES[name]) for name in OBVIOUS_SCHEMES]
    yield from scheme_rows(learned, obvious)
    for name, one in zip(OBVIOUS_SCHEMES, obvious, strict=True):
        by = [
            scheme_name(other.scheme, matrix.used_cells) or "one without a name"
            for other in find_dominators(one, learned.schemes)
        ]
        if by:
            yield f"{name} is dominated by {', '.join(by)}."
    yield from _both_present_lines(matrix)
    yield ""
    yield _choice(learned)
    if learned.history is not None:
        yield from _learned(learned)
        yield from _hosts(learned, learned.history)
    if schedule:
        yield ""
        yield "When half of a host's pages will have changed:"
        rows = [
            [_escape(host), f"{rate:.4f}", "never so far" if days is None else f"{days:.1f}"]
            for host, rate, days in schedule
        ]
        yield from format_columns(["host", "changes a day", "days"], rows)


def _visits(history: ChangeHistory) -> Iterator[str]:
    tally = history.visit_stats
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


def _choice(learned: LearnResult) -> str:
    if learned.chosen is None:
        return f"No scheme of the 512 surely has a reliability of {100 * learned.target:g} %: download everything."
    name = scheme_name(learned.chosen.scheme, learned.matrix.used_cells) or "one without a name"
    cells = " ".join(scheme_cells(learned.chosen.scheme))
    return f"For a reliability of {100 * learned.target:g} %: {name}, which downloads {cells}."


def _learned(learned: LearnResult) -> Iterator[str]:
    estimate = learned.policy.estimate if learned.policy is not None else None
    if estimate is None:
        yield "With all indicators and by host: nothing surely reaches it either."
        return
    yield (
        f"With all indicators and by host: reliability {percent(estimate.reliability)} % "
        f"({percent(estimate.interval.low)}-{percent(estimate.interval.high)}), "
        f"usefulness {percent(estimate.usefulness)} %, "
        f"tried on {estimate.changed:,} changes of {estimate.hosts:,} hosts."
    )


def _hosts(learned: LearnResult, history: ChangeHistory) -> Iterator[str]:
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
    unreliable_hosts = learned.unreliable_hosts
    if unreliable_hosts:
        yield ""
        yield f"Hosts that say `same` when pages change, out of habit: {len(unreliable_hosts):,}"
        rows = [
            [
                _escape(one.host),
                "Last-Modified" if one.indicator == "date" else "ETag",
                f"{one.false_claims:,}",
                f"{one.claims:,}",
            ]
            for one in unreliable_hosts[:_MAX_ROWS]
        ]
        yield from format_columns(["host", "header", "lies", "of"], rows)


def _escape(text: str) -> str:
    return escape_untrusted(os.fsencode(text))


def print_mixtures() -> None:
    """Print the mixtures that can be simulated."""
    for one in MIXTURES.values():
        click.echo(f"{one.name}: {one.description}")
        total = sum(one.shares.values())
        for trait, share in sorted(one.shares.items(), key=lambda item: -item[1]):
            click.echo(f"  {100 * share / total:6.3f} %  {trait}: {TRAITS[trait]}")


def write_log(name: str, hosts: int, visits: int, seed: int, output: Path) -> None:
    """Write the log of a simulated web, in the order of time within each page."""
    check_output_file(output)
    with atomic_file(output) as file:
        for pages in simulate_visits(get_mixture(name), hosts, visits, seed):
            for page in pages:
                file.writelines(serialize_visit(visit) for visit in to_log(page))


def print_scores(names: tuple[str, ...], hosts: int, visits: int, seed: int, reliability: float, *, json: bool) -> None:
    """Print what each method missed and cost, for each mixture."""
    for one in [get_mixture(name) for name in names or MIXTURES]:
        trial = run_trial(one, hosts, visits, seed, LearningOptions(reliability))
        if json:
            for score in trial.scores:
                click.echo(dumps(_score_object(trial, score)))
        else:
            click.echo("\n".join([*_score_table(trial), ""]))


def _score_object(trial: SimulationTrial, score: SimulationScore) -> dict[str, object]:
    result: dict[str, object] = {
        "mixture": trial.mixture,
        "way": score.name,
        "changed": score.changed,
        "unchanged": score.unchanged,
        "missed": score.missed,
        "unnecessary": score.unnecessary,
        "reliability": score.reliability,
        "usefulness": score.usefulness,
        "audited": score.audited,
        "bytes": score.bytes,
        "requests": score.requests,
    }
    estimate = trial.policy.estimate
    if score.name == "learned":
        result["stated"] = estimate and [estimate.reliability, estimate.interval.low, estimate.interval.high]
    return result


def _score_table(trial: SimulationTrial) -> list[str]:
    heads = ["way to decide", "missed", "reliability %", "usefulness %", "MB", "requests", "audits"]
    rows = [
        [
            score.name,
            f"{score.missed:,}",
            f"{100 * score.reliability:.4f}",
            f"{100 * score.usefulness:.2f}",
            f"{score.bytes / 1e6:,.1f}",
            f"{score.requests:,}",
            f"{score.audited:,}" if score.audited else "",
        ]
        for score in trial.scores
    ]
    first = trial.scores[0]
    about = f"{trial.mixture}: {first.changed + first.unchanged:,} pairs, {first.changed:,} changed"
    estimate = trial.policy.estimate
    promise = "The learner found nothing that is sure enough, and downloads everything."
    if estimate is not None:
        low, high = 100 * estimate.interval.low, 100 * estimate.interval.high
        promise = f"Stated by the learner: {100 * estimate.reliability:.4f} % ({low:.4f}-{high:.4f})"
    return [about, *format_columns(heads, rows), promise]


_FILE = types.AnyPath()
_SHARE = click.FloatRange(0, 1)


@click.group(name="refresh")
def command() -> None:
    """Learn from past visits when ETag and Last-Modified headers can be trusted.

    Many servers omit these headers, and some send wrong ones. `learn` derives from a log of visits a scheme by which
    `unlost harvest` skips unchanged pages. `simulate` evaluates such schemes on a synthetic web.

    \b
    Example:
      unlost refresh learn site.harvest/visits.ndjson -o scheme
    """


@command.command()
@click.argument("log", type=types.READABLE_FILE, nargs=-1)
@click.option(
    "--matrix",
    metavar="PAIRS",
    help="Use nine pairs of counts, CHANGED/UNCHANGED, instead of logs. - reads them from standard input.",
)
@click.option(
    "--reliability",
    type=_SHARE,
    default=0.999,
    show_default=True,
    metavar="SHARE",
    help="Detect at least this share of the changes, from 0 to 1.",
)
@click.option(
    "--change",
    type=click.Choice(["bytes", "text"]),
    default="bytes",
    show_default=True,
    help="Count any change of the body, or only changes of its text.",
)
@click.option("--all", is_flag=True, help="Also print schemes below 99 % reliability or 50 % usefulness.")
@click.option(
    "--audit",
    type=_SHARE,
    default=0.01,
    show_default=True,
    metavar="SHARE",
    help="Let `unlost harvest` download this share of skipped pages anyway, from 0 to 1. It audits at least 0.01.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63),
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of the random numbers for confidence intervals.",
)
@click.option("--schedule", is_flag=True, help="Also print for each host when half of its pages will have changed.")
@click.option("--plot", type=_FILE, metavar="FILE", help="Plot usefulness against reliability to FILE, as SVG.")
@click.option("-o", "--output", type=_FILE, metavar="FILE", help="Write the scheme to FILE. - writes to stdout.")
@click.option("--json", is_flag=True, help="Print the report as one JSON object.")
@click.pass_context
def learn(
    ctx: click.Context,
    log: tuple[Path, ...],
    matrix: str | None,
    reliability: float,
    change: str,
    all: bool,  # noqa: A002  the option's name
    audit: float,
    seed: int,
    schedule: bool,
    plot: Path | None,
    output: Path | None,
    json: bool,
) -> None:
    """Learn from logs which headers can be trusted, and write a scheme file.

    LOG is a harvest log (NDJSON or Parquet) or a WARC file. Several logs are read as one history. The report shows how
    many changes each scheme would have missed and how many downloads it would have saved. See the documentation:
    refresh.

    The exit code is 1 if no scheme reaches --reliability with confidence, and 5 if some input cannot be read; the rest
    is used.

    \b
    Example:
      unlost refresh learn site.harvest/visits.ndjson -o scheme
    """
    if bool(log) == (matrix is not None):
        raise UsageError("give logs to learn from, or --matrix")
    if matrix is not None and (output is not None or schedule):
        raise UsageError("a matrix has no hosts and no times: -o and --schedule need logs")
    if output is not None and output == Path("-") and json:
        raise UsageError("-o - and --json both print: give one of them")
    for path in (output, plot):
        if path is not None and not is_standard_output(path):
            check_output_file(path)
    if matrix is not None:
        learned = judge_matrix(matrix, reliability, everything=all)
    else:
        learned = learn_from_logs(log, reliability, by_text=change == "text", audit=audit, seed=seed, everything=all)
    unreadable = write_files(learned, output, plot)
    if json:
        print_json(learned, schedule=schedule)
    elif output is None or output != Path("-"):
        print_report(learned, schedule=schedule)
    ctx.exit(EXIT_SKIPPED_INPUT if unreadable else 0 if learned.chosen is not None or learned.policy_skips else 1)


@command.command()
@click.option(
    "--mixture",
    multiple=True,
    metavar="NAME",
    help="Simulate this mixture of server behaviours; --list names them. May be repeated.  [default: all]",
)
@click.option(
    "--hosts",
    type=click.IntRange(20, 100_000),
    default=600,
    show_default=True,
    metavar="N",
    help="Simulate N hosts.",
)
@click.option(
    "--visits",
    type=click.IntRange(4, 1000),
    default=16,
    show_default=True,
    metavar="N",
    help="Learn from N visits to each page, and score on N later ones. With --write: write N visits to each page.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63),
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of the random numbers. The same seed gives the same web.",
)
@click.option(
    "--reliability",
    type=_SHARE,
    default=0.9994,
    show_default=True,
    metavar="SHARE",
    help="Learn a scheme that detects at least this share of the changes, from 0 to 1.",
)
@click.option(
    "--write",
    type=_FILE,
    metavar="FILE",
    help="Write the log of the simulated visits to FILE, as NDJSON, and print no scores. Requires one --mixture.",
)
@click.option("--list", is_flag=True, help="List the mixtures and their server behaviours, and exit.")
@click.option("--json", is_flag=True, help="Print a JSON object for each mixture and scheme, one per line.")
def simulate(
    mixture: tuple[str, ...],
    hosts: int,
    visits: int,
    seed: int,
    reliability: float,
    write: Path | None,
    list: bool,  # noqa: A002  the option's name
    json: bool,
) -> None:
    """Simulate a web with known changes, and score schemes on it.

    The simulated servers send missing, wrong and misleading headers; --list describes them. All schemes see the same
    visits. The learned scheme is derived from the log of the first visits alone.

    \b
    Example:
      unlost refresh simulate --mixture study --hosts 1000
    """
    if list:
        print_mixtures()
    elif write is not None:
        if len(mixture) != 1:
            raise UsageError("--write needs one --mixture")
        write_log(mixture[0], hosts, visits, seed, write)
    else:
        print_scores(mixture, hosts, visits, seed, reliability, json=json)
