"""Options and states of the commands that query archives for a list of pages and can be resumed."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os import fspath
from pathlib import Path
from typing import Any, Protocol

import click

from unlost.archives.sampler import SampleUrlList
from unlost.cli.messages import say
from unlost.cli.problems import say_problems
from unlost.cli.types import AnyPath
from unlost.errors import InputError
from unlost.problems import Problems
from unlost.registry.models import Archive

OUTPUT_FILE = AnyPath()

concurrency_option = click.option(
    "--concurrency",
    type=click.IntRange(min=1, max=6),
    default=4,
    show_default=True,
    metavar="N",
    help="Number of concurrent requests to one archive.",
)
patience_option = click.option(
    "--patience",
    type=click.FloatRange(min=0, max=86_400),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="Wait at most this long for the rate limits of an archive; leave queries that would take longer for another "
    "run.",
)
restart_option = click.option(
    "--restart", is_flag=True, help="Delete the stored responses, and send all queries again."
)


def state_option(default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option for the state file. `default`: description of the default name."""
    return click.option(
        "--state",
        type=OUTPUT_FILE,
        metavar="FILE",
        help=f"Store the responses in FILE, from which the next run resumes.  [default: {default}]",
    )


class ResumableState(Protocol):
    """A state that stores the plan with which it was begun: the values that determine the queries."""

    def plan(self) -> Mapping[str, object] | None:
        """Return the plan; None if nothing was begun."""
        ...

    def check_plan(self, plan: Mapping[str, object]) -> None:
        """Raise UsageError if the plan differs from the stored one."""
        ...


def begin_url_list(
    state: ResumableState,
    file: Path,
    problems: Problems,
    begin: "Callable[[Callable[[], dict[str, object]], Iterator[tuple[str, bytes]]], object]",
    plan: Mapping[str, object],
) -> None:
    """Store the URLs of a list in a new state, or check that they are those of an existing one.

    Args:
        state: The state.
        file: The list; `-` is standard input.
        problems: Collects invalid lines.
        begin: Stores the plan and the URLs. Gets a function that returns the complete plan once all URLs were read,
            and the URLs with their keys.
        plan: The other values that determine the queries.

    Raises:
        UsageError: The state belongs to another plan.
        InputError: The list cannot be read, or is empty.
    """
    is_stdin = is_standard_input(file)
    url_list = SampleUrlList("/dev/stdin" if is_stdin else file, problems, "<stdin>" if is_stdin else None)

    def complete_plan() -> dict[str, object]:
        if not url_list.count:
            say_problems(problems)
            raise InputError(f"{file}: no address in it: expected one a line")
        return {**plan, "addresses": url_list.digest}

    if state.plan() is None:
        begin(complete_plan, iter(url_list))
        return
    for _ in url_list:
        pass
    state.check_plan(complete_plan())


def is_standard_input(file: Path) -> bool:
    """Return whether a list comes from standard input."""
    return fspath(file) == "-"


def archive_endpoint(archive: Archive) -> str | None:
    """Return the endpoint to query for captures, which distinguishes archives of the same name."""
    return archive.cdx or archive.timemap or archive.folder


@contextmanager
def hint_on_interrupt() -> Iterator[None]:
    """Print a hint after Ctrl-C that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        say("what came back so far is kept: the same command goes on", level="info")
        raise
