"""What all commands do with addresses that they were given: name the bad ones, write results as they are."""

import sys
from collections.abc import Callable
from json import dumps
from os import fsencode
from typing import Any, TypeVar

from unlost.cli.lines import Line
from unlost.cli.messages import say, shown
from unlost.cli.problems import SKIPPED_INPUT
from unlost.errors import DateError, ForeignSchemeError, UriError, UsageError

_Meant = TypeVar("_Meant")


def meant(text: str, read: Callable[[str], _Meant], option: str = "") -> _Meant:
    """Return what somebody means who wrote an address or a date on the command line. option: where, if in one.

    read: returns it, or raises UriError or DateError. Raises UsageError then: the command is wrong, not a file.
    """
    try:
        return read(text)
    except (UriError, DateError) as error:
        raise UsageError(_told(option or shown(fsencode(text)), error)) from error


def _told(what: str, error: Exception) -> str:
    """Return what is wrong behind what it is wrong with, if that can be seen at all."""
    return f"{what}: {error}" if what else str(error)


def report(line: Line, error: UriError) -> int:
    """Say in one line what is wrong with an address; return the exit code that it calls for.

    On the command line it is a mistake of usage, in what was read one of the input.
    """
    foreign = isinstance(error, ForeignSchemeError)
    level = "note" if foreign else "error"
    text = shown(line.text)
    say(f"{line.place}{_told(text, error)}", level=level, kind=error.kind, uri=text)
    if foreign:
        return 0
    return SKIPPED_INPUT if line.place else UsageError.exit_code


def error_object(given: str, line: Line, error: UriError) -> str:
    """Return the line that stands for a bad address in JSON."""
    problem = {"kind": error.kind, "message": str(error)}
    if isinstance(error, ForeignSchemeError):
        problem["scheme"] = error.scheme
    return json_line(**{given: line.decoded(), "error": problem})


def json_line(**fields: Any) -> str:  # noqa: ANN401  whatever JSON can hold
    """Return an object as a line."""
    return dumps(fields) + "\n"


def write(out: list[str]) -> None:
    """Write lines to standard output, at once."""
    if out:
        # Bytes, whatever the terminal's encoding: an address that is not UTF-8 leaves as it came.
        sys.stdout.buffer.write("".join(out).encode("utf-8", "surrogateescape"))
        sys.stdout.flush()
