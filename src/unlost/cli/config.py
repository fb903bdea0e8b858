"""The user's own settings: `config.toml` in UNLOST_HOME, else in the XDG folder for configuration."""

import os
from pathlib import Path
from typing import Any

import click

from unlost.errors import InputError


def path() -> Path:
    """Return where the settings are, whether or not the file exists."""
    if home := os.environ.get("UNLOST_HOME"):
        return Path(home) / "config.toml"
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
    return Path(base) / "unlost" / "config.toml"


def load() -> dict[str, Any]:
    """Return the settings, nested like the commands: `[uri.surt]` with `rules = "papers"`. Empty without a file."""
    file = path()
    try:
        text = file.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read: {error}") from error
    import tomllib  # noqa: PLC0415  only who has settings pays for it

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file}: not TOML: {error}") from error


def check(settings: dict[str, Any], group: click.Group) -> None:
    """Raise InputError for a setting that no command has: a misspelt one would otherwise be passed over in silence."""
    _check(settings, group, click.Context(group), "")


def _check(settings: dict[str, Any], command: click.Command, context: click.Context, prefix: str) -> None:
    options = {parameter.name for parameter in command.params if isinstance(parameter, click.Option)}
    for name, value in settings.items():
        if name in options:
            continue
        if not isinstance(command, click.Group):
            raise InputError(
                f"{path()}: {prefix}{name}: no such option: expected one of {', '.join(sorted(map(str, options)))}"
            )
        inner = command.get_command(context, name)
        if inner is None:
            raise InputError(f"{path()}: {prefix}{name}: no such command")
        if not isinstance(value, dict):
            raise InputError(f"{path()}: {prefix}{name}: expected a table of options")
        _check(value, inner, context, f"{prefix}{name}.")
