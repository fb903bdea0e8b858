"""Files that appear whole or not at all."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the path of an empty file to write, which gets its name only when the block ends well.

    Otherwise nothing is left behind. What stood under the name before stays until then, and the new file gets its mode.
    A link is followed; a device or a pipe is written to as it is, since a file in its place would break it for
    everybody. Raises OSError as `open` does, also for a full disk, with the name of the file.
    """
    given = Path(path)
    try:
        with _aside(given) as aside:
            yield aside
    except OSError as error:
        if error.filename is None:
            error.filename = str(given)
        raise


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to write that gets its name only when the block ends well, as `whole_path` has it."""
    with whole_path(path) as aside, aside.open("wb", buffering=1 << 20) as file:
        yield file


@contextmanager
def _aside(given: Path) -> Iterator[Path]:
    try:
        before = given.stat()
    except FileNotFoundError:
        before = None
    if before and not stat.S_ISREG(before.st_mode):
        yield given
        return
    target = given.resolve()
    # No longer than a name may be, whatever the target's is.
    aside = target.with_name(f".{target.name[:50]}.{secrets.token_hex(8)}.part")
    try:
        os.close(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(given)) from error
    try:
        if before:
            aside.chmod(stat.S_IMODE(before.st_mode))
        yield aside
        with aside.open("rb+") as file:
            os.fsync(file.fileno())
        aside.replace(target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
