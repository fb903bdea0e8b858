"""`unlost vault advance`: the old version goes, once archives hold the new one."""

from pathlib import Path

import click

from unlost.cli.messages import say
from unlost.cli.readable import FILE_OR_FOLDER
from unlost.cli.vault_options import date_option, resolve_pack_time, vault_option


@click.command(name="advance")
@vault_option
@click.option(
    "--held-in",
    type=FILE_OR_FOLDER,
    multiple=True,
    metavar="SOURCE",
    help="What archives hold: a recovery, WARCs, pages.",
)
@click.option("--force", is_flag=True, help="Also if nothing says that archives hold the new version.")
@date_option
@click.pass_context
def advance(ctx: click.Context, vault: Path, held_in: tuple[Path, ...], force: bool, date: str | None) -> None:
    """End an update: let pages carry the new version alone, if archives hold enough of it.

    For static sites, `unlost vault inject` comes next. The exit code is 1 if it is too early.
    """
    from unlost.vault.gathering import BlockCollector, collect_blocks  # noqa: PLC0415  start-up
    from unlost.vault.making import finish_update as go_on  # noqa: PLC0415
    from unlost.vault.staging import segment_holdings  # noqa: PLC0415
    from unlost.vault.state import open_vault  # noqa: PLC0415
    from unlost.vault.watching import block_indices  # noqa: PLC0415

    state = open_vault(vault)
    if len(state.generations) < 2:
        say("no update is under way: pages carry one version", level="info")
        return
    gathering = BlockCollector()
    for source in held_in:
        collect_blocks(source, gathering)
    short = [each for each in segment_holdings(state.newest, block_indices(gathering)) if not each.is_recoverable]
    if short and not force:
        for each in short:
            say(
                f"{each.name}: archives hold {each.archived:,} of {each.needed:,} blocks that are needed",
                level="warning",
            )
        say("too early: the old version stays; --held-in says what archives hold, --force goes on anyhow", level="info")
        ctx.exit(1)
    go_on(state, resolve_pack_time(date))
    say("pages carry the new version alone", level="info")
