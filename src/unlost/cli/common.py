"""Options that can be set once for all commands that have them: which archives there are, and who asks them."""

import os
from collections.abc import Mapping
from typing import Any

import click
from click.core import ParameterSource


class CommonOption(click.Option):
    """An option that, where a command has no setting of its own, takes the one for all commands.

    In this order: the flag, the command's variable (`UNLOST_COMMAND_NAME`), the variable for all (`UNLOST_NAME`), the
    command's own table of `config.toml`, then the table `common`.
    """

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Return the command's variable, else the one for all."""
        return super().resolve_envvar_value(ctx) or os.environ.get(f"UNLOST_{str(self.name).upper()}") or None

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        """Return the value and where it is from."""
        value, source = super().consume_value(ctx, opts)
        common = (ctx.find_root().default_map or {}).get("common", {})
        if source is ParameterSource.DEFAULT and self.name in common:
            return common[self.name], ParameterSource.DEFAULT_MAP
        return value, source
