"""URL arguments, URL lists and standard input, read in batches with bounded memory, and reports of invalid URLs."""

import os
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from os import fsencode
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from unlost.cli.messages import escape_untrusted, say
from unlost.cli.output import json_line
from unlost.cli.problems import EXIT_SKIPPED_INPUT
from unlost.cli.types import FILE_OR_STDIN
from unlost.errors import DateError, ForeignSchemeError, InputError, UriError, UsageError
from unlost.problems import Problems
from unlost.text_lines import read_lines
from unlost.uri import MAX_URI_BYTES

_READ_BYTES = 1 << 18  # per read: large enough for speed, small enough that a pipe's reader sees results at once
_BOM = b"\xef\xbb\xbf"


class InputLine(NamedTuple):
    """One input line: its location (empty for an argument) and its bytes."""

    location: str
    text: bytes

    def decode(self) -> str:
        """Return the line as text that can be encoded again: bytes that are not UTF-8 become surrogate escapes."""
        return self.text.decode("utf-8", "surrogateescape")


def read_batches(arguments: tuple[str, ...]) -> Iterator[list[InputLine]]:
    """Yield the arguments, with each `-` replaced by the non-blank lines of standard input.

    A line that is too long for a URL is cut to one byte more than the limit, so that the parser rejects it.
    """
    for argument in arguments:
        if argument == "-":
            yield from _standard_input()
        else:
            yield [InputLine("", os.fsencode(argument))]


def _standard_input() -> Iterator[list[InputLine]]:
    if sys.stdin is None:
        raise InputError("standard input is closed")
    number = 0
    rest = b""
    skipping = False
    while data := os.read(sys.stdin.fileno(), _READ_BYTES):
        *complete, rest = (rest + data).split(b"\n")
        batch = []
        for i, text in enumerate(complete):
            number += 1
            line = text.removeprefix(_BOM).strip() if number == 1 else text.strip()
            if line and not (skipping and i == 0):
                batch.append(InputLine(f"<stdin>:{number}: ", line[: MAX_URI_BYTES + 1]))
        if complete:
            skipping = False
        if len(rest) > MAX_URI_BYTES:
            if not skipping:
                batch.append(InputLine(f"<stdin>:{number + 1}: ", rest[: MAX_URI_BYTES + 1]))
            skipping = True
            rest = b""
        yield batch
    last = rest.removeprefix(_BOM).strip() if number == 0 else rest.strip()
    if last and not skipping:
        yield [InputLine(f"<stdin>:{number + 1}: ", last)]


_Parsed = TypeVar("_Parsed")


def parse_argument(text: str, parse: Callable[[str], _Parsed], option: str = "") -> _Parsed:
    """Parse a URL or date given on the command line.

    Args:
        text: The argument.
        parse: Returns the value, or raises UriError or DateError.
        option: Name of the option to show in the message, if it was not a plain argument.

    Raises:
        UsageError: `parse` failed. The command is wrong, not a file.
    """
    try:
        return parse(text)
    except (UriError, DateError) as error:
        raise UsageError(_with_subject(option or escape_untrusted(fsencode(text)), error)) from error


def _with_subject(subject: str, error: Exception) -> str:
    """Prefix an error message with its subject, unless that is empty."""
    return f"{subject}: {error}" if subject else str(error)


def report_uri_error(line: InputLine, error: UriError) -> int:
    """Print a message about an invalid URL, and return the exit code for it.

    On the command line it is a usage error; in a file or on standard input it is skipped input.
    """
    is_foreign = isinstance(error, ForeignSchemeError)
    level = "note" if is_foreign else "error"
    text = escape_untrusted(line.text)
    say(f"{line.location}{_with_subject(text, error)}", level=level, kind=error.kind, uri=text)
    if is_foreign:
        return 0
    return EXIT_SKIPPED_INPUT if line.location else UsageError.exit_code


def uri_error_line(field: str, line: InputLine, error: UriError) -> str:
    """Return the JSON line that reports an invalid URL."""
    problem = {"kind": error.kind, "message": str(error)}
    if isinstance(error, ForeignSchemeError):
        problem["scheme"] = error.scheme
    return json_line(**{field: line.decode(), "error": problem})


_BATCH_SIZE = 20_000  # URLs per batch: enough to keep all processors busy, with little memory
_Command = TypeVar("_Command", bound=Callable[..., Any])


def url_arguments(command: _Command) -> _Command:
    """Add the argument `addresses` and the option `batch` to a command."""
    with_batch = click.option(
        "--batch",
        type=FILE_OR_STDIN,
        metavar="FILE",
        help="Look up the URLs in FILE, one per line, plain, gzip or zstd; `-` is standard input.",
    )
    return click.argument("addresses", metavar="[URL...]", nargs=-1)(with_batch(command))


def read_url_batches(addresses: tuple[str, ...], batch: Path | None, problems: Problems) -> Iterator[list[InputLine]]:
    """Return the URLs in batches, as soon as they are read. Raises UsageError at once if there are none to look up."""
    if not addresses and batch is None:
        raise UsageError("nothing to look up: expected URLs, or a list of them with --batch")
    return _iterate_batches(addresses, batch, problems)


def _iterate_batches(addresses: tuple[str, ...], batch: Path | None, problems: Problems) -> Iterator[list[InputLine]]:
    from_stdin = batch == Path("-")
    for lines_batch in read_batches((*addresses, "-") if from_stdin else addresses):
        yield [line for line in lines_batch if not line.text.startswith(b"#")]
    if batch is not None and not from_stdin:
        lines = _read_list(batch, problems)
        while batch_lines := list(islice(lines, _BATCH_SIZE)):
            yield batch_lines


def _read_list(file: Path, problems: Problems) -> Iterator[InputLine]:
    """Yield the URLs of a list, without blank lines and lines that begin with `#`."""
    for line in read_lines(file, problems):
        text = (line.text.removeprefix(_BOM) if line.number == 1 else line.text).strip()
        if text and not text.startswith(b"#"):
            yield InputLine(f"{file}:{line.number}: ", text)
