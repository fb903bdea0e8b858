"""The pages that look-ups are asked for: arguments, standard input, lists."""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import click

from unlost.cli import lines
from unlost.cli.readable import FILE_OR_STDIN
from unlost.errors import UsageError
from unlost.formats.problems import Problems
from unlost.formats.textfile import read_lines

_BATCH_SIZE = 20_000  # addresses at a time: enough to keep all processors busy, and little memory
_BOM = b"\xef\xbb\xbf"

_Command = TypeVar("_Command", bound=Callable[..., Any])


def url_arguments(command: _Command) -> _Command:
    """Give a command the arguments `addresses` and the option `batch`."""
    with_batch = click.option(
        "--batch",
        type=FILE_OR_STDIN,
        help="A list of addresses, one a line, plain, gzip or zstd; `-` for standard input.",
    )
    return click.argument("addresses", metavar="[URL...]", nargs=-1)(with_batch(command))


def read_url_batches(
    addresses: tuple[str, ...], batch: Path | None, problems: Problems
) -> Iterator[list[lines.InputLine]]:
    """Return the pages in batches, as soon as they come. Raises UsageError, at once, if there is nothing to ask for."""
    if not addresses and batch is None:
        raise UsageError("nothing to look up: expected URLs, or a list of them with --batch")
    return _iterate_batches(addresses, batch, problems)


def _iterate_batches(
    addresses: tuple[str, ...], batch: Path | None, problems: Problems
) -> Iterator[list[lines.InputLine]]:
    from_stdin = batch == Path("-")
    for each in lines.read_batches((*addresses, "-") if from_stdin else addresses):
        yield [line for line in each if not line.text.startswith(b"#")]
    if batch is not None and not from_stdin:
        found = _read_list(batch, problems)
        while some := list(islice(found, _BATCH_SIZE)):
            yield some


def _read_list(file: Path, problems: Problems) -> Iterator[lines.InputLine]:
    """Yield the addresses of a list; blank lines and those that begin with `#` are passed over."""
    for line in read_lines(file, problems):
        text = (line.text.removeprefix(_BOM) if line.number == 1 else line.text).strip()
        if text and not text.startswith(b"#"):
            yield lines.InputLine(f"{file}:{line.number}: ", text)
