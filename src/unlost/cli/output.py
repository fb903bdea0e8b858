"""Standard output and output files: lines, tables, JSON Lines, and files that are written atomically."""

import os
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from json import dumps
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from unlost.cli.messages import escape_untrusted
from unlost.errors import InputError, UsageError
from unlost.report.format import ReportTable, escape_unprintable


def is_standard_output(output: Path) -> bool:
    """Return whether the output is `-`."""
    return fspath(output) == "-"


def reject_in_place(outputs: Iterable[Path], inputs: Iterable[str | PathLike[str]], *, force: bool) -> None:
    """Raise UsageError, before any work, if an output is one of the inputs and may not replace it."""
    existing = [] if force else [each for each in outputs if not is_standard_output(each) and each.exists()]
    for output, each in product(existing, inputs):
        try:
            is_same = output.samefile(each)
        except (OSError, ValueError):
            continue  # the reader reports it
        if is_same:
            raise UsageError(f"{output}: would replace an input: give another name, or --force")


@contextmanager
def open_output(output: Path, inputs: Iterable[str | PathLike[str]] = (), *, force: bool = False) -> Iterator[Path]:
    """Yield the path of the file to write; for `-`, print its content when the block succeeds.

    Args:
        output: The file, or `-` for standard output.
        inputs: The files it is made from.
        force: Whether it may replace one of the inputs.

    Raises:
        UsageError: The output would replace an input. Raised before any work.
        InputError: The output is a folder, or its folder does not exist.
    """
    reject_in_place([output], inputs, force=force)
    if is_standard_output(output):
        import shutil  # noqa: PLC0415  start-up
        import tempfile  # noqa: PLC0415

        # Not via /dev/stdout: opening it again would overwrite a redirected file from its beginning.
        with tempfile.TemporaryDirectory(prefix="unlost-") as folder:
            temporary_file = Path(folder, "output")
            yield temporary_file
            with temporary_file.open("rb") as file:
                sys.stdout.flush()
                shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
        return
    check_output_file(output)
    yield output


def check_output_file(file: Path | None) -> None:
    """Raise InputError, before any work, if a file is given that cannot be written."""
    if file is not None and file.is_dir():
        raise InputError(f"{file}: cannot be written: it is a folder: name a file in it")
    if file is not None and not file.absolute().parent.is_dir():
        raise InputError(f"{file}: cannot be written: no such folder: make it first")


def json_line(**fields: Any) -> str:  # noqa: ANN401  any JSON value
    """Return an object as a line of JSON."""
    return dumps(fields) + "\n"


def write_lines(lines: list[str]) -> None:
    """Write lines to standard output in one call."""
    if lines:
        # Bytes, whatever the terminal's encoding: a URL that is not UTF-8 is printed verbatim.
        sys.stdout.buffer.write("".join(lines).encode("utf-8", "surrogateescape"))
        sys.stdout.flush()


def print_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows as a table with headers on a terminal, and elsewhere as TSV without headers.

    Control characters are escaped, so that no cell affects the terminal or spans two lines.
    """
    safe = [[escape_untrusted(os.fsencode(cell), None) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        write_lines(["\t".join(row).rstrip("\t") + "\n" for row in safe])
        return
    from rich.console import Console  # noqa: PLC0415  only for tables
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(*headers)
    for row in safe:
        table.add_row(*(Text(cell, overflow="fold") for cell in row))
    Console().print(table)


def format_columns(
    heads: Sequence[str], rows: Sequence[Sequence[str]], left_aligned: Collection[int] = frozenset({0})
) -> list[str]:
    """Return a table as lines of text: columns of words aligned left (by default the first), numbers right."""
    widths = [max(len(row[index]) for row in (heads, *rows)) for index in range(len(heads))]
    return [
        "  ".join(
            cell.ljust(width) if index in left_aligned else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (heads, *rows)
    ]


def format_tables(tables: Iterable[ReportTable]) -> Iterator[str]:
    """Yield tables as lines of text, each after an empty line. Control characters are escaped."""
    for table in tables:
        heads = [escape_unprintable(head) for head in table.heads]
        rows = [[escape_unprintable(cell) for cell in row] for row in table.rows]
        yield from ("", escape_unprintable(table.title), *format_columns(heads, rows, table.words))


def reject_stdout_conflict(output: Path, json: bool) -> None:
    """Raise UsageError, before any work, if both the map and the result would go to standard output."""
    if json and is_standard_output(output):
        raise UsageError("--json and -o - would both be written to standard output: give the map a name")
