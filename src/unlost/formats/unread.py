"""What is said of a file or folder that cannot be read at all: everywhere the same."""

import re
from errno import EACCES, EISDIR, ENOENT, ENOTDIR, EPERM, ESPIPE
from os import PathLike, fspath, strerror
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from unlost.errors import InputError

RECOVERY_FOLDER_ADVICE = "give the folder of a recovery, such as lost.example.recovery"
"""What to do where one was wanted."""

_CORE_ERRNO = re.compile(
    r" \(os error (\d+)\)"
)  # how the core ends what the system says: its errors have no number else
_ADVICE = {
    ENOENT: "check the name",
    ENOTDIR: "check the name",
    EISDIR: "name a file",
    EACCES: "change its rights, or ask whoever it belongs to",
    EPERM: "change its rights, or ask whoever it belongs to",
    ESPIPE: "a pipe can be read only once, so write it to a file first",
}


def unreadable_error(path: str | PathLike[str], error: OSError, advice: str | None = None) -> InputError:
    """Return what to raise: the file's name, the system's words without the number that the core puts behind them.

    Then what to do: `advice`, for what a file of that kind is made by, else what there is to say of any file.

    >>> unread("lost.cdxj", FileNotFoundError("No such file or directory (os error 2)"))
    InputError('lost.cdxj: cannot be read: No such file or directory: check the name')
    """
    told = _CORE_ERRNO.search(str(error))
    words = error.strerror or _CORE_ERRNO.sub("", str(error))
    what_to_do = advice or _ADVICE.get(error.errno or int(told[1] if told else 0))
    return InputError(f"{fspath(path)}: cannot be read: {words}{f': {what_to_do}' if what_to_do else ''}")


def unreadable_error_for_errno(path: str | PathLike[str], errno: int, advice: str | None = None) -> InputError:
    """Return the same for what nobody tried to read since it is known to fail. number: of the system's errors.

    >>> unread_as("lost.cdxj", EISDIR)
    InputError('lost.cdxj: cannot be read: Is a directory: name a file')
    """
    return unreadable_error(path, OSError(errno, strerror(errno)), advice)


def require_rereadable(path: str | PathLike[str]) -> None:
    """Raise InputError for what can be read only once, such as a pipe: what was looked at would be gone."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return  # whoever reads it says why it cannot be
    if S_ISDIR(mode):
        raise unreadable_error_for_errno(path, EISDIR)
    if not S_ISREG(mode):
        raise InputError(f"{fspath(path)}: not a regular file: it is read more than once, so write it to one first")
