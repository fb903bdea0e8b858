"""Files that appear whole or not at all."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to write that gets its name only when the block ends well; otherwise nothing is left behind.

    What stood under the name before stays until then. A link is followed; a device or a pipe is written to as it is,
    since a file in its place would break it for everybody. Raises OSError as `open` does.
    """
    with whole_files([path]) as (file,):
        yield file


@contextmanager
def whole_files(paths: Sequence[str | os.PathLike[str]]) -> Iterator[list[BinaryIO]]:
    """Open files as `whole_file` does, none of which gets its name before all of them are on the disk."""
    asides: list[tuple[Path, Path]] = []
    try:
        with ExitStack() as stack:
            files = [stack.enter_context(_opened(Path(path), asides)) for path in paths]
            yield files
            for file in files:
                file.flush()
                if os.path.isfile(file.fileno()):  # noqa: PTH113  it may have no name yet
                    os.fsync(file.fileno())
        # mkstemp makes private files; a result has the mode of any other new file.
        mask = os.umask(0)
        os.umask(mask)
        for aside, _ in asides:
            aside.chmod(0o666 & ~mask)
        for aside, target in asides:
            aside.replace(target)
    except BaseException:
        for aside, _ in asides:
            aside.unlink(missing_ok=True)
        raise


def _opened(given: Path, asides: list[tuple[Path, Path]]) -> BinaryIO:
    if given.exists() and not given.is_file():
        return given.open("wb")
    target = given.resolve()
    handle, aside = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    asides.append((Path(aside), target))
    return os.fdopen(handle, "wb", buffering=1 << 20)
