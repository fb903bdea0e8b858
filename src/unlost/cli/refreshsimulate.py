"""What `unlost refresh simulate` does and prints."""

from json import dumps
from pathlib import Path

import click

from unlost.cli.table import format_columns
from unlost.cli.target import check_output_file
from unlost.formats.output import atomic_file
from unlost.refresh.learning import LearningOptions
from unlost.refresh.simulation.mixtures import MIXTURES, TRAITS, get_mixture
from unlost.refresh.simulation.scoring import SimulationScore, SimulationTrial, to_log, run_trial
from unlost.refresh.simulation.web import simulate_visits
from unlost.refresh.visit import serialize_visit


def print_mixtures() -> None:
    """Print what can be made up."""
    for one in MIXTURES.values():
        click.echo(f"{one.name}: {one.description}")
        total = sum(one.shares.values())
        for trait, share in sorted(one.shares.items(), key=lambda item: -item[1]):
            click.echo(f"  {100 * share / total:6.3f} %  {trait}: {TRAITS[trait]}")


def write_log(name: str, hosts: int, visits: int, seed: int, output: Path) -> None:
    """Write the log of a web, in the order of time within each page."""
    check_output_file(output)
    with atomic_file(output) as file:
        for pages in simulate_visits(get_mixture(name), hosts, visits, seed):
            for page in pages:
                file.writelines(serialize_visit(visit) for visit in to_log(page))


def print_scores(names: tuple[str, ...], hosts: int, visits: int, seed: int, reliability: float, *, json: bool) -> None:
    """Print what each way to decide missed and cost, mixture by mixture."""
    for one in [get_mixture(name) for name in names or MIXTURES]:
        done = run_trial(one, hosts, visits, seed, LearningOptions(reliability))
        if json:
            for score in done.scores:
                click.echo(dumps(_score_object(done, score)))
        else:
            click.echo("\n".join([*_score_table(done), ""]))


def _score_object(done: SimulationTrial, score: SimulationScore) -> dict[str, object]:
    result: dict[str, object] = {
        "mixture": done.mixture,
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
    stated = done.policy.estimate
    if score.name == "learned":
        result["stated"] = stated and [stated.reliability, stated.interval.low, stated.interval.high]
    return result


def _score_table(done: SimulationTrial) -> list[str]:
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
        for score in done.scores
    ]
    first = done.scores[0]
    about = f"{done.mixture}: {first.changed + first.unchanged:,} pairs, {first.changed:,} changed"
    stated = done.policy.estimate
    promise = "The learner found nothing that is sure enough, and downloads everything."
    if stated is not None:
        low, high = 100 * stated.interval.low, 100 * stated.interval.high
        promise = f"Stated by the learner: {100 * stated.reliability:.4f} % ({low:.4f}-{high:.4f})"
    return [about, *format_columns(heads, rows), promise]
