"""`unlost completion`: prints the script that makes a shell complete commands and options."""

import click
from click.shell_completion import get_completion_class

_SHELLS = ("bash", "zsh", "fish")


@click.command(name="completion")
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print a completion script for bash, zsh or fish.

    Write the script to the file from which your shell loads completions:
    `~/.local/share/bash-completion/completions/unlost` for bash, `_unlost` in a folder of `$fpath` for zsh, or
    `~/.config/fish/completions/unlost.fish` for fish. The shell then completes commands, options and their values.

    \b
    Example:
      unlost completion bash > ~/.local/share/bash-completion/completions/unlost
    """
    completion_class = get_completion_class(shell)
    if completion_class is not None:
        root = ctx.find_root()
        click.echo(completion_class(root.command, {}, "unlost", "_UNLOST_COMPLETE").source())
