"""`unlost vault verify`: whether pages bring the files back that a vault has."""

from json import dumps
from pathlib import Path

import click

from unlost.cli.messages import say
from unlost.cli.readable import PLACE
from unlost.cli.vault_options import json_option, signed_by_option, signers, vault_option
from unlost.cli.vaultrecover import summary, tell


@click.command(name="verify")
@click.argument("sources", nargs=-1, required=True, type=PLACE, metavar="SOURCE...")
@vault_option
@signed_by_option
@json_option
@click.pass_context
def verify(ctx: click.Context, sources: tuple[Path, ...], vault: Path, signed_by: tuple[str, ...], json: bool) -> None:
    """Check that pages hold enough sound blocks of every segment of the vault, and that these decode to it.

    No secret key is needed. The exit code is 1 if something is short.
    """
    from unlost.vault.gathering import Gathering, gather  # noqa: PLC0415  start-up
    from unlost.vault.recovering import recover as bring_back  # noqa: PLC0415
    from unlost.vault.sealing import Keys  # noqa: PLC0415
    from unlost.vault.state import open_vault  # noqa: PLC0415

    state = open_vault(vault)
    gathering = Gathering(signers(signed_by))
    for source in sources:
        gather(source, gathering)
    done = bring_back(gathering, None, Keys())
    gathering.problems.pop("manifest-not-opened", None)  # as it must be without its key
    versions = {each.version for each in done.whole.values()}
    missing = [each.name for each in state.newest.files if each.version not in versions]
    if json:
        click.echo(dumps({**summary(done, gathering), "missing": missing}))
    else:
        tell(done, gathering)
        for name in missing:
            say(f"{name}: its last version cannot be recovered from these pages", level="warning")
        say(
            f"{len(state.newest.files) - len(missing):,} of {len(state.newest.files):,} segments are whole",
            level="info",
        )
    ctx.exit(1 if missing else 0)
