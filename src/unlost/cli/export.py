"""`unlost export`: turns a recovery into a working site, a WACZ package or WARC files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from unlost.cli.types import RECOVERY_FOLDER, AnyPath
from unlost.errors import UsageError

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
def command(ctx: click.Context, /, recovery: Path, **given: Any) -> None:  # noqa: ANN401  `as` is a keyword
    """Make a site of a recovery again: files to open offline or to host, or archive files for replay.

    RECOVERY is the folder of a recovery, which may be going on. The exit code is 5 if a copy in it could not be read;
    the rest was exported. docs/export.md explains what is done to links and names.
    """
    to: Path = given["to"]
    name = to.name.lower()
    if name.endswith(_ARCHIVE_SUFFIXES):
        _check_archive(name, given)
    elif given["no_rewrite"] and given["external"] != "keep":
        raise UsageError("--no-rewrite leaves all links as they are: leave out --external")
    from unlost.cli.export_run import export_archive, export_files  # noqa: PLC0415  start-up
    from unlost.export.links import ExternalLinks  # noqa: PLC0415
    from unlost.export.site import ExportOptions  # noqa: PLC0415

    if name.endswith(_ARCHIVE_SUFFIXES):
        ctx.exit(export_archive(recovery, to, is_json=given["json"]))
    wanted = ExportOptions(
        rewrite=not given["no_rewrite"],
        windows=given["windows_names"],
        external=ExternalLinks(given["external"]),
        hosting=given["as"] == "hosting",
    )
    ctx.exit(export_files(recovery, to, wanted, is_json=given["json"]))


def _check_archive(name: str, given: Mapping[str, Any]) -> None:
    """Raise UsageError for options that WACZ and WARC do not support. --no-rewrite is valid: nothing is rewritten."""
    kind = "WACZ" if name.endswith(".wacz") else "WARC"
    refused = {
        "--as hosting": given["as"] == "hosting",
        "--external": given["external"] != "keep",
        "--windows-names": given["windows_names"],
    }
    for option, is_given in refused.items():
        if is_given:
            message = f"{option} is for files, and a {kind} holds the captures as they were"
            raise UsageError(f"{message}: leave it out, or give --to a folder or a zip")
