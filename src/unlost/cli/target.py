"""Where results go: a file that appears whole or not at all, or standard output."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from os import fspath
from pathlib import Path

from unlost.errors import InputError


def is_standard_output(output: Path) -> bool:
    """Return whether `-` was given."""
    return fspath(output) == "-"


@contextmanager
def writable(output: Path) -> Iterator[Path]:
    """Give the path of a file to make, and for `-` print what it holds when the block ends well.

    Raises InputError before any work if it is a folder, or its folder does not exist.
    """
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
    check_new_file(output)
    yield output


def check_new_file(file: Path | None) -> None:
    """Refuse before any work a file that cannot be written, if there is to be one. Raises InputError."""
    if file is not None and file.is_dir():
        raise InputError(f"{file}: cannot be written: it is a folder: name a file in it")
    if file is not None and not file.absolute().parent.is_dir():
        raise InputError(f"{file}: cannot be written: no such folder: make it first")
