"""What is said of a file that cannot be read at all."""

from os import PathLike, fspath

from unlost.errors import InputError


def unread(path: str | PathLike[str], error: OSError) -> InputError:
    """Return what to raise: the file's name, and the system's words without the number that the core puts behind them.

    >>> unread("lost.cdxj", FileNotFoundError("No such file or directory (os error 2)"))
    InputError('lost.cdxj: cannot be read: No such file or directory')
    """
    words = error.strerror or str(error).partition(" (os error")[0]
    return InputError(f"{fspath(path)}: cannot be read: {words}")
