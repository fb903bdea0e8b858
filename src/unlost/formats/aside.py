"""Files that appear whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def written_aside(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write to that takes its name, and the place of a file that had it, only once it is complete.

    If writing fails, nothing is left and a file of that name is as it was. Until then it is beside it, as `NAME.new`.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with written_aside(Path(folder, "a.txt")) as file:
    ...         _ = file.write(b"text")
    ...     Path(folder, "a.txt").read_text()
    'text'
    """
    aside = path.with_name(path.name + ".new")
    try:
        with aside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
