"""`unlost export`: turns a recovery into a working site, a WACZ package or WARC files."""

from contextlib import ExitStack
from json import dumps
from pathlib import Path
from typing import Any, Self

import click

from unlost.cli.messages import say, say_next
from unlost.cli.problems import EXIT_SKIPPED_INPUT, say_problems
from unlost.cli.progress import ProgressBar, progress
from unlost.cli.types import RECOVERY_FOLDER, AnyPath
from unlost.errors import UsageError
from unlost.export.formats import ExportOptions, ExportProgress, ExternalLinks, export_format_of, export_recovery


class _ExportBars(ExportProgress):
    """Shows two bars in sequence: captures scanned, then files written."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._bar: ProgressBar | None = None
        self._done = 0

    def __enter__(self) -> Self:
        self._begin("looking", None)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _begin(self, label: str, total: int | None) -> None:
        self._stack.close()
        self._done = 0
        self._bar = self._stack.enter_context(progress(label, total, "files"))

    def on_scanned(self) -> None:
        """Count a scanned capture."""
        self._step()

    def on_total(self, files: int) -> None:
        """Begin the second bar."""
        self._begin("writing", files)

    def on_file(self) -> None:
        """Count a written file."""
        self._step()

    def _step(self) -> None:
        self._done += 1
        if self._bar is not None:
            self._bar.update(self._done, self._done)


def run_export(recovery: Path, output: Path, options: ExportOptions, *, is_json: bool) -> int:
    """Export a recovery, print the result, and return the exit code. Raises as `export_recovery`."""
    with _ExportBars() as bars:
        summary = export_recovery(recovery, output, options, bars)
    if is_json:
        click.echo(dumps({"output": str(output), **summary.to_json()}))
    else:
        for level, text in summary.messages(output):
            say(text, level=level)
        say_next(summary.next_step(output))
    say_problems(summary.problems)
    return EXIT_SKIPPED_INPUT if summary.problems.total else 0


_PATH = AnyPath()
_OPTIONS = {"hosting": "--as hosting", "external": "--external", "windows": "--windows-names"}


@click.command(name="export")
@click.argument("recovery", type=RECOVERY_FOLDER)
@click.option(
    "-o",
    "--output",
    type=_PATH,
    required=True,
    metavar="PATH",
    help="Where to: a folder, site.zip, site.tar.gz, site.wacz or site.warc.gz. Nothing may be there yet.",
)
@click.option(
    "--as",
    type=click.Choice(["offline", "hosting"]),
    default="offline",
    show_default=True,
    help="For hosting, also redirects for nginx, Apache and Netlify, so that old addresses work.",
)
@click.option(
    "--external",
    type=click.Choice(["keep", "archive", "none"]),
    default="keep",
    show_default=True,
    help="Links away from the site: as they are; to copies in the archive; or as they are, but nothing is loaded.",
)
@click.option("--no-rewrite", is_flag=True, help="All bytes as they were, in files that are called what addresses are.")
@click.option("--windows-names", is_flag=True, help="Names that Windows takes.")
@click.option("--json", is_flag=True, help="What was done, as JSON.")
@click.pass_context
def command(ctx: click.Context, /, recovery: Path, **options: Any) -> None:  # noqa: ANN401  `as` is a keyword
    """Make a site of a recovery again: files to open offline or to host, or archive files for replay.

    RECOVERY is the folder of a recovery, which may be going on. The exit code is 5 if a copy in it could not be read;
    the rest was exported. docs/export.md explains what is done to links and names.
    """
    output: Path = options["output"]
    if options["no_rewrite"] and options["external"] != "keep" and export_format_of(output).is_site:
        raise UsageError("--no-rewrite leaves all links as they are: leave out --external")
    export_options = ExportOptions(
        rewrite=not options["no_rewrite"],
        windows=options["windows_names"],
        external=ExternalLinks(options["external"]),
        hosting=options["as"] == "hosting",
    )
    export_format = export_format_of(output)
    for name in export_format.unsupported_options(export_options):
        message = f"{_OPTIONS[name]} is for files, and a {export_format.name.upper()} holds the captures as they were"
        raise UsageError(f"{message}: leave it out, or give -o a folder or a zip")
    ctx.exit(run_export(recovery, output, export_options, is_json=options["json"]))
