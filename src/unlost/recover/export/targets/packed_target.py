"""What zip and tar files have in common: one file that is written from its beginning to its end."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from unlost.archives.bodies.body import new_body, iter_pieces
from unlost.recover.export.targets.entry_paths import WrittenPaths
from unlost.recover.export.targets.new_place import AtomicPath
from unlost.recover.export.targets.whole_target import AtomicTarget


class PackedWriter(Protocol):
    """A format: puts one file behind the other."""

    def add(self, path: str, body: BinaryIO, size: int, modified: str) -> None:
        """Write a file of so many bytes."""
        ...

    def finish(self) -> None:
        """Write what stands at the end."""
        ...

    def abort(self) -> None:
        """Write nothing more, whatever is missing."""
        ...


class PackedTarget(AtomicTarget):
    """A Target that is one file, in a format.

    A path is refused before anything is written of it, and others may follow; behind any other error, nothing can.
    """

    def __init__(self, path: Path, begin: Callable[[BinaryIO], PackedWriter]) -> None:
        self._path = AtomicPath(path)
        self._begin = begin
        self._written_paths = WrittenPaths()
        self._is_broken = False

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._path:
            with self._path.writing() as file:
                self._writer = self._begin(file)
                try:
                    yield
                    self._check_whole()
                    self._writer.finish()
                except BaseException:
                    self._writer.abort()
                    raise
            self._path.publish_file()

    def _check_whole(self) -> None:
        if self._is_broken:
            raise RuntimeError("a file of the target was not written whole, and somebody passed over that")

    def add(self, path: str, body: BinaryIO, modified: str) -> None:
        """Write a file, as Target has it."""
        self._check_whole()
        self._written_paths.add(path)
        self._is_broken = True
        with self._path.explain_os_errors(path), _with_size(body) as (whole, size):
            self._writer.add(path, whole, size, modified)
        self._is_broken = False


@contextmanager
def _with_size(body: BinaryIO) -> Iterator[tuple[BinaryIO, int]]:
    """Give a body, and how many bytes are left of it; one that cannot tell is read to a temporary file first."""
    if body.seekable():
        begin = body.tell()
        size = body.seek(0, os.SEEK_END) - begin
        body.seek(begin)
        yield body, size
        return
    with new_body() as whole:
        for piece in iter_pieces(body):
            whole.write(piece)
        size = whole.tell()
        whole.seek(0)
        yield whole, size
