"""`unlost export`: turns a recovery into a working site, a WACZ package or WARC files."""

from collections.abc import Mapping
from contextlib import ExitStack
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from unlost.cli.messages import say, say_next
from unlost.cli.problems import EXIT_SKIPPED_INPUT, say_problems
from unlost.cli.progress import ProgressBar, progress
from unlost.cli.types import RECOVERY_FOLDER, AnyPath
from unlost.errors import UsageError
from unlost.export.links import ExternalLinks
from unlost.export.site import ExportOptions, ExportProgress, ExportResult, export_site
from unlost.export.targets import open_target
from unlost.export.wacz import write_wacz
from unlost.export.warc import write_warc

if TYPE_CHECKING:
    from unlost.export.warc import ArchiveFileResult
    from unlost.problems import Problems


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


def export_files(recovery: Path, to: Path, options: ExportOptions, *, is_json: bool) -> int:
    """Write files, and return the exit code. Raises what the export raises."""
    with open_target(to) as target, _ExportBars() as bars:
        result = export_site(recovery, target, options, bars)
    if is_json:
        click.echo(dumps(_summary(result, to)))
    else:
        _say_summary(result, to)
    return _report_problems(result.problems)


def _summary(result: ExportResult, to: Path) -> dict[str, object]:
    return {
        "to": str(to),
        "files": result.files,
        "bytes": result.bytes,
        "redirects": result.redirects,
        "start": result.start,
        "links": {name: result.links[name] for name in ("rewritten", "left", "file", "missing", "outside")},
        "renamed": result.renamed,
        "changed": dict(sorted(result.changed.items())),
        "hosting": result.hosting,
        "problems": result.problems.counts,
    }


def _say_summary(result: ExportResult, to: Path) -> None:
    links = result.links
    text = f"{_format_count(result.files, 'file')}, {result.bytes:,} bytes, in {to}"
    if links["rewritten"]:
        text += f"; {_format_count(links['rewritten'], 'link')} rewritten"
    say(text, level="info")
    if links["missing"]:
        say(
            f"{_format_count(links['missing'], 'link')} to pages and parts of the site that were not recovered",
            level="note",
        )
    if links["left"]:
        say(
            f"{_format_count(links['left'], 'link')} left as they are, too long or too many for one page",
            level="warning",
        )
    if result.changed["too-long"]:
        say(
            f"{_format_count(result.changed['too-long'], 'file')} too long to be rewritten, as they are",
            level="warning",
        )
    if result.hosting:
        say(f"for servers: {', '.join(result.hosting)}; docs/hosting.md says where each belongs", level="info")
    if result.start is not None:
        say(f"begin with {result.start}", level="info")
    _say_how_to_open(result, to)


def _say_how_to_open(result: ExportResult, to: Path) -> None:
    """Print how to open the exported files."""
    is_packed = not to.is_dir()
    if result.hosting:
        serve = "unpack it on the server" if is_packed else f"copy {to} to the server"
        say_next(f"{serve}, with the rules that docs/hosting.md explains")
        return
    start = result.start or "a page of it"
    say_next(f"unpack it, and open {start} in a browser" if is_packed else f"open {to / start} in a browser")


def export_archive(recovery: Path, to: Path, *, is_json: bool) -> int:
    """Write a WACZ or WARC file, and return the exit code. Raises what the writer raises."""
    with progress("copying", None, "copies") as bar:

        def on_progress(count: int, _total: int) -> None:
            bar.update(count, count)

        write = write_wacz if to.name.lower().endswith(".wacz") else write_warc
        result: ArchiveFileResult = write(recovery, to, on_progress=on_progress)
    if is_json:
        numbers = {"copies": result.copies, "originals": result.originals, "pages": result.pages, "bytes": result.bytes}
        click.echo(dumps({"to": str(to), **numbers, "problems": result.problems.counts}))
    else:
        say(
            f"{result.copies:,} cop{'y' if result.copies == 1 else 'ies'}, {result.bytes:,} bytes, in {to}",
            level="info",
        )
        is_wacz = to.name.lower().endswith(".wacz")
        say_next(f"{'open it at https://replayweb.page/, or ' if is_wacz else ''}add it to a collection of pywb")
    return _report_problems(result.problems)


def _report_problems(problems: "Problems") -> int:
    say_problems(problems)
    return EXIT_SKIPPED_INPUT if problems.total else 0


def _format_count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


_PATH = AnyPath()
_ARCHIVE_SUFFIXES = (".wacz", ".warc.gz")


@click.command(name="export")
@click.argument("recovery", type=RECOVERY_FOLDER)
@click.option(
    "--to",
    type=_PATH,
    required=True,
    metavar="PLACE",
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
    to: Path = options["to"]
    name = to.name.lower()
    if name.endswith(_ARCHIVE_SUFFIXES):
        _check_archive(name, options)
    elif options["no_rewrite"] and options["external"] != "keep":
        raise UsageError("--no-rewrite leaves all links as they are: leave out --external")

    if name.endswith(_ARCHIVE_SUFFIXES):
        ctx.exit(export_archive(recovery, to, is_json=options["json"]))
    export_options = ExportOptions(
        rewrite=not options["no_rewrite"],
        windows=options["windows_names"],
        external=ExternalLinks(options["external"]),
        hosting=options["as"] == "hosting",
    )
    ctx.exit(export_files(recovery, to, export_options, is_json=options["json"]))


def _check_archive(name: str, options: Mapping[str, Any]) -> None:
    """Raise UsageError for options that WACZ and WARC do not support. --no-rewrite is valid: nothing is rewritten."""
    kind = "WACZ" if name.endswith(".wacz") else "WARC"
    conflicts = {
        "--as hosting": options["as"] == "hosting",
        "--external": options["external"] != "keep",
        "--windows-names": options["windows_names"],
    }
    for option, is_given in conflicts.items():
        if is_given:
            message = f"{option} is for files, and a {kind} holds the captures as they were"
            raise UsageError(f"{message}: leave it out, or give --to a folder or a zip")
