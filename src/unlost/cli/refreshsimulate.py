"""What `unlost refresh simulate` does and prints."""

from json import dumps
from pathlib import Path

import click

from unlost.cli.table import aligned
from unlost.cli.target import check_new_file
from unlost.formats.output import whole_file
from unlost.refresh.learning import Wanted
from unlost.refresh.simulation.mixtures import MIXTURES, TRAITS, mixture
from unlost.refresh.simulation.scoring import Score, Trial, logged, trial
from unlost.refresh.simulation.web import visits_of
from unlost.refresh.visit import visit_line


def print_mixtures() -> None:
    """Print what can be made up."""
    for one in MIXTURES.values():
        click.echo(f"{one.name}: {one.about}")
        total = sum(one.shares.values())
        for trait, share in sorted(one.shares.items(), key=lambda item: -item[1]):
            click.echo(f"  {100 * share / total:6.3f} %  {trait}: {TRAITS[trait]}")


def write_log(name: str, hosts: int, visits: int, seed: int, output: Path) -> None:
    """Write the log of a web, in the order of time within each page."""
    check_new_file(output)
    with whole_file(output) as file:
        for pages in visits_of(mixture(name), hosts, visits, seed):
            for page in pages:
                file.writelines(visit_line(visit) for visit in logged(page))


def print_scores(names: tuple[str, ...], hosts: int, visits: int, seed: int, reliability: float, *, json: bool) -> None:
    """Print what each way to decide missed and cost, mixture by mixture."""
    for one in [mixture(name) for name in names or MIXTURES]:
        done = trial(one, hosts, visits, seed, Wanted(reliability))
        if json:
            for score in done.scores:
                click.echo(dumps(_object(done, score)))
        else:
            click.echo("\n".join([*_table(done), ""]))


def _object(done: Trial, score: Score) -> dict[str, object]:
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
    stated = done.policy.stated
    if score.name == "learned":
        result["stated"] = stated and [stated.reliability, stated.interval.low, stated.interval.high]
    return result


def _table(done: Trial) -> list[str]:
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
    stated = done.policy.stated
    promise = "The learner found nothing that is sure enough, and downloads everything."
    if stated is not None:
        low, high = 100 * stated.interval.low, 100 * stated.interval.high
        promise = f"Stated by the learner: {100 * stated.reliability:.4f} % ({low:.4f}-{high:.4f})"
    return [about, *aligned(heads, rows), promise]
