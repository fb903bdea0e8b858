"""`unlost synth`: made-up data."""

import sys
from pathlib import Path

import click

from unlost.cli.problems import say_problems
from unlost.errors import InputError
from unlost.formats.problems import Problems
from unlost.holdings import synth

_FILE = click.Path(path_type=Path)


@click.group(name="synth")
def command() -> None:
    """Make up indexes of any size, the same ones everywhere, for benches and tests."""


@command.command()
@click.option("--lines", type=click.IntRange(1, synth.MAX_LINES), required=True, help="How many captures, exactly.")
@click.option(
    "--seed",
    type=click.IntRange(0, synth.MAX_SEED),
    default=0,
    show_default=True,
    help="Another one makes another index of the same shape.",
)
@click.option("--urls", type=_FILE, help="Captures of these pages: a list of addresses, plain, gzip or zstd.")
@click.option("--column", type=click.IntRange(min=1), help="Which column of the list, between tabs, has the addresses.")
@click.option(
    "--largest-host", type=click.IntRange(min=1), metavar="KEYS", help="One host has so many pages without query."
)
@click.option("--unsorted", is_flag=True, help="The same lines in random order.")
@click.option(
    "-o", "--output", type=_FILE, required=True, help="Where to, compressed if it ends in .gz or .zst; - for stdout."
)
@click.pass_context
def index(
    ctx: click.Context,
    lines: int,
    seed: int,
    urls: Path | None,
    column: int | None,
    largest_host: int | None,
    unsorted: bool,
    output: Path,
) -> None:
    """Make up a sorted CDXJ, shaped like a large archive's or around a list of real addresses.

    Hosts, depths, captures of a page, queries, years and statuses are distributed as the papers found them. The same
    options make the same bytes with one version of unlost on every machine. Nothing is written under the final name
    until all of it is.
    """
    problems = Problems()
    plan = synth.Plan(lines, seed, urls, column, largest_host, unsorted)
    if str(output) == "-":
        synth.write_index_to(plan, sys.stdout.buffer, problems)
    else:
        if not output.parent.is_dir():
            raise InputError(f"{output}: cannot be written: no such folder")
        synth.write_index(plan, output, problems)
    say_problems(problems)
    ctx.exit(InputError.exit_code if problems.total else 0)
