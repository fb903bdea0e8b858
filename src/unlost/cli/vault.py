"""`unlost vault`: stores a site's server files in its own pages: plan, pack, inject, remove, status and advance."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from json import dumps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import click
import uvloop
from click.core import ParameterSource

from unlost.archives.factory import create_client
from unlost.cli import types
from unlost.cli.archive_options import (
    LIMIT_WAIT_SECONDS,
    archives_option,
    contact_option,
    delay_option,
    only_option,
    open_http_client,
    read_registry,
    select_archives,
)
from unlost.cli.commands import lazy_group
from unlost.cli.messages import command_line, say, say_next
from unlost.cli.options import resolve_build_time
from unlost.cli.output import print_table
from unlost.cli.problems import say_crawl_gaps
from unlost.cli.progress import crawl_progress, progress
from unlost.cli.types import FILE_OR_FOLDER, READABLE_FILE, AnyPath
from unlost.clock import SystemClock
from unlost.errors import InputError, UsageError
from unlost.report.format import format_byte_size, parse_byte_size
from unlost.vault.block import Carrier
from unlost.vault.collector import BlockCollector, block_indices, collect_blocks, collect_from_archive
from unlost.vault.encryption import DecryptionKeys, EncryptionOptions, check_encryption
from unlost.vault.injector import inject_blocks, remove_blocks
from unlost.vault.pack import PackOptions, finish_update, measure_packed_sizes, pack_vault, segment_holdings
from unlost.vault.pages import make_extra_pages, read_page_list, read_site_folder
from unlost.vault.plan import PAGE_LIMIT, CarrierPage, plan_blocks
from unlost.vault.server_files import FileSelection, run_dump_commands, select_files
from unlost.vault.site_crawl import SiteCrawl
from unlost.vault.state import STATE_NAME, Vault, VaultSettings, open_vault, public_key

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from unlost.vault.pack import PackResult
    from unlost.vault.plan import BlockPlan
    from unlost.vault.state import Generation


_T = TypeVar("_T")
PATH = AnyPath(readable=False)
vault_option = click.option(
    "--vault", type=PATH, default=Path("site.vault"), show_default=True, metavar="DIR", help="Folder of the vault."
)
json_option = click.option("--json", is_flag=True, help="Print the result as JSON.")
date_option = click.option(
    "--date",
    metavar="DATE",
    help="Record DATE as the build time, such as 20140501 or 2014-05-01T12:00:00Z.  [default: SOURCE_DATE_EPOCH, else "
    "now]",
)
passphrase_option = click.option(
    "--passphrase-file",
    type=READABLE_FILE,
    metavar="FILE",
    help="Encrypt or decrypt with the passphrase in the first line of FILE.",
)
identity_option = click.option(
    "--identity",
    type=READABLE_FILE,
    multiple=True,
    metavar="FILE",
    help="Decrypt with the age secret keys in FILE. May be repeated.",
)
signed_by_option = click.option(
    "--signed-by",
    multiple=True,
    metavar="KEY",
    help="Accept only blocks signed with this public key of 64 hexadecimal digits, as printed by `pack`. May be "
    "repeated.",
)
VISIT_OPTIONS = (
    click.option(
        "--crawl",
        type=PATH,
        metavar="DIR",
        help="Store the crawl of the live site in DIR, so that the same command can resume it.  [default: a temporary "
        "folder]",
    ),
    delay_option,
    contact_option,
)


def visit_options(command: "Callable[..., None]") -> "Callable[..., None]":
    """Add the options for crawling a live site."""
    for option in reversed(VISIT_OPTIONS):
        command = option(command)
    return command


def read_passphrase(file: Path | None) -> str | None:
    """Return the first line of a file; None without a file.

    Raises:
        InputError: The file is not UTF-8 text, or its first line is empty.
        OSError: The file cannot be read.
    """
    if file is None:
        return None
    try:
        lines = file.read_text("utf-8").splitlines()
    except UnicodeDecodeError:
        lines = []
    if not lines or not lines[0]:
        raise InputError(f"{file}: expected text with a passphrase in its first line")
    return lines[0]


def read_keys(identity: Sequence[Path], file: Path | None) -> DecryptionKeys:
    """Return the keys for decryption. Raises InputError, OSError."""
    return DecryptionKeys(tuple(identity), read_passphrase(file))


def parse_signers(signers: Sequence[str]) -> frozenset[str]:
    """Return public keys in lower case. Raises UsageError for an invalid one."""
    for key in signers:
        if len(key) != 64 or not set(key.lower()) <= set("0123456789abcdef"):
            raise UsageError(f"--signed-by {ascii(key)[:70]}: expected a public key of 64 hexadecimal digits")
    return frozenset(key.lower() for key in signers)


def resolve_pack_time(text: str | None) -> str:
    """Return the build time as 14 digits: `text`, else SOURCE_DATE_EPOCH, else now. Raises UsageError."""
    return resolve_build_time(text)


def find_site_pages(options: Mapping[str, Any]) -> list[CarrierPage]:
    """Return the pages of a folder, a list, or a live site. Raises InputError, UsageError."""
    text = options["pages"]
    if "://" in text:
        with open_visits(options) as (run, site_crawl):
            return run(site_crawl.list_pages(text))
    path = FILE_OR_FOLDER.convert(text, None, None)
    return read_site_folder(path) if path.is_dir() else read_page_list(path)


@contextmanager
def open_visits(options: Mapping[str, Any]) -> "Iterator[tuple[Callable[[Coroutine[None, None, _T]], _T], SiteCrawl]]":
    """Yield a function that runs coroutines, and a crawl of the live site.

    The crawl is stored in the folder given by --crawl, or a temporary one.
    """
    with TemporaryDirectory() as temporary, progress("visiting", counted="pages") as bar:
        folder = options["crawl"] or Path(temporary, "crawl")
        site_crawl = SiteCrawl(folder, SystemClock(), options["delay"], options["contact"], crawl_progress(bar))
        yield uvloop.run, site_crawl
    if options["crawl"] is not None and not site_crawl.visited_count:
        say(f"{options['crawl']}: the site as it was visited before: delete the folder to visit it anew", level="note")
    say_crawl_gaps(site_crawl.result, "give a list of the pages that matter")


def resolve_page_limit(options: Mapping[str, Any]) -> tuple[int, str]:
    """Return the maximum size of a page in bytes, and its source: --page-limit, or the selected archives."""
    if options["page_limit"] is not None:
        return parse_byte_size(options["page_limit"]), "as told"
    if not options["only"] and options["archives"] is None:
        return PAGE_LIMIT, "what every repository keeps that was ever measured"

    registry = read_registry(options["archives"])
    selected = registry.only(options["only"]) if options["only"] else registry.archives
    limits = [(int(each.page_bytes.value), each.id) for each in selected if each.page_bytes is not None]
    if not limits:
        return PAGE_LIMIT, "none of these archives tells a limit"
    size, name = min(limits)
    return size, f"the limit of {name}"


_INHERITED_OPTIONS = {"carrier": "carrier", "segments": "segments", "sign": "signed", "extra_pages": "extra_pages",
            "notice": "notice", "raw": "raw"}  # fmt: skip
"""Options that later packs inherit, and the names of their settings in the vault."""


def resolve_settings(
    ctx: click.Context, options: Mapping[str, Any], previous: Vault
) -> tuple[VaultSettings, EncryptionOptions]:
    """Return the settings to pack with, and who can decrypt the result.

    Args:
        ctx: Context of the command.
        options: The command's options by name.
        previous: The existing vault, or an empty one.

    Raises:
        UsageError: The vault was encrypted with a passphrase, and neither a new key nor --open is given.
    """
    is_known = bool(previous.generations)
    encryption = (
        _seal(options, previous)
        if is_known
        else EncryptionOptions(tuple(options["recipient"]), read_passphrase(options["passphrase_file"]))
    )
    check_encryption(encryption)
    settings = {
        name: getattr(previous.settings, name) if is_known and _is_default(ctx, option) else options[option]
        for option, name in _INHERITED_OPTIONS.items()
    }
    is_same_limit = is_known and all(_is_default(ctx, each) for each in ("page_limit", "archives", "only"))
    limit = previous.settings.limit if is_same_limit else resolve_page_limit(options)[0]
    kind = "recipients" if encryption.recipients else "no" if encryption.is_unencrypted else "passphrase"
    settings["carrier"] = Carrier(settings["carrier"])
    return VaultSettings(limit=limit, sealed=kind, recipients=encryption.recipients, **settings), encryption


def _seal(options: Mapping[str, Any], previous: Vault) -> EncryptionOptions:
    """Return who can decrypt the vault: the recipients or passphrase given, else those of the existing vault."""
    requested = EncryptionOptions(tuple(options["recipient"]), read_passphrase(options["passphrase_file"]))
    if options["open"]:
        if not requested.is_unencrypted:
            raise UsageError("--open lets everybody read it: leave out recipients and passphrase")
        return requested
    if not requested.is_unencrypted or previous.settings.sealed == "no":
        return requested
    if previous.settings.sealed == "recipients":
        return EncryptionOptions(previous.settings.recipients)
    raise UsageError(
        "the vault is sealed with a passphrase: give --passphrase-file, or --open to let everybody read what is packed"
    )


def _is_default(ctx: click.Context, option: str) -> bool:
    return ctx.get_parameter_source(option) in {ParameterSource.DEFAULT, None}


_PACK_OPTIONS = (
    click.argument("files", nargs=-1, type=types.ReadablePath(folder=True, no_follow=True)),
    click.option(
        "--pages",
        required=True,
        metavar="DIR|URL|FILE",
        help="Pages that carry the blocks: the folder of a static site, the URL of a live site, or a file with one URL "
        "or path per line.",
    ),
    click.option("--pessimistic", is_flag=True, help="Store all FILES. This is the default."),
    click.option(
        "--optimistic",
        is_flag=True,
        help="Omit files that archives get from pages, such as images and HTML, and published dependencies.",
    ),
    click.option(
        "--dump",
        multiple=True,
        metavar="NAME=COMMAND",
        help="Run COMMAND without a shell, and store its output as dump/NAME. May be repeated.",
    ),
    click.option(
        "--segments",
        default="one",
        show_default=True,
        metavar="METHOD",
        help="Divide the files into segments, so that a change affects fewer blocks: one, directory, size:SIZE (such "
        "as size:1MB) or changed (by modification time).",
    ),
    click.option(
        "--block",
        metavar="SIZE",
        help="Size of blocks before base64, such as 50KB.  [default: as small as possible]",
    ),
    click.option(
        "--page-limit",
        metavar="SIZE",
        help="Maximum size of a page with its block, such as 200KB.  [default: the limit of the selected archives, "
        "else 214KB]",
    ),
    click.option(
        "--may-be-lost",
        type=click.FloatRange(0, 0.99),
        metavar="SHARE",
        help="Share of pages, from 0 to 0.99, that may be lost without losing a file, whichever pages they are.  "
        "[default: 0.5 of the pages of each segment]",
    ),
    click.option(
        "--extra-pages",
        type=click.IntRange(0, 30_000),
        default=0,
        show_default=True,
        metavar="N",
        help="Create N additional pages that only carry blocks.",
    ),
    click.option(
        "--recipient",
        multiple=True,
        metavar="KEY",
        help="Encrypt for this public key of age (age1…) or SSH (ssh-ed25519 …). May be repeated.  [default: no "
        "encryption]",
    ),
    passphrase_option,
    click.option(
        "--sign/--no-sign", help="Sign blocks with a key stored in the vault.  [default: --no-sign for a new vault]"
    ),
    *VISIT_OPTIONS,
    archives_option,
    only_option,
    json_option,
)


def _with_pack_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_PACK_OPTIONS):
        command = option(command)
    return command


@click.group(name="vault", cls=lazy_group(recover="vault_recover", verify="vault_recover"))
def command() -> None:
    """Store a site's server files in its own pages, and recover them from archived pages.

    Scripts, settings and database dumps are packed, optionally encrypted, and encoded into blocks, one for each page.
    Web archives that store enough of the pages then also store the server files. The blocks can be read without unlost.
    See the documentation: vault, vault-format.

    \b
    Example:
      unlost vault pack /srv/app --pages public/ --recipient "$(age-keygen -y key.txt)"
      unlost vault inject public/
      unlost vault recover http://example.com/ -o restored --identity key.txt
    """


@command.command()
@_with_pack_options
def plan(files: tuple[Path, ...], **options: Any) -> None:  # noqa: ANN401  the options, by their names
    """Print the segments and blocks that `pack` would create.

    The plan also shows how many pages may be lost without losing a file. FILES are files and folders of the server.
    Nothing is written.

    \b
    Example:
      unlost vault plan /srv/app --pages public/
    """
    with _Selection(files, options) as (selection, pages):
        limit, why = resolve_page_limit(options)
        is_sealed = bool(options["recipient"] or options["passphrase_file"])
        sizes = measure_packed_sizes(selection.files, options["segments"], is_encrypted=is_sealed)
    block_plan = _plan_blocks(sizes, pages, limit, options)
    if options["json"]:
        click.echo(dumps(_plan_object(block_plan, sizes, len(pages))))
        return
    _print_plan(block_plan, sizes, len(pages), why)
    say_next("`unlost vault pack` with the same options makes the blocks")


@command.command()
@_with_pack_options
@vault_option
@click.option(
    "--carrier",
    type=click.Choice([each.value for each in Carrier]),
    default=Carrier.COMMENT.value,
    show_default=True,
    help="HTML element that contains the block of a page. Use another one if the server strips comments.",
)
@click.option(
    "--notice/--no-notice",
    help="Add a visible line with the date of the last change to pages, so that caches refresh them.  [default: "
    "--no-notice for a new vault]",
)
@click.option(
    "--raw/--no-raw",
    help="Also serve the packed segments as files below /unlost-vault/.  [default: --no-raw for a new vault]",
)
@click.option("--open", is_flag=True, help="Stop encrypting a vault that was encrypted: anyone can read its blocks.")
@click.option(
    "--at-once", is_flag=True, help="Drop the blocks of the old version now, before archives have the new one."
)
@date_option
@click.pass_context
def pack(ctx: click.Context, /, files: tuple[Path, ...], **options: Any) -> None:  # noqa: ANN401
    """Pack files into a vault, and encode them as blocks for pages.

    FILES are files and folders of the server. When a vault is packed again, only changed segments are encoded, and
    encryption, --sign, --carrier, --segments, --page-limit, --extra-pages, --notice and --raw keep their previous
    values unless they are given.

    \b
    Example:
      unlost vault pack /srv/app --pages public/ --recipient "$(age-keygen -y key.txt)"
    """
    folder: Path = options["vault"]
    previous = open_vault(folder) if (folder / STATE_NAME).exists() else Vault(folder)
    settings, encryption = resolve_settings(ctx, options, previous)
    block = None if options["block"] is None else parse_byte_size(options["block"])
    with _Selection(files, options, with_extra=False) as (selection, pages):
        pack_options = PackOptions(
            selection.files, pages, settings, encryption, options["may_be_lost"], block, options["at_once"]
        )
        packed = pack_vault(previous, pack_options, resolve_pack_time(options["date"]))
    _say_packed(packed, selection, is_json=options["json"])


@command.command()
@click.argument("site", type=types.READABLE_FOLDER)
@click.option(
    "-o", "--output", type=PATH, metavar="DIR", help="Write the modified site to DIR, and leave SITE unchanged."
)
@vault_option
@json_option
def inject(site: Path, output: Path | None, vault: Path, json: bool) -> None:
    """Insert the blocks of the vault into the pages of a static site.

    SITE is the folder of the site. Its pages are modified in place unless --output is given. Run this command after any
    HTML minifier.

    \b
    Example:
      unlost vault inject public/
    """
    result = inject_blocks(open_vault(vault), site, output)
    if json:
        numbers = {
            "changed": result.changed,
            "unchanged": result.unchanged,
            "missing": result.missing,
            "added": result.added,
        }
        click.echo(dumps({"site": str(output or site), **numbers}))
        return
    say(f"{result.changed:,} pages changed, {result.unchanged:,} as they were; {result.added:,} made", level="info")
    if result.missing:
        say(f"{result.missing:,} pages of the plan are not there: pack again with the pages that are", level="warning")
    else:
        say_next(
            f"{command_line('vault', 'verify', output or site, '--vault', vault)} checks the pages; then publish them"
        )


@command.command()
@click.argument("site", type=types.READABLE_FOLDER)
def remove(site: Path) -> None:
    """Remove all blocks from the pages of a static site.

    SITE is the folder of the site. Each page is restored byte for byte.

    \b
    Example:
      unlost vault remove public/
    """
    say(f"{remove_blocks(site):,} pages changed", level="info")


class _Selection:
    """Yields the files to store and the pages. Dumps go to a folder that is deleted at the end."""

    def __init__(self, files: tuple[Path, ...], options: Mapping[str, Any], *, with_extra: bool = True) -> None:
        self._files, self._options, self._with_extra = files, options, with_extra

    def __enter__(self) -> "tuple[FileSelection, list[CarrierPage]]":
        options = self._options
        if options["optimistic"] and options["pessimistic"]:
            raise UsageError("--optimistic and --pessimistic say different things: give one of them")
        if not self._files and not options["dump"]:
            raise UsageError("no files to keep: name files or folders of the server, or give --dump")
        self._folder = TemporaryDirectory()
        try:
            dumped_files = run_dump_commands(options["dump"], Path(self._folder.name))
            selection = (
                select_files(self._files, is_optimistic=options["optimistic"]) if self._files else FileSelection()
            )
            selection.files += dumped_files
            extra = make_extra_pages(options["extra_pages"]) if self._with_extra else []
            return selection, [*find_site_pages(options), *extra]
        except BaseException:
            self._folder.cleanup()
            raise

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


def _plan_blocks(
    sizes: Mapping[str, int], pages: "list[CarrierPage]", limit: int, options: Mapping[str, Any]
) -> "BlockPlan":
    block = None if options["block"] is None else parse_byte_size(options["block"])
    loss_tolerance = options["may_be_lost"]
    return plan_blocks(
        sizes, pages, limit=limit, block_size=block, loss_tolerance=loss_tolerance, signed=options["sign"]
    )


def _plan_object(block_plan: "BlockPlan", sizes: Mapping[str, int], pages: int) -> dict[str, object]:
    segments = [
        {"name": name, "size": sizes[name], "block": shape.block, "needed": shape.needed, "count": shape.count,
         "may_be_lost": round(shape.loss_tolerance, 4)}
        for name, shape in block_plan.shapes.items()
    ]  # fmt: skip
    numbers = {
        "pages": pages, "with_room": len(block_plan.pages), "page_limit": block_plan.limit,
        "needed": block_plan.needed_pages, "sufficient": block_plan.sufficient_pages,
        "spare": block_plan.expendable_pages,
    }  # fmt: skip
    return {"segments": segments, **numbers, "may_be_lost": round(block_plan.loss_tolerance, 4)}


def _print_plan(block_plan: "BlockPlan", sizes: Mapping[str, int], pages: int, why: str) -> None:
    rows = [
        (name, format_byte_size(sizes[name]), format_byte_size(shape.block), str(shape.needed), str(shape.count),
         f"{shape.loss_tolerance:.0%}")
        for name, shape in block_plan.shapes.items()
    ]  # fmt: skip
    print_table(("segment", "packed", "block", "needed", "pages", "may be lost"), rows)
    room = f"{len(block_plan.pages):,} of {pages:,} pages have room below {format_byte_size(block_plan.limit)} ({why})"
    say(f"{room}; any {block_plan.sufficient_pages:,} of them bring all files back", level="info")
    if len(block_plan.shapes) > 1:
        say(
            f"any {block_plan.expendable_pages:,} pages may be lost; if more are, a segment may be lost with them, "
            "although others "
            f"come back: --segments one bears more",
            level="info",
        )
    if min(shape.loss_tolerance for shape in block_plan.shapes.values()) + 0.005 < block_plan.target_tolerance:
        say(
            f"fewer than {block_plan.target_tolerance:.0%} of pages may be lost: "
            "more pages or longer blocks would help",
            level="warning",
        )


def _say_packed(packed: "PackResult", selection: "FileSelection", *, is_json: bool) -> None:
    vault = packed.vault
    key = public_key(vault)
    shapes = {each.name: each.shape for each in vault.newest.files}
    is_staged = len(vault.generations) > 1
    if is_json:
        segments = {
            name: {"version": each.version, "needed": each.shape.needed, "count": each.shape.count}
            for name, each in ((each.name, each) for each in vault.newest.files)
        }
        numbers = {"files": len(selection.files), "pages": len(vault.live), "staged": is_staged}
        summary = {"vault": str(vault.folder), "changed": packed.changed, **numbers, "key": key, "segments": segments}
        click.echo(dumps(summary))
        return
    for reason, count in selection.skipped.items():
        say(f"{count:,} left out: {reason}", level="note")
    if key is not None:
        say(f"keep this somewhere else: `recover --signed-by {key}` takes no forged blocks", level="info")
    if not packed.changed:
        say("nothing changed", level="info")
        return
    say(f"{len(packed.changed):,} of {len(shapes):,} segments coded anew, for {len(vault.live):,} pages", level="info")
    if is_staged:
        say(
            "pages carry both versions where they have room: `unlost vault status` says when the old one may go",
            level="info",
        )
    inject = command_line("vault", "inject", "SITE", "--vault", vault.folder)
    say_next(f"{inject} puts the blocks into the pages of a static site; docs/vault.md tells how a server adds them")


@command.command(name="status")
@vault_option
@click.option("--site", metavar="URL", help="Fetch the pages of the live site at URL.")
@click.option(
    "--held-in",
    type=FILE_OR_FOLDER,
    multiple=True,
    metavar="SOURCE",
    help="Read archived pages from a recovery, WARC files or saved pages. May be repeated.",
)
@click.option(
    "--ask-archives", is_flag=True, help="Query archives for captures of all pages of the vault. Requires --site."
)
@click.option(
    "--copies",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    metavar="N",
    help="With --ask-archives: fetch the last N captures of each page.",
)
@visit_options
@archives_option
@only_option
@json_option
@click.pass_context
def status(ctx: click.Context, /, vault: Path, site: str | None, held_in: tuple[Path, ...], **options: Any) -> None:  # noqa: ANN401
    """Report which versions of the vault can be recovered.

    Search the blocks of each version on the live site (--site) and in archives (--ask-archives, --held-in), and report
    whether `unlost vault advance` is safe. The exit code is 1 if no version is complete where it was searched.

    \b
    Example:
      unlost vault status --site https://example.com/ --ask-archives
    """
    state = open_vault(vault)
    places: dict[str, BlockCollector] = {}
    if site is not None:
        places["live"] = _gather_live(state, site, options)
    if held_in or options["ask_archives"]:
        places["archives"] = BlockCollector()
        for source in held_in:
            collect_blocks(source, places["archives"])
    if options["ask_archives"]:
        _gather_from_archives(state, site, options, places["archives"])
    value = _status_object(state, places)
    if options["json"]:
        click.echo(dumps(value))
    else:
        _print_status(value)
    ctx.exit(0 if all(any(g["whole"] for g in place["generations"]) for place in value["places"].values()) else 1)


def _gather_live(state: "Vault", site: str, options: dict[str, Any]) -> "BlockCollector":
    collector = BlockCollector()
    with open_visits(options) as (run, site_crawl):
        run(site_crawl.visit_pages(site, state.live))
        for each, body in site_crawl.iter_bodies():
            collector.add_page(body, each.uri, each.seen or "", archive="live")
    return collector


def _gather_from_archives(
    state: "Vault", site: str | None, options: dict[str, Any], collector: "BlockCollector"
) -> None:
    if site is None:
        raise UsageError("--ask-archives needs --site, the address that archives know the pages by")
    archives = select_archives(options["archives"], options["only"]).values()

    async def query_archives() -> None:
        async with open_http_client(options["contact"], LIMIT_WAIT_SECONDS) as http_client:
            queries = (
                collect_from_archive(
                    each.id, create_client(each, http_client), site, state.live, options["copies"], collector
                )
                for each in archives
            )
            for each, problem in zip(archives, await asyncio.gather(*queries), strict=True):
                if problem is not None:
                    say(f"{each.id}: {problem}", level="warning", archive=each.id)

    uvloop.run(query_archives())


def _status_object(state: "Vault", places: "dict[str, BlockCollector]") -> dict[str, Any]:
    value: dict[str, Any] = {
        "vault": str(state.folder), "pages": len(state.live), "updating": len(state.generations) > 1, "places": {},
    }  # fmt: skip
    for name, collector in places.items():
        generations = [_generation_object(each, block_indices(collector), collector) for each in state.generations]
        value["places"][name] = {
            "pages": collector.pages, "carrying": collector.pages_with_blocks, "problems": dict(collector.problems),
            "generations": generations,
        }  # fmt: skip
    held = value["places"].get("archives")
    value["next_stage_is_safe"] = bool(value["updating"] and held and held["generations"][-1]["whole"])
    return value


def _generation_object(generation: "Generation", indices: Any, collector: "BlockCollector") -> dict[str, Any]:  # noqa: ANN401

    segments: list[dict[str, Any]] = []
    for segment, held in zip(generation.files, segment_holdings(generation, indices), strict=True):
        by_archive = {name: len(found) for name, found in collector.archives.get(segment.group, {}).items()}
        segments.append(
            {"name": held.name, "version": held.version, "held": held.archived, "needed": held.needed, "by": by_archive}
        )
    whole = all(each["held"] >= each["needed"] for each in segments)
    return {"number": generation.number, "whole": whole, "segments": segments}


def _print_status(value: dict[str, Any]) -> None:
    say(f"{value['pages']:,} pages carry blocks{', of two versions' if value['updating'] else ''}", level="info")
    rows = [
        (place, str(each["number"]), segment["name"], segment["version"][:12], f"{segment['held']:,}",
         f"{segment['needed']:,}", ", ".join(f"{name} {count:,}" for name, count in sorted(segment["by"].items())))
        for place, gathered in value["places"].items()
        for each in gathered["generations"]
        for segment in each["segments"]
    ]  # fmt: skip
    if rows:
        print_table(("place", "version", "segment", "hash", "held", "needed", "by whom"), rows)
    if value["updating"]:
        if value["next_stage_is_safe"]:
            say("archives hold the new version: `unlost vault advance` is safe", level="info")
        elif "archives" in value["places"]:
            say("archives do not hold enough of the new version yet: wait", level="info")
        else:
            say("an update is under way: --ask-archives or --held-in tell whether it may go on", level="info")


@command.command(name="advance")
@vault_option
@click.option(
    "--held-in",
    type=FILE_OR_FOLDER,
    multiple=True,
    metavar="SOURCE",
    help="Read archived pages from a recovery, WARC files or saved pages. May be repeated.",
)
@click.option("--force", is_flag=True, help="Drop the old version even if archives may not have enough of the new one.")
@date_option
@click.pass_context
def advance(ctx: click.Context, vault: Path, held_in: tuple[Path, ...], force: bool, date: str | None) -> None:
    """Finish an update: drop the blocks of the old version.

    During an update, pages carry blocks of both versions. The old version is dropped only if archives have enough
    blocks of the new one; otherwise the exit code is 1. For a static site, run `unlost vault inject` afterwards.

    \b
    Example:
      unlost vault advance --held-in example.com.recovery
    """
    state = open_vault(vault)
    if len(state.generations) < 2:
        say("no update is under way: pages carry one version", level="info")
        return
    collector = BlockCollector()
    for source in held_in:
        collect_blocks(source, collector)
    short = [each for each in segment_holdings(state.newest, block_indices(collector)) if not each.is_recoverable]
    if short and not force:
        for each in short:
            say(
                f"{each.name}: archives hold {each.archived:,} of {each.needed:,} blocks that are needed",
                level="warning",
            )
        say("too early: the old version stays; --held-in says what archives hold, --force goes on anyhow", level="info")
        ctx.exit(1)
    finish_update(state, resolve_pack_time(date))
    say("pages carry the new version alone", level="info")
