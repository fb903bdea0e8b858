"""What could not be read, told to people."""

from unlost.cli.messages import say
from unlost.formats.problems import Problems


def say_problems(problems: Problems) -> None:
    """Say how many there are of each kind, with the first of each."""
    for kind, count in problems.counts.items():
        say(f"{count} {kind}, first: {problems.first[kind]}", kind=kind, count=count)
