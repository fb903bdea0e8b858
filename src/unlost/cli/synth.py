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
    """Generate synthetic indexes and queries for benchmarks and tests.

    The same options and the same version of unlost produce the same bytes on every machine.

    \b
    Example:
      unlost synth index --lines 3000000 -o index.cdxj.gz
      unlost synth queries --index index.cdxj.gz --count 10000 -o queries.txt
    """


@command.command()
@click.option(
    "--lines",
    type=click.IntRange(1, synth.MAX_LINES),
    required=True,
    metavar="N",
    help="Number of captures, one per line.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, synth.MAX_SEED),
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of the random numbers. Another seed gives another index with the same distributions.",
)
@click.option(
    "--urls",
    type=types.READABLE_FILE,
    metavar="FILE",
    help="Generate captures of the URLs in FILE, one per line, plain, gzip or zstd.  [default: generated URLs]",
)
@click.option(
    "--column",
    type=click.IntRange(min=1),
    metavar="N",
    help="Read the URLs of --urls from column N of a tab-separated list; the first column is 1.",
)
@click.option(
    "--largest-host",
    type=click.IntRange(min=1),
    metavar="N",
    help="Generate one host with N distinct pages (URLs without query strings).",
)
@click.option("--unsorted", is_flag=True, help="Write the lines in random order.")
@click.option(
    "-o",
    "--output",
    type=_FILE,
    required=True,
    metavar="FILE",
    help="Write the index to FILE, compressed if its name ends in .gz or .zst; `-` is standard output.",
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
    """Generate a sorted CDXJ index like that of a large archive.

    Hosts, path depths, captures per page, query strings, years and statuses have the distributions that the MementoMap
    and archive profiling papers report. With --urls, the index has captures of real URLs. The exit code is 5 if the
    list has invalid URLs.

    \b
    Example:
      unlost synth index --lines 3000000 --seed 1 -o index.cdxj.gz
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
@click.option(
    "--index",
    type=types.READABLE_FILE,
    multiple=True,
    required=True,
    metavar="INDEX",
    help="Index for which queries are generated. May be repeated, for an index of several files.",
)
@click.option(
    "--count",
    type=click.IntRange(1, MAX_QUERIES),
    required=True,
    metavar="N",
    help="Number of queries, one URL per line.",
)
@click.option(
    "--held",
    type=_SHARE,
    default=0.1,
    show_default=True,
    metavar="SHARE",
    help="Share of queries for URLs in the index.",
)
@click.option(
    "--near",
    type=_SHARE,
    default=0.3,
    show_default=True,
    metavar="SHARE",
    help="Share of near misses: queries for other pages in the folders and on the hosts of pages in the index.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, synth.MAX_SEED),
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of the random numbers. Another seed gives other queries with the same shares.",
)
@click.option(
    "--hidden",
    type=types.READABLE_FILE,
    metavar="FILE",
    help="Take the near misses from the URLs in FILE, such as URLs that were withheld from the index."
    "  [default: generated URLs]",
)
@click.option(
    "--strangers",
    type=types.READABLE_FILE,
    metavar="FILE",
    help="Take the unrelated URLs, which are the remaining share, from FILE.  [default: generated URLs]",
)
@click.option(
    "-o", "--output", type=_FILE, required=True, metavar="FILE", help="Write the URLs to FILE; `-` is standard output."
)
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
    """Generate queries for an index: URLs that it has, near misses and unrelated URLs.

    Writes one URL per line, in random order. The shares are exact: near misses and unrelated URLs are looked up in the
    index and replaced if it has them. The exit code is 5 if lines of an input cannot be read, and 3 if a list has too
    few URLs that are not in the index.

    \b
    Example:
      unlost synth queries --index index.cdxj.gz --count 10000 -o queries.txt
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
