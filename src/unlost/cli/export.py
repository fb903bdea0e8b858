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
    help="Write to PATH: a folder, or a file that ends in .zip, .tar.gz, .wacz or .warc.gz. PATH must be new, or "
    "an empty folder.",
)
@click.option(
    "--as",
    type=click.Choice(["offline", "hosting"]),
    default="offline",
    show_default=True,
    help="Purpose of the exported site. `hosting` adds redirects for nginx, Apache and Netlify, so that old URLs work.",
)
@click.option(
    "--external",
    type=click.Choice(["keep", "archive", "none"]),
    default="keep",
    show_default=True,
    help="Links to other sites: leave them unchanged (keep), point them to the archive (archive), or leave them "
    "unchanged but load no images, scripts and styles from other sites (none).",
)
@click.option(
    "--no-rewrite", is_flag=True, help="Write all bytes unchanged to files named HOST/PATH?QUERY, and rewrite no links."
)
@click.option("--windows-names", is_flag=True, help="Use file names that are valid on Windows.")
@click.option("--json", is_flag=True, help="Print a summary as JSON.")
@click.pass_context
def command(ctx: click.Context, /, recovery: Path, **options: Any) -> None:  # noqa: ANN401  `as` is a keyword
    """Export a recovery as a website for offline use or hosting, or as a WACZ or WARC file for replay.

    RECOVERY is a folder created by `unlost recover`, which may still be running. Links between pages of the site become
    relative links; all other bytes stay unchanged. A WACZ or WARC file contains the unchanged captures.

    The exit code is 5 if some captures cannot be read; the others are exported.

    \b
    Example:
      unlost export lost.example.recovery -o site
      unlost export lost.example.recovery -o site.wacz
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
