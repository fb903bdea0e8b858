"""Commands in modules of their own, each imported only when it is asked for: what is not needed costs start-up time."""

from importlib import import_module

import click


def lazy_group(prefix: str, *names: str) -> type[click.Group]:
    """Return a kind of group that also has these commands, each under its name in `unlost.cli.PREFIXNAME`."""

    class Group(click.Group):
        def list_commands(self, ctx: click.Context) -> list[str]:
            """Return the names in their order."""
            return sorted([*super().list_commands(ctx), *names])

        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
            """Import it if it is one of them."""
            if cmd_name not in names:
                return super().get_command(ctx, cmd_name)
            found: click.Command = getattr(import_module(f"unlost.cli.{prefix}{cmd_name}"), cmd_name)
            return found

    return Group
