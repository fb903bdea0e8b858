"""`unlost overlap`: measures which archives hold the pages of a list."""

from pathlib import Path

import click

from unlost.cli import types
from unlost.cli.archive_options import archives_option, contact_option, delay_option, only_option
from unlost.cli.output import check_output_file
from unlost.cli.sampling import OUTPUT_FILE, concurrency_option, patience_option, restart_option, state_option


@click.command(name="overlap")
@click.option(
    "--urls",
    type=types.FILE_OR_STDIN,
    required=True,
    metavar="FILE",
    help="Addresses, one a line; `-` is standard input.",
)
@archives_option
@only_option
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="Only so many of them, at random.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of everything that is at random.")
@click.option(
    "--fetch",
    type=click.IntRange(min=0, max=100_000),
    default=30,
    show_default=True,
    metavar="N",
    help="How many copies of each archive to fetch, at random, to see whether they are there and what they are like.",
)
@click.option("--live", is_flag=True, help="Look at the live pages of these, too, and compare.")
@delay_option
@click.option("--dry-run", is_flag=True, help="Say how many questions it would take, and ask none.")
@concurrency_option
@patience_option
@state_option("URLS.overlap")
@restart_option
@click.option("--html", type=OUTPUT_FILE, metavar="FILE", help="Write a page about it there, with the pictures.")
@click.option("--svg", type=OUTPUT_FILE, metavar="FILE", help="Write the picture of who holds what there.")
@click.option("--plot", type=OUTPUT_FILE, metavar="FILE", help="Draw it as PNG, PDF or SVG; needs unlost[plots].")
@contact_option
@click.option("--json", is_flag=True, help="The result as JSON.")
@click.pass_context
def command(
    ctx: click.Context,
    urls: Path,
    archives: Path | None,
    only: tuple[str, ...],
    sample: int | None,
    seed: int,
    fetch: int,
    live: bool,
    delay: float,
    dry_run: bool,
    concurrency: int,
    patience: float,
    state: Path | None,
    restart: bool,
    html: Path | None,
    svg: Path | None,
    plot: Path | None,
    contact: str | None,
    json: bool,
) -> None:
    """Say which archives hold the pages of a list, alone and together, and how good copies are.

    All archives are asked for every page, within their limits; what they answer is kept, and the same command goes on
    where the last one ended. The exit code is 4 if anything is left to ask. docs/overlap.md explains the numbers.
    """
    from unlost.cli.overlap_run import OverlapOptions, run_overlap  # noqa: PLC0415  start-up
    from unlost.research.plots import validate_plot_path  # noqa: PLC0415  start-up

    validate_plot_path(plot)
    for file in (html, svg, plot):
        check_output_file(file)
    wanted = OverlapOptions(
        urls, archives, only, sample, seed, fetch, live, delay, dry_run, concurrency, patience, state, restart,
        html, svg, plot, contact, json,
    )  # fmt: skip
    ctx.exit(run_overlap(wanted))
