"""`unlost report`: reports what a recovery contains."""

from pathlib import Path

import click

from unlost.cli import types
from unlost.cli.output import check_output_file
from unlost.errors import UsageError
from unlost.report.format import LANGUAGES

_FILE = types.AnyPath()


@click.command(name="report")
@click.argument("recoveries", type=types.RECOVERY_FOLDER, nargs=-1, required=True, metavar="RECOVERY...")
@click.option("-o", "--output", type=_FILE, metavar="DIR", help="Where to write the files.  [default: RECOVERY/report]")
@click.option(
    "--language",
    type=click.Choice(LANGUAGES),
    default=LANGUAGES[0],
    show_default=True,
    help="Of the page and of the summary; lines and objects have none, and messages are English.",
)
@click.option("--html", type=_FILE, metavar="FILE", help="Write the page there, and no other files.")
@click.option("--tsv", is_flag=True, help="Print a line for each resource, with tabs, and write no files.")
@click.option("--json", is_flag=True, help="Print an object for each resource, then the summary, and write no files.")
@click.option(
    "--list",
    type=click.Choice(["missing", "rejected", "doubtful", "recovered", "listed", "left-out"]),
    help="Print only these, one a line, with what is known of them, and write no files.",
)
@click.option(
    "--factors", is_flag=True, help="Say what has to do with coming back, over all RECOVERY... together; no files."
)
@click.option(
    "--ranks", type=types.READABLE_FILE, metavar="FILE", help="With --factors: hosts and their ranks, one a line."
)
@click.option(
    "--backlinks", type=types.READABLE_FILE, metavar="FILE", help="The same: hosts and how many links lead to them."
)
@click.option(
    "--original",
    type=types.FILE_OR_FOLDER,
    multiple=True,
    metavar="SITE",
    help="The same: an original, for sizes; may be repeated.",
)
@click.option("--plot", type=_FILE, metavar="FILE", help="The same: draw it as PNG, PDF or SVG; unlost[plots].")
@click.pass_context
def command(
    ctx: click.Context,
    recoveries: tuple[Path, ...],
    output: Path | None,
    language: str,
    html: Path | None,
    tsv: bool,
    json: bool,
    list: str | None,  # noqa: A002  the option's name
    factors: bool,
    ranks: Path | None,
    backlinks: Path | None,
    original: tuple[Path, ...],
    plot: Path | None,
) -> None:
    """Say what a recovery brought back, from where and from when, what is missing, what was rejected.

    RECOVERY is the folder of `unlost recover`, which may be at work meanwhile. A page for people, a line for each
    resource and the same as JSON are written into its folder `report`. docs/report.md explains them.
    """
    from unlost.cli.report_run import ReportOutput, run_report  # noqa: PLC0415  start-up
    from unlost.report.recovery.writer import ReportFiles  # noqa: PLC0415

    if factors:
        if tsv or list or output is not None:
            raise UsageError("--factors goes with --json and --html, not with --tsv, --list and --output")
        if language != LANGUAGES[0]:
            raise UsageError("--factors is told in English only: leave out --language")
        from unlost.cli.report_factors import run_factors  # noqa: PLC0415  start-up

        ctx.exit(run_factors(recoveries, ranks, backlinks, original, html, plot, json=json))
    if ranks or backlinks or original or plot:
        raise UsageError("--ranks, --backlinks, --original and --plot go with --factors only")
    if len(recoveries) > 1:
        raise UsageError("one report is of one recovery: name one, or add --factors for all of them together")
    recovery = recoveries[0]
    if sum((tsv, json, list is not None)) > 1:
        raise UsageError("--tsv, --json and --list say different things: give one of them")
    if output is not None and (tsv or json or list or html):
        raise UsageError("--output is for all files together: leave it out, or --tsv, --json, --list and --html")
    printed = ReportOutput("tsv" if tsv else "json" if json else list or "")
    if html is not None:
        check_output_file(html)
        files = ReportFiles(html=html)
    elif printed is ReportOutput.SUMMARY:
        files = ReportFiles.in_folder(output, recovery)
    else:
        files = ReportFiles()
    run_report(recovery, printed, files, language)
    ctx.exit(0)
