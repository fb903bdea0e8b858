"""Files that appear whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to write that gets its name only when the block ends well; otherwise nothing is left behind.

    What stood under the name before stays until then. A link is followed; a device or a pipe is written to as it is,
    since a file in its place would break it for everybody. Raises OSError as `open` does.
    """
    given = Path(path)
    if given.exists() and not given.is_file():
        with given.open("wb") as file:
            yield file
        return
    target = given.resolve()
    handle, aside = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb", buffering=1 << 20) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes private files; a result has the mode of any other new file.
        mask = os.umask(0)
        os.umask(mask)
        Path(aside).chmod(0o666 & ~mask)
        Path(aside).replace(target)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise
