"""Words for numbers, as the tables of the study have them."""

import argparse

from study.lost.experiments import SEED
from study.lost.habits import HABITS
from study.lost.outcome import Outcome

GROUPS = ("HTML", "images", "other")
"""Of media types, as `unlost compare` has them."""

NAMES = {habit.id: habit.name for habit in HABITS}
"""Of repositories, by their ids."""

PUT_IN = ", by what was put in"
"""Stands behind what follows from how sites and repositories were made up."""


def seed_given() -> int:
    """Return the seed that the command line has; without one, that of the published figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=SEED, help="what sites and habits are drawn from")
    return int(parser.parse_args().seed)


def command_of(chapter: str, seed: int) -> str:
    """Return the command that makes the figures of a chapter.

    >>> command_of("weeks", SEED), command_of("weeks", 7)
    ('make study-weeks', 'python -m study.weeks --seed 7')
    """
    return f"make study-{chapter}" if seed == SEED else f"python -m study.{chapter} --seed {seed}"


def percent(value: float) -> str:
    """Return a share in words.

    >>> percent(0.6849)
    '68.5 %'
    """
    return f"{100 * value:.1f} %"


def number(value: float) -> str:
    """Return a ratio with two digits."""
    return f"{value:.2f}"


def level_of(p: float) -> str:
    """Return how likely something is by chance, as papers say it.

    >>> level_of(0.00001), level_of(0.0312)
    ('< 0.001', '0.031')
    """
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def vector(outcome: Outcome) -> str:
    """Return a difference vector."""
    found = outcome.difference
    return f"({found.changed:.3f}, {found.missing:.3f}, {found.added:.3f})"


def added_share(outcome: Outcome) -> float:
    """Return the share of what was recovered that the original does not have."""
    return outcome.difference.added
