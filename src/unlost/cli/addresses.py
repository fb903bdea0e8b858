"""What all commands do with addresses that they were given: name the bad ones, write results as they are."""

import sys
from collections.abc import Callable
from json import dumps
from os import fsencode
from typing import Any, TypeVar

from unlost.cli.lines import InputLine
from unlost.cli.messages import say, escape_untrusted
from unlost.cli.problems import EXIT_SKIPPED_INPUT
from unlost.errors import DateError, ForeignSchemeError, UriError, UsageError

_Parsed = TypeVar("_Parsed")


def parse_argument(text: str, parse: Callable[[str], _Parsed], option: str = "") -> _Parsed:
    """Return what somebody means who wrote an address or a date on the command line. option: where, if in one.

    read: returns it, or raises UriError or DateError. Raises UsageError then: the command is wrong, not a file.
    """
    try:
        return parse(text)
    except (UriError, DateError) as error:
        raise UsageError(_with_subject(option or escape_untrusted(fsencode(text)), error)) from error


def _with_subject(what: str, error: Exception) -> str:
    """Return what is wrong behind what it is wrong with, if that can be seen at all."""
    return f"{what}: {error}" if what else str(error)


def report_uri_error(line: InputLine, error: UriError) -> int:
    """Say in one line what is wrong with an address; return the exit code that it calls for.

    On the command line it is a mistake of usage, in what was read one of the input.
    """
    foreign = isinstance(error, ForeignSchemeError)
    level = "note" if foreign else "error"
    text = escape_untrusted(line.text)
    say(f"{line.location}{_with_subject(text, error)}", level=level, kind=error.kind, uri=text)
    if foreign:
        return 0
    return EXIT_SKIPPED_INPUT if line.location else UsageError.exit_code


def uri_error_line(field: str, line: InputLine, error: UriError) -> str:
    """Return the line that stands for a bad address in JSON."""
    problem = {"kind": error.kind, "message": str(error)}
    if isinstance(error, ForeignSchemeError):
        problem["scheme"] = error.scheme
    return json_line(**{field: line.decode(), "error": problem})


def json_line(**fields: Any) -> str:  # noqa: ANN401  whatever JSON can hold
    """Return an object as a line."""
    return dumps(fields) + "\n"


def write_lines(lines: list[str]) -> None:
    """Write lines to standard output, at once."""
    if lines:
        # Bytes, whatever the terminal's encoding: an address that is not UTF-8 leaves as it came.
        sys.stdout.buffer.write("".join(lines).encode("utf-8", "surrogateescape"))
        sys.stdout.flush()
