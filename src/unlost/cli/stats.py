"""`unlost stats`: what an archive holds, in tables and curves, and what it is asked for."""

import click

from unlost.cli.apart import lazy_group

_COMMANDS = ("index", "logs")


class _Stats(lazy_group("stats", *_COMMANDS)):  # type: ignore[misc]  # made anew for each group
    """Takes `unlost stats FILE` for `unlost stats index FILE`, which is what nearly everybody wants."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the name of the command where it was left out."""
        if args and args[0] not in (*_COMMANDS, "--help"):
            args = ["index", *args]
        rest: list[str] = super().parse_args(ctx, args)
        return rest


@click.group(name="stats", cls=_Stats)
def command() -> None:
    """Describe what an archive holds, from its index, or what it is asked for, from its logs.

    `unlost stats INDEX...` is short for `unlost stats index INDEX...`.
    """
