"""Click parameter types and option classes.

Paths that are checked before any work, time spans, and options that can be set once for all commands.
"""

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


STANDARD_INPUT = "-"
_STDIN_CONSUMED_KEY = "unlost.cli.types.standard_input"


def spool_standard_input(ctx: click.Context | None) -> Path:
    """Return the path of a file with what standard input holds; a pipe is written to a temporary file first.

    So it can be inspected, searched and read more than once, as any other file. The temporary file is removed when the
    command ends. Raises InputError if standard input is closed, UsageError if it was taken already.
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
    """The name of a file or folder, there or not; an empty one, which `Path` takes for where we are, is none."""

    def __init__(self, *, file_okay: bool = True, dir_okay: bool = True, readable: bool = True) -> None:
        """Take what is allowed, of what is there."""
        super().__init__(file_okay=file_okay, dir_okay=dir_okay, readable=readable, path_type=Path)

    def convert(self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path. Raises click's error of usage for no name."""
        if not os.fspath(value):
            # A script's variable that is not set.
            self.fail("expected a name, found nothing", param, ctx)
        return Path(os.fsdecode(super().convert(value, param, ctx)))


class ReadablePath(click.Path):
    """The name of something that is there, is what it should be, and may be read. Anything else raises InputError.

    Nothing is opened: a pipe would lose what is in it.
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
        """Take what is allowed.

        dash: `-`, for standard input. link: a link is read as one, wherever it leads. program: it is run, too.
        advice: what to do where it is not there or something else.
        """
        super().__init__(file_okay=file, dir_okay=folder, allow_dash=allow_stdin, path_type=Path)
        self._no_follow = no_follow
        self._spools_stdin = not (allow_stdin or no_follow or executable)
        self._access = os.R_OK | os.X_OK if executable else os.R_OK
        self._hint = hint

    def convert(self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path; for `-`, that of standard input. Raises InputError for what cannot be read."""
        del param
        if os.fspath(value) == STANDARD_INPUT and self.file_okay and self._spools_stdin:
            return spool_standard_input(ctx)
        if not os.fspath(value):
            # `Path` would take it for the folder where we are: not what a script meant whose variable is not set.
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
        except ValueError:  # a zero in a name
            raise unreadable_error_for_errno(path, ENOENT, self._hint) from None
        if stat.S_ISDIR(mode) and not self.dir_okay:
            raise unreadable_error_for_errno(path, EISDIR, self._hint)
        if not stat.S_ISDIR(mode) and not self.file_okay:
            raise unreadable_error_for_errno(path, ENOTDIR, self._hint)
        access = os.R_OK | os.X_OK if stat.S_ISDIR(mode) else self._access
        if not stat.S_ISLNK(mode) and not os.access(path, access):
            raise unreadable_error_for_errno(path, EACCES)


class InputReference(click.Path):
    """The name of an input, which the reader checks; for `-`, that of standard input."""

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
"""On a cluster whatever has an address there: who reads it says what is wrong. click would, in words of its own."""


_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"(\d{1,6})([smhdw]?)", re.ASCII)


class DurationType(click.ParamType[float]):
    """A span of time. least, most: in seconds."""

    name = "span"

    def __init__(self, minimum: float, maximum: float) -> None:
        self._minimum = minimum
        self._maximum = maximum

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds of a text; a number alone is days."""
        if isinstance(value, float):
            return value
        found = _DURATION.fullmatch(str(value).strip().lower())
        if found is None:
            self.fail("expected a number with s, m, h, d or w behind it, such as 12h", param, ctx)
        seconds = float(int(found[1]) * _UNIT_SECONDS[found[2] or "d"])
        if not self._minimum <= seconds <= self._maximum:
            self.fail(f"expected {_format_duration(self._minimum)} to {_format_duration(self._maximum)}", param, ctx)
        return seconds


def _format_duration(seconds: float) -> str:
    unit = next(unit for unit in ("w", "d", "h", "m", "s") if seconds % _UNIT_SECONDS[unit] == 0)
    return f"{seconds / _UNIT_SECONDS[unit]:.0f}{unit}"
