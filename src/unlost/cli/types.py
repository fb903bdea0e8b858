"""Click parameter types and option classes: checked paths, durations, and options that can be set for all commands."""

import os
import re
import stat
import sys
from collections.abc import Mapping
from errno import EACCES, EISDIR, ENOENT, ENOTDIR
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from unlost.cli.messages import STANDARD_INPUT_FILE
from unlost.errors import InputError, UsageError
from unlost.problems import RECOVERY_FOLDER_ADVICE, unreadable_error, unreadable_error_for_errno


class CommonOption(click.Option):
    """An option whose value can be set for all commands, and which a command's own setting overrides.

    Order of precedence: the flag, the command's variable (`UNLOST_COMMAND_NAME`), the variable for all commands
    (`UNLOST_NAME`), the command's own table of `config.toml`, then the table `common`.
    """

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Return the command's variable, else the one for all commands."""
        return super().resolve_envvar_value(ctx) or os.environ.get(f"UNLOST_{str(self.name).upper()}") or None

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        """Return the value and its source."""
        value, source = super().consume_value(ctx, opts)
        common = (ctx.find_root().default_map or {}).get("common", {})
        if source is ParameterSource.DEFAULT and self.name in common:
            return common[self.name], ParameterSource.DEFAULT_MAP
        return value, source


STANDARD_INPUT = "-"
_STDIN_CONSUMED_KEY = "unlost.cli.types.standard_input"


def spool_standard_input(ctx: click.Context | None) -> Path:
    """Return the path of a file with the content of standard input; a pipe is copied to a temporary file first.

    It can then be inspected, searched and read more than once. The temporary file is removed when the command ends.

    Raises:
        InputError: Standard input is closed.
        UsageError: Standard input was already consumed.
    """
    if sys.stdin is None:
        raise InputError("standard input is closed: give a file")
    meta = {} if ctx is None else ctx.meta
    if _STDIN_CONSUMED_KEY in meta:
        raise UsageError("`-` is given more than once: standard input can be read only once")
    meta[_STDIN_CONSUMED_KEY] = True
    number = sys.stdin.fileno()
    if stat.S_ISREG(os.fstat(number).st_mode) and os.lseek(number, 0, os.SEEK_CUR) == 0:
        return Path("/dev/stdin")
    import shutil  # noqa: PLC0415  start-up
    import tempfile  # noqa: PLC0415

    folder = tempfile.TemporaryDirectory(prefix="unlost-")
    if ctx is not None:
        ctx.find_root().call_on_close(folder.cleanup)
    path = Path(folder.name, "stdin")
    meta[STANDARD_INPUT_FILE] = str(path)
    with path.open("wb") as file, os.fdopen(os.dup(number), "rb") as source:
        shutil.copyfileobj(source, file, 1 << 20)
    return path


class AnyPath(click.Path):
    """Path of a file or folder that need not exist.

    An empty one is rejected: `Path` would take it for the current folder.
    """

    def __init__(self, *, file_okay: bool = True, dir_okay: bool = True, readable: bool = True) -> None:
        """Set what an existing path may be."""
        super().__init__(file_okay=file_okay, dir_okay=dir_okay, readable=readable, path_type=Path)

    def convert(self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path. Fails with click's usage error for an empty name."""
        if not os.fspath(value):
            # Such as an unset variable in a script.
            self.fail("expected a name, found nothing", param, ctx)
        return Path(os.fsdecode(super().convert(value, param, ctx)))


class ReadablePath(click.Path):
    """Path that must exist, be of the right kind and be readable. Anything else raises InputError.

    The check precedes all work, and every command reports the same errors. Nothing is opened: a pipe would lose its
    content.
    """

    def __init__(
        self,
        *,
        file: bool = True,
        folder: bool = False,
        allow_stdin: bool = False,
        no_follow: bool = False,
        executable: bool = False,
        hint: str | None = None,
    ) -> None:
        """Set what is accepted.

        Args:
            file: Whether a file is accepted.
            folder: Whether a folder is accepted.
            allow_stdin: Whether `-` is accepted, for standard input.
            no_follow: Whether a symbolic link is accepted without a check of its target.
            executable: Whether it must be executable.
            hint: What to do if it is missing or of the wrong kind.
        """
        super().__init__(file_okay=file, dir_okay=folder, allow_dash=allow_stdin, path_type=Path)
        self._no_follow = no_follow
        self._spools_stdin = not (allow_stdin or no_follow or executable)
        self._access = os.R_OK | os.X_OK if executable else os.R_OK
        self._hint = hint

    def convert(self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path; for `-`, that of standard input. Raises InputError for an unreadable one."""
        del param
        if os.fspath(value) == STANDARD_INPUT and self.file_okay and self._spools_stdin:
            return spool_standard_input(ctx)
        if not os.fspath(value):
            # `Path` would take it for the current folder, but it is usually an unset variable in a script.
            raise unreadable_error_for_errno("''", ENOENT, self._hint)
        path = Path(value)
        if not (self.allow_dash and os.fspath(path) == "-"):
            self._check(path)
        return path

    def _check(self, path: Path) -> None:
        try:
            mode = (path.lstat() if self._no_follow else path.stat()).st_mode
        except PermissionError as error:
            raise unreadable_error(path, error) from None
        except OSError as error:
            raise unreadable_error(path, error, self._hint) from None
        except ValueError:  # a NUL in the name
            raise unreadable_error_for_errno(path, ENOENT, self._hint) from None
        if stat.S_ISDIR(mode) and not self.dir_okay:
            raise unreadable_error_for_errno(path, EISDIR, self._hint)
        if not stat.S_ISDIR(mode) and not self.file_okay:
            raise unreadable_error_for_errno(path, ENOTDIR, self._hint)
        access = os.R_OK | os.X_OK if stat.S_ISDIR(mode) else self._access
        if not stat.S_ISLNK(mode) and not os.access(path, access):
            raise unreadable_error_for_errno(path, EACCES)


class InputReference(click.Path):
    """Name of an input, which the reader checks; for `-`, the path of standard input."""

    def convert(self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name."""
        if os.fspath(value) == STANDARD_INPUT:
            return os.fspath(spool_standard_input(ctx))
        return os.fsdecode(super().convert(value, param, ctx))


READABLE_FILE = ReadablePath()
FILE_OR_STDIN = ReadablePath(allow_stdin=True)
READABLE_FOLDER = ReadablePath(file=False, folder=True)
FILE_OR_FOLDER = ReadablePath(folder=True)
RECOVERY_FOLDER = ReadablePath(file=False, folder=True, hint=RECOVERY_FOLDER_ADVICE)
LOCAL_OR_REMOTE = InputReference(readable=False)
"""On a cluster, a path or URL of any kind. The reader reports errors; click's check would replace its messages."""


_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"(\d{1,6})([smhdw]?)", re.ASCII)


class DurationType(click.ParamType[float]):
    """A duration.

    Args:
        minimum: Shortest duration in seconds.
        maximum: Longest duration in seconds.
    """

    name = "span"

    def __init__(self, minimum: float, maximum: float) -> None:
        self._minimum = minimum
        self._maximum = maximum

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the duration in seconds; a plain number is in days."""
        if isinstance(value, float):
            return value
        match = _DURATION.fullmatch(str(value).strip().lower())
        if match is None:
            self.fail("expected a number with s, m, h, d or w behind it, such as 12h", param, ctx)
        seconds = float(int(match[1]) * _UNIT_SECONDS[match[2] or "d"])
        if not self._minimum <= seconds <= self._maximum:
            self.fail(f"expected {_format_duration(self._minimum)} to {_format_duration(self._maximum)}", param, ctx)
        return seconds


def _format_duration(seconds: float) -> str:
    unit = next(unit for unit in ("w", "d", "h", "m", "s") if seconds % _UNIT_SECONDS[unit] == 0)
    return f"{seconds / _UNIT_SECONDS[unit]:.0f}{unit}"
