"""The user's settings, state and cache: `config.toml`, `state/` and `cache/` in UNLOST_HOME or the XDG folders."""

import os
from pathlib import Path
from typing import Any

import click

from unlost.errors import InputError
from unlost.paths import cache_folder, state_folder

__all__ = ["COMMON", "cache_folder", "check", "load", "path", "state_folder"]

_MAX_BYTES = 1 << 20

COMMON = ("archives", "only", "contact", "jobs", "database", "token")
"""Options shared by several commands, which the table `common` sets for all of them.

They cannot be top-level keys, since `archives` and `jobs` are also commands, whose tables have these names."""

_EXPECTED = {
    "switch": "true or false",
    "one": "text or a number",
    "list": "text, a number or a list of them",
    "ids": "text, a number or a list of them",
}


def path() -> Path:
    """Return the path of the settings file, whether or not it exists."""
    if home := os.environ.get("UNLOST_HOME"):
        return Path(home) / "config.toml"
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
    return Path(base) / "unlost" / "config.toml"


def load() -> dict[str, Any]:
    """Return the settings, nested like the commands: `[uri.surt]` with `rules = "papers"`. Empty without a file.

    Raises:
        InputError: The file cannot be read, is too large or is not TOML.
    """
    file = path()
    try:
        with file.open("rb") as opened:
            data = opened.read(_MAX_BYTES + 1)
        text = data.decode()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        from unlost.problems import unreadable_error  # noqa: PLC0415  start-up

        raise unreadable_error(file, error) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not TOML: expected UTF-8: {error.reason}") from error
    if len(data) > _MAX_BYTES:
        raise InputError(f"{file}: more than {_MAX_BYTES} bytes: not settings")
    import tomllib  # noqa: PLC0415  not loaded without a settings file

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: not TOML: {error}") from error


def check(settings: dict[str, Any], group: click.Group) -> None:
    """Check settings against the commands, and convert numbers to text in place, as flags and variables are.

    Raises:
        InputError: A setting exists in no command (a misspelt one would otherwise be ignored), or has the wrong type.
    """
    common = settings.get("common", {})
    if not isinstance(common, dict):
        raise InputError(f"{path()}: common: expected a table of options")
    for name, value in common.items():
        if name not in COMMON:
            raise InputError(f"{path()}: common.{name}: no such option: expected one of {', '.join(COMMON)}")
        common[name] = _normalize_value(value, f"common.{name}", "ids" if name == "only" else "one")
    of_commands = {name: value for name, value in settings.items() if name != "common"}
    _check(of_commands, group, click.Context(group), "")
    settings |= of_commands


def _check(settings: dict[str, Any], command: click.Command, context: click.Context, prefix: str) -> None:
    options = {
        option.name: _option_kind(option)
        for option in command.params
        if isinstance(option, click.Option) and option.expose_value
    }
    for name, value in settings.items():
        if name in options:
            settings[name] = _normalize_value(value, f"{prefix}{name}", options[name])
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


def _option_kind(option: click.Option) -> str:
    """Return the kind of value an option takes: `switch`, `one`, `list`, or `ids` (a list or comma-separated)."""
    if option.is_flag:
        return "switch"
    return "list" if option.multiple else "ids" if option.name == "only" else "one"


def _normalize_value(value: object, name: str, kind: str) -> object:
    if isinstance(value, bool) and kind == "switch":
        return value
    if isinstance(value, list) and kind in ("list", "ids") and all(_is_scalar(each) for each in value):
        return [str(each) for each in value]
    if _is_scalar(value):
        return [str(value)] if kind == "list" else str(value)
    raise InputError(f"{path()}: {name}: expected {_EXPECTED[kind]}")


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)
