"""Files and folders as arguments and options: those that are read are looked at before any work, in the same words."""

import os
import stat
from errno import EACCES, EISDIR, ENOENT, ENOTDIR
from pathlib import Path

import click

from unlost.formats.unread import A_RECOVERY, unread, unread_as


class Named(click.Path):
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


class Readable(click.Path):
    """The name of something that is there, is what it should be, and may be read. Anything else raises InputError.

    Nothing is opened: a pipe would lose what is in it.
    """

    def __init__(
        self,
        *,
        file: bool = True,
        folder: bool = False,
        dash: bool = False,
        link: bool = False,
        program: bool = False,
        advice: str | None = None,
    ) -> None:
        """Take what is allowed.

        dash: `-`, for standard input. link: a link is read as one, wherever it leads. program: it is run, too.
        advice: what to do where it is not there or something else.
        """
        super().__init__(file_okay=file, dir_okay=folder, allow_dash=dash, path_type=Path)
        self._is_link_read = link
        self._access = os.R_OK | os.X_OK if program else os.R_OK
        self._advice = advice

    def convert(self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path. Raises InputError for what cannot be read."""
        del param, ctx
        if not os.fspath(value):
            # `Path` would take it for the folder where we are: not what a script meant whose variable is not set.
            raise unread_as("''", ENOENT, self._advice)
        path = Path(value)
        if not (self.allow_dash and os.fspath(path) == "-"):
            self._check(path)
        return path

    def _check(self, path: Path) -> None:
        try:
            mode = (path.lstat() if self._is_link_read else path.stat()).st_mode
        except PermissionError as error:
            raise unread(path, error) from None
        except OSError as error:
            raise unread(path, error, self._advice) from None
        except ValueError:  # a zero in a name
            raise unread_as(path, ENOENT, self._advice) from None
        if stat.S_ISDIR(mode) and not self.dir_okay:
            raise unread_as(path, EISDIR, self._advice)
        if not stat.S_ISDIR(mode) and not self.file_okay:
            raise unread_as(path, ENOTDIR, self._advice)
        access = os.R_OK | os.X_OK if stat.S_ISDIR(mode) else self._access
        if not stat.S_ISLNK(mode) and not os.access(path, access):
            raise unread_as(path, EACCES)


FILE = Readable()
LIST = Readable(dash=True)
FOLDER = Readable(file=False, folder=True)
PLACE = Readable(folder=True)
RECOVERY = Readable(file=False, folder=True, advice=A_RECOVERY)
ANYWHERE = click.Path(readable=False)
"""On a cluster whatever has an address there: who reads it says what is wrong. click would, in words of its own."""
