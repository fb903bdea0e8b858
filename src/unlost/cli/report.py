"""`unlost report`: what a recovery brought back."""

from pathlib import Path

import click

from unlost.errors import InputError, UsageError

_PLACE = click.Path(path_type=Path)


@click.command(name="report")
@click.argument("recovery", type=_PLACE)
@click.option(
    "-o", "--output", type=_PLACE, metavar="DIR", help="Where to write the files.  [default: RECOVERY/report]"
)
@click.option("--html", type=_PLACE, metavar="FILE", help="Write the page there, and no other files.")
@click.option("--tsv", is_flag=True, help="Print a line for each resource, with tabs, and write no files.")
@click.option("--json", is_flag=True, help="Print an object for each resource, then the summary, and write no files.")
@click.option(
    "--list",
    type=click.Choice(["missing", "rejected", "recovered", "listed"]),
    help="Print only these, one a line, with what is known of them, and write no files.",
)
@click.pass_context
def command(
    ctx: click.Context,
    recovery: Path,
    output: Path | None,
    html: Path | None,
    tsv: bool,
    json: bool,
    list: str | None,  # noqa: A002  as the option is called
) -> None:
    """Say what a recovery brought back, from where and from when, what is missing, what was rejected.

    RECOVERY is the folder of `unlost recover`, which may be at work meanwhile. A page for people, a line for each
    resource and the same as JSON are written into its folder `report`. docs/report.md explains them.
    """
    from unlost.cli.reportrun import Files, Printed, run  # noqa: PLC0415  start-up

    if sum((tsv, json, list is not None)) > 1:
        raise UsageError("--tsv, --json and --list say different things: give one of them")
    if output is not None and (tsv or json or list or html):
        raise UsageError("--output is for all files together: leave it out, or --tsv, --json, --list and --html")
    printed = Printed("tsv" if tsv else "json" if json else list or "")
    if html is not None:
        if html.is_dir() or not html.absolute().parent.is_dir():
            raise InputError(f"{html}: cannot be written: {'it is a folder' if html.is_dir() else 'no such folder'}")
        files = Files(page=html)
    elif printed is Printed.SUMMARY:
        files = Files.into(output, recovery)
    else:
        files = Files()
    run(recovery, printed, files)
    ctx.exit(0)
