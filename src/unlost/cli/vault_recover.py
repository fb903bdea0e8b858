"""`unlost vault recover` and `unlost vault verify`: server files from pages in archives, crawls or folders."""

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from unlost.cli.archive_options import archives_option, only_option
from unlost.cli.messages import say
from unlost.cli.problems import say_problems
from unlost.cli.recover import EXIT_NOTHING_RECOVERED, command
from unlost.cli.types import FILE_OR_FOLDER
from unlost.cli.vault import (
    PATH,
    identity_option,
    json_option,
    parse_signers,
    passphrase_option,
    read_keys,
    signed_by_option,
    vault_option,
)
from unlost.errors import ArchiveError, UsageError
from unlost.report.format import parse_byte_size
from unlost.vault.collector import BlockCollector, collect_blocks
from unlost.vault.encryption import DecryptionKeys
from unlost.vault.recovery import is_complete, recover_files
from unlost.vault.state import open_vault

if TYPE_CHECKING:
    from unlost.vault.recovery import IncompleteSegment, VaultRecovery


_MAX_PAGES = 5  # named in one message
_MAX_LINES = 20  # lines of one kind
_SKIPPED_MESSAGES = {
    "cut": "blocks passed over since they break off: {count}",
    "damaged": "blocks passed over since they are damaged: {count}",
    "forged": "blocks passed over since their signature is wrong: {count}",
    "manifest-not-opened": "lists of files that the keys given do not open: {count}",
    "not-signed": "blocks passed over since no key of --signed-by signed them: {count}",
    "unreadable": "blocks passed over since they do not say what they are: {count}",
    "unreadable-record": "copies passed over since they cannot be read: {count}",
}


@click.command(name="recover")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option(
    "-o",
    "--output",
    type=PATH,
    required=True,
    metavar="DIR",
    help="Write the files to DIR, a new or empty folder.",
)
@click.option(
    "--recovery",
    type=PATH,
    metavar="DIR",
    help="Store pages recovered from archives in DIR, for a SOURCE that is a URL.  [default: HOST.vault-recovery]",
)
@identity_option
@passphrase_option
@signed_by_option
@click.option(
    "--most-bytes",
    metavar="SIZE",
    help="Maximum unpacked size of a segment, such as 2GB.  [default: 1GB, or 200 times its packed size if "
    "that is more]",
)
@archives_option
@only_option
@json_option
@click.pass_context
def recover(
    ctx: click.Context,
    sources: tuple[str, ...],
    output: Path,
    recovery: Path | None,
    identity: tuple[Path, ...],
    passphrase_file: Path | None,
    signed_by: tuple[str, ...],
    most_bytes: str | None,
    archives: Path | None,
    only: tuple[str, ...],
    json: bool,
) -> None:
    """Recover server files from the blocks in archived or saved pages.

    SOURCE is the folder of a recovery, a WARC or WACZ file, a page or a folder of pages. It can also be the URL of a
    lost site: then all versions of its pages are recovered from archives first. The blocks of all sources are combined.

    The exit code is 4 if only some segments are recovered, and 1 if none is.

    \b
    Example:
      unlost vault recover http://example.com/ -o restored --identity key.txt
    """
    max_bytes = None if most_bytes is None else parse_byte_size(most_bytes)
    collector = BlockCollector(parse_signers(signed_by))
    for source in sources:
        if "://" not in source:
            FILE_OR_FOLDER.convert(source, None, None)
    for source in sources:
        collect_blocks(_recover_site(source, recovery, archives, only) if "://" in source else Path(source), collector)
    result = recover_files(collector, output, read_keys(identity, passphrase_file), max_bytes)
    say_problems(collector.read_problems)
    if json:
        click.echo(dumps(recovery_summary(result, collector)))
    else:
        print_recovery(result, collector)
        if result.complete:
            unpacked = result.unpacked
            say(f"{unpacked.files:,} files, {unpacked.bytes:,} bytes, in {output}", level="info")
    ctx.exit(0 if is_complete(result) else ArchiveError.exit_code if result.complete else 1)


def _recover_site(url: str, to: Path | None, archives: Path | None, only: tuple[str, ...]) -> Path:
    """Recover all captures of a site's pages from archives, and return the folder of the recovery."""
    host = urlsplit(url).netloc
    if not host:
        raise UsageError(f"{ascii(url)[:80]}: expected the address of a site")
    folder = to or Path(f"{host.replace(':', '_')}.vault-recovery")
    command_words = [url, "-o", str(folder), "--all-versions", "--policy", "exhaustive"]
    command_words += ["--archives", str(archives)] if archives is not None else []
    command_words += ["--only", ",".join(only)] if only else []
    parent = click.get_current_context().find_root()
    try:
        with command.make_context("recover", command_words, parent=parent) as context:
            command.invoke(context)
    except click.exceptions.Exit as request:
        # If nothing was recovered, other sources may still have it.
        if request.exit_code not in {0, EXIT_NOTHING_RECOVERED, ArchiveError.exit_code}:
            raise
    return folder


def recovery_summary(result: "VaultRecovery", collector: "BlockCollector") -> dict[str, object]:
    """Return the result as a JSON object."""
    names = {each.id: each.name for each in result.manifest.segments} if result.manifest else {}
    return {
        "files": result.unpacked.files,
        "bytes": result.unpacked.bytes,
        "segments": {
            names.get(name, name): {"version": each.version, "seen": each.last_seen}
            for name, each in result.complete.items()
        },
        "short": [_short_object(each) for each in result.incomplete],
        "older": [_short_object(each) for each in result.newer_incomplete],
        "forged": result.forged,
        "refused": result.unpacked.refused,
        "pages": collector.pages,
        "carrying": collector.pages_with_blocks,
        "problems": dict(collector.problems),
    }


def _short_object(each: "IncompleteSegment") -> dict[str, object]:
    return {
        "segment": each.name or each.segment, "version": each.version, "found": each.found, "needed": each.needed,
        "missing": each.missing, "pages": list(each.pages),
    }  # fmt: skip


def print_recovery(result: "VaultRecovery", collector: "BlockCollector") -> None:
    """Print what was recovered, and what is incomplete."""
    say(f"{collector.pages_with_blocks:,} of {collector.pages:,} pages carry blocks", level="info")
    for kind, count in sorted(collector.problems.items()):
        say(_SKIPPED_MESSAGES[kind].format(count=f"{count:,}"), level="warning", kind=kind)
    if result.forged:
        say(
            f"{result.forged:,} versions do not have the hash that they say: blocks of them are forged", level="warning"
        )
    # Pages are untrusted: the number of names in them is unbounded.
    for name in result.unpacked.refused[:_MAX_LINES]:
        say(f"not written, it leads out of the folder or is no file: {name}", level="warning")
    _say_rest(len(result.unpacked.refused), "names refused")
    for segment in result.newer_incomplete[:_MAX_LINES]:
        say(
            f"{_name(segment)}: a newer version was seen, {segment.missing:,} blocks short; "
            "the last whole one was taken",
            level="note",
        )
    _say_rest(len(result.newer_incomplete), "newer versions, each some blocks short")
    for segment in result.incomplete[:_MAX_LINES]:
        text = f"{_name(segment)}: {segment.found:,} of {segment.needed:,} blocks: {segment.missing:,} more are needed"
        if segment.pages:
            named_pages = ", ".join(segment.pages[:_MAX_PAGES])
            ellipsis = " …" if len(segment.pages) > _MAX_PAGES else ""
            text += f", of any of {len(segment.pages):,} pages: {named_pages}{ellipsis}"
        say(text, level="warning")
    if result.incomplete and result.manifest is None:
        say("no manifest, which would name the pages: it is in the site's root page and those near it", level="note")
    _say_rest(len(result.incomplete), "versions that are short; --json lists all")


def _say_rest(count: int, what: str) -> None:
    if count > _MAX_LINES:
        say(f"{count - _MAX_LINES:,} more {what}", level="warning")


def _name(incomplete: "IncompleteSegment") -> str:
    return incomplete.name or f"segment {incomplete.segment}"


@click.command(name="verify")
@click.argument("sources", nargs=-1, required=True, type=FILE_OR_FOLDER, metavar="SOURCE...")
@vault_option
@signed_by_option
@json_option
@click.pass_context
def verify(ctx: click.Context, sources: tuple[Path, ...], vault: Path, signed_by: tuple[str, ...], json: bool) -> None:
    """Verify that every segment of the vault can be decoded from the blocks in pages.

    SOURCE is the folder of a site or a recovery, a WARC or WACZ file, or a page. No secret key is needed. The exit code
    is 1 if a segment cannot be recovered.

    \b
    Example:
      unlost vault verify public/ --vault site.vault
    """
    state = open_vault(vault)
    collector = BlockCollector(parse_signers(signed_by))
    for source in sources:
        collect_blocks(source, collector)
    result = recover_files(collector, None, DecryptionKeys())
    collector.problems.pop("manifest-not-opened", None)  # expected, since no key is given
    versions = {each.version for each in result.complete.values()}
    missing = [each.name for each in state.newest.files if each.version not in versions]
    if json:
        click.echo(dumps({**recovery_summary(result, collector), "missing": missing}))
    else:
        print_recovery(result, collector)
        for name in missing:
            say(f"{name}: its last version cannot be recovered from these pages", level="warning")
        say(
            f"{len(state.newest.files) - len(missing):,} of {len(state.newest.files):,} segments are whole",
            level="info",
        )
    ctx.exit(1 if missing else 0)
