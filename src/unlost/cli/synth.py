"""`unlost synth`: generates synthetic data."""

import sys
from pathlib import Path

import click

from unlost.cli import types
from unlost.cli.messages import say
from unlost.cli.output import check_output_file, open_output
from unlost.cli.problems import EXIT_SKIPPED_INPUT, say_problems
from unlost.problems import Problems
from unlost.research import synth
from unlost.research.synth import MAX_QUERIES, SynthQueryOptions, write_synthetic_queries

_FILE = types.AnyPath()


@click.group(name="synth")
def command() -> None:
    """Make up indexes of any size, and questions for them, the same ones everywhere, for benches and tests."""


@command.command()
@click.option("--lines", type=click.IntRange(1, synth.MAX_LINES), required=True, help="How many captures, exactly.")
@click.option(
    "--seed",
    type=click.IntRange(0, synth.MAX_SEED),
    default=0,
    show_default=True,
    help="Another one makes another index of the same shape.",
)
@click.option(
    "--urls", type=types.READABLE_FILE, help="Captures of these pages: a list of addresses, plain, gzip or zstd."
)
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
    synth_options = synth.SynthIndexOptions(lines, seed, urls, column, largest_host, unsorted)
    if str(output) == "-":
        synth.write_synthetic_index_to(synth_options, sys.stdout.buffer, problems)
    else:
        check_output_file(output)
        synth.write_synthetic_index(synth_options, output, problems)
    say_problems(problems)
    ctx.exit(EXIT_SKIPPED_INPUT if problems.total else 0)


_SHARE = click.FloatRange(0, 1)


@command.command()
@click.option("--index", type=types.READABLE_FILE, multiple=True, required=True, help="What is held; may be repeated.")
@click.option("--count", type=click.IntRange(1, MAX_QUERIES), required=True, help="How many questions, exactly.")
@click.option("--held", type=_SHARE, default=0.1, show_default=True, help="The share for addresses that are held.")
@click.option("--near", type=_SHARE, default=0.3, show_default=True, help="The share for pages beside those.")
@click.option(
    "--seed", type=click.IntRange(0, synth.MAX_SEED), default=0, show_default=True, help="Another one asks else."
)
@click.option(
    "--hidden", type=types.READABLE_FILE, help="Addresses for the near-misses, such as a part left out of the index."
)
@click.option("--strangers", type=types.READABLE_FILE, help="Addresses for the strangers, which are the rest.")
@click.option("-o", "--output", type=_FILE, required=True, help="Where to; - for stdout.")
@click.pass_context
def queries(
    ctx: click.Context,
    index: tuple[Path, ...],
    count: int,
    held: float,
    near: float,
    seed: int,
    hidden: Path | None,
    strangers: Path | None,
    output: Path,
) -> None:
    """Make up questions for an index: for what it holds, for what lies beside that, and for strangers.

    One address a line, in random order. The shares are exact: whatever is meant not to be held is looked up first. The
    same options make the same bytes with one version of unlost.
    """
    problems = Problems()
    synth_options = SynthQueryOptions(
        count=count, held=held, near=near, seed=seed, near_urls=hidden, unrelated_urls=strangers
    )
    with open_output(output) as path:
        counts = write_synthetic_queries(index, synth_options, path, problems)
    say(f"{counts.held} held, {counts.near} beside those, {counts.unrelated} of strangers", level="info")
    say_problems(problems)
    ctx.exit(EXIT_SKIPPED_INPUT if problems.total else 0)
