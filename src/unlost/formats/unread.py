"""What is said of a file or folder that cannot be read at all: everywhere the same."""

from errno import EACCES, EISDIR, ENOENT, ENOTDIR, EPERM
from os import PathLike, fspath, strerror

from unlost.errors import InputError

A_RECOVERY = "give the folder of a recovery, such as lost.example.recovery"
"""What to do where one was wanted."""

_KINDS = {FileNotFoundError: ENOENT, IsADirectoryError: EISDIR, NotADirectoryError: ENOTDIR, PermissionError: EACCES}
_ADVICE = {
    ENOENT: "check the name",
    ENOTDIR: "check the name",
    EISDIR: "name a file",
    EACCES: "change its rights, or ask whoever it belongs to",
    EPERM: "change its rights, or ask whoever it belongs to",
}


def unread(path: str | PathLike[str], error: OSError, advice: str | None = None) -> InputError:
    """Return what to raise: the file's name, the system's words without the number that the core puts behind them.

    Then what to do: `advice`, for what a file of that kind is made by, else what there is to say of any file.

    >>> unread("lost.cdxj", FileNotFoundError("No such file or directory (os error 2)"))
    InputError('lost.cdxj: cannot be read: No such file or directory: check the name')
    """
    words = error.strerror or str(error).partition(" (os error")[0]
    # The core tells the kind alone.
    number = error.errno or next((number for kind, number in _KINDS.items() if isinstance(error, kind)), 0)
    what_to_do = advice or _ADVICE.get(number)
    return InputError(f"{fspath(path)}: cannot be read: {words}{f': {what_to_do}' if what_to_do else ''}")


def unread_as(path: str | PathLike[str], number: int, advice: str | None = None) -> InputError:
    """Return the same for what nobody tried to read since it is known to fail. number: of the system's errors.

    >>> unread_as("lost.cdxj", EISDIR)
    InputError('lost.cdxj: cannot be read: Is a directory: name a file')
    """
    return unread(path, OSError(number, strerror(number)), advice)
