"""`unlost vault verify`: whether pages bring the files back that a vault has."""

from json import dumps
from pathlib import Path

import click

from unlost.cli.messages import say
from unlost.cli.readable import FILE_OR_FOLDER
from unlost.cli.vault_options import json_option, signed_by_option, parse_signers, vault_option
from unlost.cli.vaultrecover import recovery_summary, print_recovery


@click.command(name="verify")
@click.argument("sources", nargs=-1, required=True, type=FILE_OR_FOLDER, metavar="SOURCE...")
@vault_option
@signed_by_option
@json_option
@click.pass_context
def verify(ctx: click.Context, sources: tuple[Path, ...], vault: Path, signed_by: tuple[str, ...], json: bool) -> None:
    """Check that pages hold enough sound blocks of every segment of the vault, and that these decode to it.

    No secret key is needed. The exit code is 1 if something is short.
    """
    from unlost.vault.gathering import BlockCollector, collect_blocks  # noqa: PLC0415  start-up
    from unlost.vault.recovering import recover_files as bring_back  # noqa: PLC0415
    from unlost.vault.sealing import DecryptionKeys  # noqa: PLC0415
    from unlost.vault.state import open_vault  # noqa: PLC0415

    state = open_vault(vault)
    gathering = BlockCollector(parse_signers(signed_by))
    for source in sources:
        collect_blocks(source, gathering)
    done = bring_back(gathering, None, DecryptionKeys())
    gathering.problems.pop("manifest-not-opened", None)  # as it must be without its key
    versions = {each.version for each in done.complete.values()}
    missing = [each.name for each in state.newest.files if each.version not in versions]
    if json:
        click.echo(dumps({**recovery_summary(done, gathering), "missing": missing}))
    else:
        print_recovery(done, gathering)
        for name in missing:
            say(f"{name}: its last version cannot be recovered from these pages", level="warning")
        say(
            f"{len(state.newest.files) - len(missing):,} of {len(state.newest.files):,} segments are whole",
            level="info",
        )
    ctx.exit(1 if missing else 0)
