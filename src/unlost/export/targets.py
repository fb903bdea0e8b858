"""Targets of an export, written atomically: the protocol, validation of paths, and folders.

`formats` lists the targets; `open_target` there opens the target of a path.
"""

import errno
import os
import re
import shutil
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from io import BufferedWriter, FileIO
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Protocol, Self

from unlost import dates
from unlost.errors import InputError, UsageError
from unlost.http.models import iter_pieces


class ExportTarget(Protocol):
    """A folder or archive file that is being written. Use it as a context manager.

    It gets its final name when the block ends without an exception. After an exception nothing is left under that name,
    and what existed before is unchanged.
    """

    def __enter__(self) -> Self:
        """Start writing. Raises InputError if the path exists, OSError if it cannot be written."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Publish the target, or remove it after an exception."""
        ...

    def add(self, path: str, body: BinaryIO, modified: str) -> None:
        """Write a file.

        Args:
            path: Relative path with slashes.
            body: The content, which is read to the end.
            modified: Modification time of the file, 14 digits.

        Raises:
            UsageError: The path is invalid, escapes the target, or was written before.
            OSError: The file cannot be written.
        """
        ...


MAX_PATH_BYTES = 4096
"""Maximum size of a path in bytes: PATH_MAX of Linux."""
_DRIVE = re.compile(r"[A-Za-z]:")


def split_path(path: str) -> list[str]:
    r"""Split a path into its segments.

    Raises:
        UsageError: The path could escape a target on some system (absolute, `..`, backslash, drive letter), or no file
            can have it.

    >>> split_path("a/b.html")
    ['a', 'b.html']
    >>> split_path("a/../../b.html")
    Traceback (most recent call last):
    unlost.errors.UsageError: 'a/../../b.html': no path of a file in an export: a segment is `..`
    """
    segments = path.split("/")
    reason = _invalid_reason(path, segments)
    if reason is not None:
        raise UsageError(f"{path!a:.100}: no path of a file in an export: {reason}")
    return segments


def _invalid_reason(path: str, segments: list[str]) -> str | None:
    if path.startswith("/") or _DRIVE.match(path):
        return "it is absolute, or has a drive"
    if "\\" in path or "\0" in path:
        return "it has a backslash or a NUL"
    invalid = next((segment for segment in segments if segment in ("", ".", "..")), None)
    if invalid is not None:
        return f"a segment is `{invalid}`" if invalid else "a segment is empty"
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        return "it is no text"
    return None if size <= MAX_PATH_BYTES else f"it has {size} bytes, more than {MAX_PATH_BYTES}"


class WrittenPaths:
    """Paths written so far; each is one file, and none is a folder of another."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def add(self, path: str) -> None:
        """Add a path. Raises UsageError as `split_path`, or if it was added before or is a folder."""
        segments = split_path(path)
        if path in self._files:
            raise duplicate_path_error(path)
        folders = ["/".join(segments[:count]) for count in range(1, len(segments))]
        if path in self._folders or not self._files.isdisjoint(folders):
            raise path_conflict_error(path)
        self._files.add(path)
        self._folders.update(folders)


def duplicate_path_error(path: str) -> UsageError:
    """Return the error for a path that was written before."""
    return UsageError(f"{path!a:.100}: written before: each path is one file")


def path_conflict_error(path: str) -> UsageError:
    """Return the error for a path that is needed as a file and as a folder."""
    return UsageError(f"{path!a:.100}: a file stands where a folder is needed, or the other way round")


TEMPORARY_SUFFIX = ".unlost-part"
"""Suffix of temporary names. Files left after a crash can be deleted."""
_MAX_NAME_PREFIX = 50  # characters of the final name in the temporary one, which must not exceed the limit of names
_BUFFER = 1 << 20  # bytes
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EINVAL)


class AtomicPath:
    """A new path in a folder that is written under a temporary name. Use it as a context manager.

    Call `publish_file` or `publish_folder` before the block ends; otherwise the temporary file or folder is removed.
    The parent folder is opened once, so that renaming or replacing it has no effect.

    Attributes:
        path: The final path.
        temporary_name: Name under which it is written.
        folder: File descriptor of the parent folder.
    """

    def __init__(self, path: Path, *, allow_empty_folder: bool = False) -> None:
        """Prepare a path.

        Args:
            path: The final path.
            allow_empty_folder: Whether it may exist as an empty folder.
        """
        if path.name in ("", ".."):
            raise UsageError(f"{path}: expected the name of something new in a folder")
        self.path = path
        self.temporary_name = f".{path.name[:_MAX_NAME_PREFIX]}.{os.urandom(8).hex()}{TEMPORARY_SUFFIX}"
        self.folder = -1
        self._allow_empty_folder = allow_empty_folder

    @property
    def temporary_path(self) -> Path:
        """The path under which it is written."""
        return self.path.parent / self.temporary_name

    def __enter__(self) -> Self:
        """Open the parent folder. Raises InputError if it does not exist or the path does, OSError."""
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
        """Remove what was not published, and close the parent folder."""
        try:
            self._remove()
        finally:
            os.close(self.folder)

    @contextmanager
    def explain_os_errors(self, path: str | None = None) -> Iterator[None]:
        """Set the path in OSErrors: that of a file in the target, or of the target itself."""
        try:
            yield
        except OSError as error:
            name = os.fspath(self.path if path is None else self.path / path)
            raise OSError(error.errno, error.strerror or str(error), name) from error

    def _check_free(self) -> None:
        try:
            status = os.stat(self.path.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return
        except OSError as error:
            raise OSError(error.errno, error.strerror, os.fspath(self.path)) from error
        if stat.S_ISLNK(status.st_mode):
            raise InputError(f"{self.path}: a link, which is not followed: remove it, or give another name")
        if not stat.S_ISDIR(status.st_mode) or not self._allow_empty_folder:
            raise self._exists_error()
        self._check_empty()

    def _check_empty(self) -> None:
        """Raise InputError unless the folder is empty."""
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
        """Create an empty file under the temporary name and return its descriptor, open for reading and writing."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with self.explain_os_errors():
            return os.open(self.temporary_name, flags, 0o666, dir_fd=self.folder)

    @contextmanager
    def writing(self) -> Iterator[BinaryIO]:
        """Yield a new file under the temporary name, which is flushed to disk when the block ends."""
        file = BufferedWriter(FileIO(self.open_file(), "wb"), _BUFFER)
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
        except BaseException as error:
            # The buffer is not flushed, which would fail again on a full disk.
            file.raw.close()
            if isinstance(error, OSError) and error.filename is None:
                error.filename = os.fspath(self.path)
            raise
        finally:
            file.close()

    def make_folder(self) -> int:
        """Create an empty folder under the temporary name and return its descriptor."""
        with self.explain_os_errors():
            os.mkdir(self.temporary_name, dir_fd=self.folder)
            return os.open(
                self.temporary_name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.folder
            )

    def publish_file(self) -> None:
        """Give the file, which must be on disk, its final name, and sync the folder.

        Raises:
            InputError: The path exists by now.
        """
        with self.explain_os_errors():
            try:
                # Unlike rename(), link() does not replace a file that was created in the meantime.
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
        """Give the folder its final name. An empty folder there is replaced, and its mode retained.

        Args:
            opened: Descriptor of the folder.

        Raises:
            InputError: The path exists by now.
        """
        with self.explain_os_errors():
            try:
                status = os.stat(self.path.name, dir_fd=self.folder, follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    os.fchmod(opened, stat.S_IMODE(status.st_mode))
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
        with suppress(OSError):  # not supported by every file system; a power loss could then undo the renaming
            os.fsync(self.folder)

    def _remove(self) -> None:
        """Remove the temporary file or folder without following symbolic links."""
        try:
            os.unlink(self.temporary_name, dir_fd=self.folder)
        except FileNotFoundError:
            pass
        except OSError:
            shutil.rmtree(self.temporary_name, ignore_errors=True, dir_fd=self.folder)


class AtomicTarget(ABC):
    """A target that is written under a temporary name."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[None]:
        """Return a context manager that creates the target, and publishes it or removes it after an exception."""

    def __enter__(self) -> Self:
        """Start writing under a temporary name."""
        self._open = self._writing()
        self._open.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Publish the target, or remove it after an exception."""
        self._open.__exit__(kind, error, trace)


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FolderTarget(AtomicTarget):
    """An `ExportTarget` that is a folder. Symbolic links in it are never followed.

    An existing empty folder is replaced, and its mode retained.
    """

    def __init__(self, path: Path) -> None:
        self._path = AtomicPath(path, allow_empty_folder=True)
        self._root = -1

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._path:
            self._root = self._path.make_folder()
            try:
                yield
                # One sync for all files: one fsync per file takes four times as long on a fast disk.
                os.sync()
                self._path.publish_folder(self._root)
            finally:
                os.close(self._root)

    def add(self, path: str, body: BinaryIO, modified: str) -> None:
        """Write a file, as `ExportTarget.add`. A file that cannot be written completely is removed."""
        *folders, name = split_path(path)
        timestamp = int(dates.to_datetime(modified).timestamp())
        with self._path.explain_os_errors(path), ExitStack() as stack:
            folder = self._root
            for segment in folders:
                folder = _open_subfolder(segment, folder, path)
                stack.callback(os.close, folder)
            try:
                file = os.open(name, _NEW, 0o666, dir_fd=folder)
            except FileExistsError:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                raise (path_conflict_error if stat.S_ISDIR(status.st_mode) else duplicate_path_error)(path) from None
            try:
                _write_body(file, body, timestamp)
            except BaseException:
                os.unlink(name, dir_fd=folder)
                raise
            finally:
                os.close(file)


def _open_subfolder(name: str, folder: int, path: str) -> int:
    """Open a folder in a folder, creating it if necessary. Symbolic links are not followed."""
    for _ in range(2):
        try:
            return os.open(name, _FOLDER, dir_fd=folder)
        except FileNotFoundError:
            os.mkdir(name, dir_fd=folder)
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                raise path_conflict_error(path) from None
            raise
    return os.open(name, _FOLDER, dir_fd=folder)


def _write_body(file: int, body: BinaryIO, timestamp: int) -> None:
    for piece in iter_pieces(body):
        view = memoryview(piece)
        while view:
            view = view[os.write(file, view) :]
    os.utime(file, (timestamp, timestamp))
