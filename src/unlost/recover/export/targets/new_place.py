"""A name for something new: it is made beside that name, and gets it once it is whole."""

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter, FileIO
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from unlost.errors import InputError, UsageError

TEMPORARY_SUFFIX = ".unlost-part"
"""What the names end with of what is being made. Where a kill left one behind, it can be deleted."""

_MAX_NAME_PREFIX = 50  # characters of a name in that of what is being made: it must be no longer than names can be
_BUFFER = 1 << 20  # bytes
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EINVAL)


class AtomicPath:
    """A name in a folder that nothing has. Use it as a context manager, and make something under `aside`.

    When the block ends well, call `name_file` or `name_folder` before; whatever still has the name `aside` at its end
    is removed. The folder is opened once, so whatever its own name comes to mean, all stays in it.

    path: as it was given. aside: the name to make it under. folder: what both names are in, open.
    """

    def __init__(self, path: Path, *, allow_empty_folder: bool = False) -> None:
        """Begin with a path. or_empty_folder: whether a folder without anything in it may be in the place."""
        if path.name in ("", ".."):
            raise UsageError(f"{path}: expected the name of something new in a folder")
        self.path = path
        self.temporary_name = f".{path.name[:_MAX_NAME_PREFIX]}.{os.urandom(8).hex()}{TEMPORARY_SUFFIX}"
        self.folder = -1
        self._allow_empty_folder = allow_empty_folder

    @property
    def temporary_path(self) -> Path:
        """The path of what is being made."""
        return self.path.parent / self.temporary_name

    def __enter__(self) -> Self:
        """Open the folder. Raises InputError if there is none, or something is in the place, OSError."""
        with self.explain_os_errors():
            try:
                self.folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except (FileNotFoundError, NotADirectoryError):
                raise InputError(f"{self.path}: cannot be written: no such folder: {self.path.parent}") from None
        try:
            self._check_free()
        except BaseException:
            os.close(self.folder)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Remove what did not get its name, and close the folder."""
        try:
            self._remove()
        finally:
            os.close(self.folder)

    @contextmanager
    def explain_os_errors(self, path: str | None = None) -> Iterator[None]:
        """Say in errors of the system what could not be written: a path in the place, or the place itself."""
        try:
            yield
        except OSError as error:
            said = os.fspath(self.path if path is None else self.path / path)
            raise OSError(error.errno, error.strerror or str(error), said) from error

    def _check_free(self) -> None:
        try:
            found = os.stat(self.path.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return
        except OSError as error:
            raise OSError(error.errno, error.strerror, os.fspath(self.path)) from error
        if stat.S_ISLNK(found.st_mode):
            raise InputError(f"{self.path}: a link, which is not followed: remove it, or give another name")
        if not stat.S_ISDIR(found.st_mode) or not self._allow_empty_folder:
            raise self._exists_error()
        self._check_empty()

    def _check_empty(self) -> None:
        """Raise InputError for a folder that has something in it."""
        with self.explain_os_errors():
            opened = os.open(self.path.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=self.folder)
            try:
                with os.scandir(opened) as entries:
                    if next(entries, None) is not None:
                        raise InputError(f"{self.path}: a folder with something in it: empty it, or give another name")
            finally:
                os.close(opened)

    def _exists_error(self) -> InputError:
        return InputError(f"{self.path}: there already: move it away, or give another name")

    def open_file(self) -> int:
        """Make an empty file under the name `aside`, and return it open to read and write."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with self.explain_os_errors():
            return os.open(self.temporary_name, flags, 0o666, dir_fd=self.folder)

    @contextmanager
    def writing(self) -> Iterator[BinaryIO]:
        """Give a new file under the name `aside`, which is on the disk when the block has ended well."""
        file = BufferedWriter(FileIO(self.open_file(), "wb"), _BUFFER)
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
        except BaseException as error:
            # Without writing what is still to be written: on a full disk, that would fail again.
            file.raw.close()
            if isinstance(error, OSError) and error.filename is None:
                error.filename = os.fspath(self.path)
            raise
        finally:
            file.close()

    def make_folder(self) -> int:
        """Make an empty folder under the name `aside`, and return it open."""
        with self.explain_os_errors():
            os.mkdir(self.temporary_name, dir_fd=self.folder)
            return os.open(
                self.temporary_name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.folder
            )

    def publish_file(self) -> None:
        """Give the file its name, which it has for good also if the power goes. It must be on the disk already.

        Raises InputError if something has come to be in the place.
        """
        with self.explain_os_errors():
            try:
                # Unlike a rename, a link replaces nothing that came meanwhile.
                os.link(
                    self.temporary_name,
                    self.path.name,
                    src_dir_fd=self.folder,
                    dst_dir_fd=self.folder,
                    follow_symlinks=False,
                )
            except FileExistsError:
                raise self._exists_error() from None
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                self._check_absent()
                os.rename(self.temporary_name, self.path.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
            self._sync()

    def _check_absent(self) -> None:
        with suppress(FileNotFoundError):
            os.stat(self.path.name, dir_fd=self.folder, follow_symlinks=False)
            raise self._exists_error()

    def publish_folder(self, opened: int) -> None:
        """Give the folder its name. Raises as `name_file`; an empty folder in the place is replaced, its mode kept.

        opened: the folder.
        """
        with self.explain_os_errors():
            try:
                before = os.stat(self.path.name, dir_fd=self.folder, follow_symlinks=False)
                if stat.S_ISDIR(before.st_mode):
                    os.fchmod(opened, stat.S_IMODE(before.st_mode))
            except FileNotFoundError:
                pass
            try:
                os.rename(self.temporary_name, self.path.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
            except OSError as error:
                if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                    raise self._exists_error() from None
                raise
            self._sync()

    def _sync(self) -> None:
        with suppress(OSError):  # not every file system can; then a loss of power takes the name at most
            os.fsync(self.folder)

    def _remove(self) -> None:
        """Remove what is under the name `aside`; no link in it is followed."""
        try:
            os.unlink(self.temporary_name, dir_fd=self.folder)
        except FileNotFoundError:
            pass
        except OSError:
            shutil.rmtree(self.temporary_name, ignore_errors=True, dir_fd=self.folder)
