"""Where results go: a file that appears whole or not at all, or standard output."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import product
from os import PathLike, fspath
from pathlib import Path

from unlost.errors import InputError, UsageError


def is_standard_output(output: Path) -> bool:
    """Return whether `-` was given."""
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
    """Give the path of a file to make, and for `-` print what it holds when the block ends well.

    inputs: what it is made of, which it replaces only with `force`. Raises UsageError before any work if it would,
    InputError if it is a folder, or its folder does not exist.
    """
    reject_in_place([output], inputs, force=force)
    if is_standard_output(output):
        import shutil  # noqa: PLC0415  start-up
        import tempfile  # noqa: PLC0415

        # Not by the name of standard output: opened anew, a file that it was sent to is written from its beginning.
        with tempfile.TemporaryDirectory(prefix="unlost-") as folder:
            aside = Path(folder, "output")
            yield aside
            with aside.open("rb") as file:
                sys.stdout.flush()
                shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
        return
    check_output_file(output)
    yield output


def check_output_file(file: Path | None) -> None:
    """Refuse before any work a file that cannot be written, if there is to be one. Raises InputError."""
    if file is not None and file.is_dir():
        raise InputError(f"{file}: cannot be written: it is a folder: name a file in it")
    if file is not None and not file.absolute().parent.is_dir():
        raise InputError(f"{file}: cannot be written: no such folder: make it first")
