"""URL arguments, lists of URLs and standard input, read as batches of lines in bounded memory.

Reports of invalid URLs.
"""

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

_READ_BYTES = 1 << 18  # at a time: large enough for speed, small enough that a pipe's reader sees results at once
_BOM = b"\xef\xbb\xbf"


class InputLine(NamedTuple):
    """One input: where it came from (empty for an argument), and its bytes."""

    location: str
    text: bytes

    def decode(self) -> str:
        """Return the bytes as text that can be turned back, also where they are not UTF-8."""
        return self.text.decode("utf-8", "surrogateescape")


def read_batches(arguments: tuple[str, ...]) -> Iterator[list[InputLine]]:
    """Yield the arguments, and in the place of each `-` the lines of standard input, blank ones left out.

    A line that is too long to be an address comes cut, one byte longer than allowed, so that it is refused.
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


_BATCH_SIZE = 20_000  # addresses at a time: enough to keep all processors busy, and little memory
_Command = TypeVar("_Command", bound=Callable[..., Any])


def url_arguments(command: _Command) -> _Command:
    """Give a command the arguments `addresses` and the option `batch`."""
    with_batch = click.option(
        "--batch",
        type=FILE_OR_STDIN,
        help="A list of addresses, one a line, plain, gzip or zstd; `-` for standard input.",
    )
    return click.argument("addresses", metavar="[URL...]", nargs=-1)(with_batch(command))


def read_url_batches(addresses: tuple[str, ...], batch: Path | None, problems: Problems) -> Iterator[list[InputLine]]:
    """Return the pages in batches, as soon as they come. Raises UsageError, at once, if there is nothing to ask for."""
    if not addresses and batch is None:
        raise UsageError("nothing to look up: expected URLs, or a list of them with --batch")
    return _iterate_batches(addresses, batch, problems)


def _iterate_batches(addresses: tuple[str, ...], batch: Path | None, problems: Problems) -> Iterator[list[InputLine]]:
    from_stdin = batch == Path("-")
    for each in read_batches((*addresses, "-") if from_stdin else addresses):
        yield [line for line in each if not line.text.startswith(b"#")]
    if batch is not None and not from_stdin:
        found = _read_list(batch, problems)
        while some := list(islice(found, _BATCH_SIZE)):
            yield some


def _read_list(file: Path, problems: Problems) -> Iterator[InputLine]:
    """Yield the addresses of a list; blank lines and those that begin with `#` are passed over."""
    for line in read_lines(file, problems):
        text = (line.text.removeprefix(_BOM) if line.number == 1 else line.text).strip()
        if text and not text.startswith(b"#"):
            yield InputLine(f"{file}:{line.number}: ", text)
