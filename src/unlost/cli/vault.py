"""`unlost vault`: what makes a site run, kept in its own pages."""

from collections.abc import Callable, Mapping
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unlost.cli import readable
from unlost.cli.apart import lazy_group
from unlost.cli.messages import command_line, say, say_next
from unlost.cli.registry_options import archives_option, only_option
from unlost.cli.table import print_table
from unlost.cli.vault_options import (
    PATH,
    VISIT_OPTIONS,
    date_option,
    json_option,
    resolve_pack_time,
    resolve_page_limit,
    passphrase_option,
    find_site_pages,
    vault_option,
)
from unlost.errors import UsageError
from unlost.vault.carriers import Carrier

if TYPE_CHECKING:
    from unlost.vault.choosing import FileSelection
    from unlost.vault.making import PackResult
    from unlost.vault.planning import CarrierPage, BlockPlan

_PACK_OPTIONS = (
    click.argument("files", nargs=-1, type=readable.ReadablePath(folder=True, no_follow=True)),
    click.option("--pages", required=True, metavar="DIR|URL|FILE", help="The pages: a folder, site, list."),
    click.option("--pessimistic", is_flag=True, help="Keep all files that are given; this is the default."),
    click.option("--optimistic", is_flag=True, help="Leave out what archives get from pages, and what others publish."),
    click.option("--dump", multiple=True, metavar="NAME=COMMAND", help="Keep what a command prints, as dump/NAME."),
    click.option(
        "--segments", default="one", show_default=True, metavar="HOW", help="one, directory, size:1MB, changed."
    ),
    click.option("--block", metavar="SIZE", help="The largest block, before base64; else as small as will do."),
    click.option("--page-limit", metavar="SIZE", help="How long a page may become; else what the archives keep."),
    click.option(
        "--may-be-lost",
        type=click.FloatRange(0, 0.99),
        metavar="SHARE",
        help="The share of pages that may be lost, whichever they are, without losing a file.  [default: 0.5 of the "
        "pages of each segment]",
    ),
    click.option(
        "--extra-pages", type=click.IntRange(0, 30_000), default=0, metavar="N", help="Make so many pages more."
    ),
    click.option("--recipient", multiple=True, metavar="KEY", help="Seal for this recipient of age."),
    passphrase_option,
    click.option("--sign/--no-sign", help="Sign blocks with a key that is made in the vault."),
    *VISIT_OPTIONS,
    archives_option,
    only_option,
    json_option,
)


def _with_pack_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_PACK_OPTIONS):
        command = option(command)
    return command


@click.group(name="vault", cls=lazy_group("vault", "advance", "recover", "status", "verify"))
def command() -> None:
    """Keep what makes a site run in its own pages, and get it back from archives of them.

    docs/vault.md tells how; docs/vault-format.md what stands in pages, and how to read it without this program.
    """


@command.command()
@_with_pack_options
def plan(files: tuple[Path, ...], **given: Any) -> None:  # noqa: ANN401  the options, by their names
    """Say how files would be divided, how many blocks of which size, and how many pages may be lost."""
    from unlost.vault.making import measure_packed_sizes  # noqa: PLC0415  start-up

    with _Selection(files, given) as (choice, pages):
        limit, why = resolve_page_limit(given)
        is_sealed = bool(given["recipient"] or given["passphrase_file"])
        sizes = measure_packed_sizes(choice.files, given["segments"], is_encrypted=is_sealed)
    made = _plan_blocks(sizes, pages, limit, given)
    if given["json"]:
        click.echo(dumps(_plan_object(made, sizes, len(pages))))
        return
    _print_plan(made, sizes, len(pages), why)
    say_next("`unlost vault pack` with the same options makes the blocks")


@command.command()
@_with_pack_options
@vault_option
@click.option(
    "--carrier",
    type=click.Choice([each.value for each in Carrier]),
    default=Carrier.COMMENT.value,
    show_default=True,
    help="What hides blocks in pages: another one where comments are stripped.",
)
@click.option("--notice/--no-notice", help="Let pages show when their blocks changed, so that caches refresh them.")
@click.option("--raw/--no-raw", help="Serve what is packed as it is, too.")
@click.option("--open", is_flag=True, help="Let everybody read what was sealed before.")
@click.option("--at-once", is_flag=True, help="Take the old version away before archives have the new one.")
@date_option
@click.pass_context
def pack(ctx: click.Context, /, files: tuple[Path, ...], **given: Any) -> None:  # noqa: ANN401
    """Pack files, and code them into blocks for pages; what did not change stays where it is.

    What is not said is as it was the last time: sealing, signing, carrier, segments, limit, extra pages, notices.
    """
    from unlost.cli.vaultsettings import resolve_settings  # noqa: PLC0415  start-up
    from unlost.vault.making import PackOptions, pack_vault  # noqa: PLC0415
    from unlost.vault.quantities import parse_byte_size  # noqa: PLC0415
    from unlost.vault.state import STATE_NAME, Vault, open_vault  # noqa: PLC0415

    folder: Path = given["vault"]
    before = open_vault(folder) if (folder / STATE_NAME).exists() else Vault(folder)
    settings, seal = resolve_settings(ctx, given, before)
    block = None if given["block"] is None else parse_byte_size(given["block"])
    with _Selection(files, given, with_extra=False) as (choice, pages):
        wish = PackOptions(choice.files, pages, settings, seal, given["may_be_lost"], block, given["at_once"])
        made = pack_vault(before, wish, resolve_pack_time(given["date"]))
    _say_packed(made, choice, is_json=given["json"])


@command.command()
@click.argument("site", type=readable.READABLE_FOLDER)
@click.option("--to", type=PATH, metavar="DIR", help="Write a copy of the site there, and leave SITE as it is.")
@vault_option
@json_option
def inject(site: Path, to: Path | None, vault: Path, json: bool) -> None:
    """Put blocks into the pages of the static site in a folder."""
    from unlost.vault.injecting import inject_blocks as put  # noqa: PLC0415  start-up
    from unlost.vault.state import open_vault  # noqa: PLC0415

    done = put(open_vault(vault), site, to)
    if json:
        numbers = {"changed": done.changed, "unchanged": done.unchanged, "missing": done.missing, "added": done.added}
        click.echo(dumps({"site": str(to or site), **numbers}))
        return
    say(f"{done.changed:,} pages changed, {done.unchanged:,} as they were; {done.added:,} made", level="info")
    if done.missing:
        say(f"{done.missing:,} pages of the plan are not there: pack again with the pages that are", level="warning")
    else:
        say_next(f"{command_line('vault', 'verify', to or site, '--vault', vault)} checks the pages; then publish them")


@command.command()
@click.argument("site", type=readable.READABLE_FOLDER)
def remove(site: Path) -> None:
    """Take all blocks out of the pages of the static site in a folder."""
    from unlost.vault.injecting import remove_blocks as take_out  # noqa: PLC0415  start-up

    say(f"{take_out(site):,} pages changed", level="info")


class _Selection:  # noqa: N801  used as a function
    """Gives the files to keep and the pages; dumps are kept in a folder that goes at the end."""

    def __init__(self, files: tuple[Path, ...], given: Mapping[str, Any], *, with_extra: bool = True) -> None:
        self._files, self._given, self._with_extra = files, given, with_extra

    def __enter__(self) -> "tuple[FileSelection, list[CarrierPage]]":
        from tempfile import TemporaryDirectory  # noqa: PLC0415  start-up

        from unlost.vault.choosing import FileSelection, select_files, run_dump_commands  # noqa: PLC0415
        from unlost.vault.extra_pages import make_extra_pages  # noqa: PLC0415

        given = self._given
        if given["optimistic"] and given["pessimistic"]:
            raise UsageError("--optimistic and --pessimistic say different things: give one of them")
        if not self._files and not given["dump"]:
            raise UsageError("no files to keep: name files or folders of the server, or give --dump")
        self._folder = TemporaryDirectory()
        try:
            dumps_made = run_dump_commands(given["dump"], Path(self._folder.name))
            choice = select_files(self._files, is_optimistic=given["optimistic"]) if self._files else FileSelection()
            choice.files += dumps_made
            extra = make_extra_pages(given["extra_pages"]) if self._with_extra else []
            return choice, [*find_site_pages(given), *extra]
        except BaseException:
            self._folder.cleanup()
            raise

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


def _plan_blocks(
    sizes: Mapping[str, int], pages: "list[CarrierPage]", limit: int, given: Mapping[str, Any]
) -> "BlockPlan":
    from unlost.vault.planning import plan_blocks as make_plan  # noqa: PLC0415  start-up
    from unlost.vault.quantities import parse_byte_size  # noqa: PLC0415

    block = None if given["block"] is None else parse_byte_size(given["block"])
    lost = given["may_be_lost"]
    return make_plan(sizes, pages, limit=limit, block_size=block, loss_tolerance=lost, signed=given["sign"])


def _plan_object(made: "BlockPlan", sizes: Mapping[str, int], pages: int) -> dict[str, object]:
    segments = [
        {"name": name, "size": sizes[name], "block": shape.block, "needed": shape.needed, "count": shape.count,
         "may_be_lost": round(shape.loss_tolerance, 4)}
        for name, shape in made.shapes.items()
    ]  # fmt: skip
    numbers = {
        "pages": pages, "with_room": len(made.pages), "page_limit": made.limit, "needed": made.needed_pages,
        "sufficient": made.sufficient_pages, "spare": made.expendable_pages,
    }  # fmt: skip
    return {"segments": segments, **numbers, "may_be_lost": round(made.loss_tolerance, 4)}


def _print_plan(made: "BlockPlan", sizes: Mapping[str, int], pages: int, why: str) -> None:
    from unlost.vault.quantities import format_byte_size  # noqa: PLC0415  start-up

    rows = [
        (name, format_byte_size(sizes[name]), format_byte_size(shape.block), str(shape.needed), str(shape.count),
         f"{shape.loss_tolerance:.0%}")
        for name, shape in made.shapes.items()
    ]  # fmt: skip
    print_table(("segment", "packed", "block", "needed", "pages", "may be lost"), rows)
    room = f"{len(made.pages):,} of {pages:,} pages have room below {format_byte_size(made.limit)} ({why})"
    say(f"{room}; any {made.sufficient_pages:,} of them bring all files back", level="info")
    if len(made.shapes) > 1:
        say(
            f"any {made.expendable_pages:,} pages may be lost; if more are, a segment may be lost with them, although others "
            f"come back: --segments one bears more",
            level="info",
        )
    if min(shape.loss_tolerance for shape in made.shapes.values()) + 0.005 < made.target_tolerance:
        say(
            f"fewer than {made.target_tolerance:.0%} of pages may be lost: more pages or longer blocks would help",
            level="warning",
        )


def _say_packed(made: "PackResult", choice: "FileSelection", *, is_json: bool) -> None:
    from unlost.vault.state import public_key  # noqa: PLC0415  start-up

    vault = made.vault
    key = public_key(vault)
    shapes = {each.name: each.shape for each in vault.newest.files}
    is_staged = len(vault.generations) > 1
    if is_json:
        segments = {
            name: {"version": each.version, "needed": each.shape.needed, "count": each.shape.count}
            for name, each in ((each.name, each) for each in vault.newest.files)
        }
        numbers = {"files": len(choice.files), "pages": len(vault.live), "staged": is_staged}
        told = {"vault": str(vault.folder), "changed": made.changed, **numbers, "key": key, "segments": segments}
        click.echo(dumps(told))
        return
    for reason, count in choice.skipped.items():
        say(f"{count:,} left out: {reason}", level="note")
    if key is not None:
        say(f"keep this somewhere else: `recover --signed-by {key}` takes no forged blocks", level="info")
    if not made.changed:
        say("nothing changed", level="info")
        return
    say(f"{len(made.changed):,} of {len(shapes):,} segments coded anew, for {len(vault.live):,} pages", level="info")
    if is_staged:
        say(
            "pages carry both versions where they have room: `unlost vault status` says when the old one may go",
            level="info",
        )
    inject = command_line("vault", "inject", "SITE", "--vault", vault.folder)
    say_next(f"{inject} puts the blocks into the pages of a static site; docs/vault.md tells how a server adds them")
