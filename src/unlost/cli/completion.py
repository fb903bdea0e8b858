"""`unlost completion`: prints the script that makes a shell complete commands and options."""

import click
from click.shell_completion import get_completion_class

_SHELLS = ("bash", "zsh", "fish")


@click.command(name="completion")
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print what makes a shell complete commands and options.

    It goes into a file, once: `~/.local/share/bash-completion/completions/unlost` for bash, `_unlost` in a folder of
    `$fpath` for zsh, `~/.config/fish/completions/unlost.fish` for fish.
    """
    completion_class = get_completion_class(shell)
    if completion_class is not None:
        root = ctx.find_root()
        click.echo(completion_class(root.command, {}, "unlost", "_UNLOST_COMPLETE").source())
