"""Formats numbers for the tables of the study."""

import argparse

from study.lost.experiments import SEED
from study.lost.repository_models import REPOSITORY_MODELS
from study.lost.result import RecoveryResult

GROUPS = ("HTML", "images", "other")
"""Groups of media types, as in `unlost compare`."""

REPOSITORY_NAMES = {habit.id: habit.name for habit in REPOSITORY_MODELS}
"""Names of repositories by id."""

BY_CONSTRUCTION = ", by what was put in"
"""Suffix of figures that follow from the parameters of the simulation."""


def parse_seed() -> int:
    """Return the seed of the command line; by default that of the published figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=SEED, help="seed of all sites and repositories")
    return int(parser.parse_args().seed)


def chapter_command(chapter: str, seed: int) -> str:
    """Return the command that computes the figures of a chapter.

    >>> chapter_command("weeks", SEED), chapter_command("weeks", 7)
    ('make study-weeks', 'python -m study.weeks --seed 7')
    """
    return f"make study-{chapter}" if seed == SEED else f"python -m study.{chapter} --seed {seed}"


def format_percent(value: float) -> str:
    """Return a share as a percentage.

    >>> format_percent(0.6849)
    '68.5 %'
    """
    return f"{100 * value:.1f} %"


def format_ratio(value: float) -> str:
    """Return a ratio with two digits."""
    return f"{value:.2f}"


def format_p_value(p: float) -> str:
    """Return a p-value as in papers.

    >>> format_p_value(0.00001), format_p_value(0.0312)
    ('< 0.001', '0.031')
    """
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def format_difference(outcome: RecoveryResult) -> str:
    """Return the difference vector of a recovery."""
    found = outcome.difference
    return f"({found.changed:.3f}, {found.missing:.3f}, {found.added:.3f})"


def added_share(outcome: RecoveryResult) -> float:
    """Return the share of recovered resources that the original does not have."""
    return outcome.difference.added
