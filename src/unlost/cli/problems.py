"""What could not be read, told to people."""

from unlost.cli.messages import say
from unlost.cli.problem_words import PROBLEM_DESCRIPTIONS
from unlost.formats.problems import Problem, Problems

EXIT_SKIPPED_INPUT = 5
"""The exit code of a command that is done, but skipped some of its input."""


def format_problem(kind: str, count: int, first: Problem) -> str:
    """Return how often something of a kind happened, in plain words, with the first of them.

    >>> problem_line("bad-date", 3, Problem("bad-date", "a.cdx", 7, 512, "expected 14 digits, found `x`"))
    '3 times a date that is none, first: a.cdx:7 (byte 512): bad-date: expected 14 digits, found `x`'
    """
    times = "once" if count == 1 else f"{count:,} times"
    return f"{times} {PROBLEM_DESCRIPTIONS.get(kind, kind)}, first: {first}"


def say_problems(problems: Problems, about: str = "", level: str = "error", **fields: str) -> None:
    """Say how many there are of each kind, with the first of each. about: whose they are, if that is not plain."""
    for kind, count in problems.counts.items():
        line = format_problem(kind, count, problems.first[kind])
        say(f"{about}: {line}" if about else line, level=level, kind=kind, count=count, **fields)
