"""`unlost vault recover`: server files out of pages that archives, crawls or folders have."""

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unlost.cli.messages import say
from unlost.cli.problems import say_problems
from unlost.cli.readable import PLACE
from unlost.cli.registry_options import archives_option, only_option
from unlost.cli.vault_options import (
    PATH,
    identity_option,
    json_option,
    keys,
    passphrase_option,
    signed_by_option,
    signers,
)
from unlost.errors import ArchiveError, UsageError

if TYPE_CHECKING:
    from unlost.vault.gathering import Gathering
    from unlost.vault.recovering import Recovered, Short

_SHOWN_PAGES = 5
_SHOWN = 20  # lines of one kind
_PASSED_OVER = {
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
@click.option("-o", "--output", type=PATH, required=True, metavar="DIR", help="Where to: nothing may be there yet.")
@click.option("--recovery", type=PATH, metavar="DIR", help="Where to keep what is recovered from archives.")
@identity_option
@passphrase_option
@signed_by_option
@click.option("--most-bytes", metavar="SIZE", help="What a segment may unpack to; else 1 GB, or 200 times its size.")
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
    """Get server files back from pages.

    SOURCE is the folder of a recovery, a WARC or WACZ, a page or a folder of pages; or the address of a lost site,
    which is then recovered from archives first, all versions of its pages. Everything found is put together. The exit
    code is 1 if nothing could be had, 4 if a part.
    """
    from unlost.vault.gathering import Gathering, gather  # noqa: PLC0415  start-up
    from unlost.vault.quantities import bytes_of  # noqa: PLC0415
    from unlost.vault.recovering import is_complete  # noqa: PLC0415
    from unlost.vault.recovering import recover as bring_back  # noqa: PLC0415

    most = None if most_bytes is None else bytes_of(most_bytes)
    gathering = Gathering(signers(signed_by))
    for source in sources:
        if "://" not in source:
            PLACE.convert(source, None, None)
    for source in sources:
        gather(_recovered(source, recovery, archives, only) if "://" in source else Path(source), gathering)
    done = bring_back(gathering, output, keys(identity, passphrase_file), most)
    say_problems(gathering.reading)
    if json:
        click.echo(dumps(summary(done, gathering)))
    else:
        tell(done, gathering)
        if done.whole:
            unpacked = done.unpacked
            say(f"{unpacked.files:,} files, {unpacked.bytes:,} bytes, in {output}", level="info")
    ctx.exit(0 if is_complete(done) else ArchiveError.exit_code if done.whole else 1)


def _recovered(url: str, to: Path | None, archives: Path | None, only: tuple[str, ...]) -> Path:
    """Recover a site from archives, all versions of its pages, and return the folder of the recovery."""
    from urllib.parse import urlsplit  # noqa: PLC0415  start-up

    from unlost.cli.recover import command  # noqa: PLC0415
    from unlost.cli.recoverrun import NOTHING  # noqa: PLC0415

    host = urlsplit(url).netloc
    if not host:
        raise UsageError(f"{ascii(url)[:80]}: expected the address of a site")
    folder = to or Path(f"{host.replace(':', '_')}.vault-recovery")
    words = [url, "-o", str(folder), "--all-versions", "--policy", "exhaustive"]
    words += ["--archives", str(archives)] if archives is not None else []
    words += ["--only", ",".join(only)] if only else []
    parent = click.get_current_context().find_root()
    try:
        with command.make_context("recover", words, parent=parent) as context:
            command.invoke(context)
    except click.exceptions.Exit as ended:
        # Where nothing came back, other sources may still have it.
        if ended.exit_code not in {0, NOTHING, ArchiveError.exit_code}:
            raise
    return folder


def summary(done: "Recovered", gathering: "Gathering") -> dict[str, object]:
    """Return what came back, for programs."""
    names = {each.id: each.name for each in done.manifest.segments} if done.manifest else {}
    return {
        "files": done.unpacked.files,
        "bytes": done.unpacked.bytes,
        "segments": {
            names.get(name, name): {"version": each.version, "seen": each.newest} for name, each in done.whole.items()
        },
        "short": [_short_object(each) for each in done.short],
        "older": [_short_object(each) for each in done.older],
        "forged": done.forged,
        "refused": done.unpacked.refused,
        "pages": gathering.pages,
        "carrying": gathering.carrying,
        "problems": dict(gathering.problems),
    }


def _short_object(each: "Short") -> dict[str, object]:
    return {
        "segment": each.name or each.segment, "version": each.version, "found": each.found, "needed": each.needed,
        "missing": each.missing, "pages": list(each.pages),
    }  # fmt: skip


def tell(done: "Recovered", gathering: "Gathering") -> None:
    """Say what came back, and what is short."""
    say(f"{gathering.carrying:,} of {gathering.pages:,} pages carry blocks", level="info")
    for kind, count in sorted(gathering.problems.items()):
        say(_PASSED_OVER[kind].format(count=f"{count:,}"), level="warning", kind=kind)
    if done.forged:
        say(f"{done.forged:,} versions do not have the hash that they say: blocks of them are forged", level="warning")
    # What strangers put into pages may be endless.
    for name in done.unpacked.refused[:_SHOWN]:
        say(f"not written, it leads out of the folder or is no file: {name}", level="warning")
    _say_rest(len(done.unpacked.refused), "names refused")
    for short in done.older[:_SHOWN]:
        say(
            f"{_name(short)}: a newer version was seen, {short.missing:,} blocks short; the last whole one was taken",
            level="note",
        )
    _say_rest(len(done.older), "newer versions, each some blocks short")
    for short in done.short[:_SHOWN]:
        text = f"{_name(short)}: {short.found:,} of {short.needed:,} blocks: {short.missing:,} more are needed"
        if short.pages:
            more = ", ".join(short.pages[:_SHOWN_PAGES])
            text += f", of any of {len(short.pages):,} pages: {more}{' …' if len(short.pages) > _SHOWN_PAGES else ''}"
        say(text, level="warning")
    if done.short and done.manifest is None:
        say("no manifest, which would name the pages: it is in the site's root page and those near it", level="note")
    _say_rest(len(done.short), "versions that are short; --json lists all")


def _say_rest(count: int, what: str) -> None:
    if count > _SHOWN:
        say(f"{count - _SHOWN:,} more {what}", level="warning")


def _name(short: "Short") -> str:
    return short.name or f"segment {short.segment}"
