"""Files that appear whole or not at all."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to write that gets its name only when the block ends well; otherwise nothing is left behind.

    What stood under the name before stays until then, and the new file gets its mode. A link is followed; a device or a
    pipe is written to as it is, since a file in its place would break it for everybody. Raises OSError as `open` does,
    also for a full disk, with the name of the file.
    """
    given = Path(path)
    try:
        with _opened(given) as file:
            yield file
    except OSError as error:
        if error.filename is None:
            error.filename = str(given)
        raise


@contextmanager
def _opened(given: Path) -> Iterator[BinaryIO]:
    try:
        before = given.stat()
    except FileNotFoundError:
        before = None
    if before and not stat.S_ISREG(before.st_mode):
        with given.open("wb") as file:
            yield file
        return
    target = given.resolve()
    # No longer than a name may be, whatever the target's is.
    aside = target.with_name(f".{target.name[:50]}.{secrets.token_hex(8)}.part")
    try:
        handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(given)) from error
    try:
        with os.fdopen(handle, "wb", buffering=1 << 20) as file:
            if before:
                os.fchmod(handle, stat.S_IMODE(before.st_mode))
            yield file
            file.flush()
            os.fsync(handle)
        aside.replace(target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
