"""Targets that an export is written to, atomically: the protocol, checked paths, and folders."""

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
from unlost.http.body import iter_pieces


class ExportTarget(Protocol):
    """A folder or a packed file that is being written.

    Use it as a context manager: it has its final name once the block has ended well; after an error nothing is left
    under that name, and what was there before still is.
    """

    def __enter__(self) -> Self:
        """Begin it. Raises InputError where something is in its place, OSError where it cannot be written."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Give it its name, or take it away if there was an error."""
        ...

    def add(self, path: str, body: BinaryIO, modified: str) -> None:
        """Write a file.

        path: relative, with slashes. body: is read to its end. modified: 14 digits, becomes the file's date.

        Raises UsageError for a path that leads out of the target, or that was written before; OSError if it cannot be
        written.
        """
        ...


MAX_PATH_BYTES = 4096
"""The longest path: no system opens a longer one."""
_DRIVE = re.compile(r"[A-Za-z]:")


def split_path(path: str) -> list[str]:
    r"""Return the names in a path: those of its folders, then that of the file.

    Raises UsageError for a path that could lead out of a target on any system: an absolute one, with `..`, with a
    backslash or a drive in it; and for one that no file can have.

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
    wrong = next((segment for segment in segments if segment in ("", ".", "..")), None)
    if wrong is not None:
        return f"a segment is `{wrong}`" if wrong else "a segment is empty"
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        return "it is no text"
    return None if size <= MAX_PATH_BYTES else f"it has {size} bytes, more than {MAX_PATH_BYTES}"


class WrittenPaths:
    """The paths that were written: each is one file, and none of them a folder of another."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def add(self, path: str) -> None:
        """Take a path. Raises UsageError as `segments_of` does, and for a path that was taken, or is a folder."""
        segments = split_path(path)
        if path in self._files:
            raise duplicate_path_error(path)
        folders = ["/".join(segments[:count]) for count in range(1, len(segments))]
        if path in self._folders or not self._files.isdisjoint(folders):
            raise path_conflict_error(path)
        self._files.add(path)
        self._folders.update(folders)


def duplicate_path_error(path: str) -> UsageError:
    """Return what to raise for a path that was written before."""
    return UsageError(f"{path!a:.100}: written before: each path is one file")


def path_conflict_error(path: str) -> UsageError:
    """Return what to raise for a path that would have to be a file and a folder."""
    return UsageError(f"{path!a:.100}: a file stands where a folder is needed, or the other way round")


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


class AtomicTarget(ABC):
    """A target that is made under another name."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[None]:
        """Return what makes the target: at its end it is named, or removed if there was an error."""

    def __enter__(self) -> Self:
        """Begin it, under another name."""
        self._open = self._writing()
        self._open.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Give it its name, or remove it if there was an error."""
        self._open.__exit__(kind, error, trace)


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FolderTarget(AtomicTarget):
    """A Target that is a folder. Nothing in it is followed to somewhere else, whoever may have put it there.

    An empty folder in the place is replaced, and its mode kept.
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
                # One call for all: file by file it took four times as long on a fast disk, and more on others.
                os.sync()
                self._path.publish_folder(self._root)
            finally:
                os.close(self._root)

    def add(self, path: str, body: BinaryIO, modified: str) -> None:
        """Write a file, as Target has it. One that cannot be written whole is removed."""
        *folders, name = split_path(path)
        moment = int(dates.to_datetime(modified).timestamp())
        with self._path.explain_os_errors(path), ExitStack() as stack:
            folder = self._root
            for each in folders:
                folder = _open_subfolder(each, folder, path)
                stack.callback(os.close, folder)
            try:
                file = os.open(name, _NEW, 0o666, dir_fd=folder)
            except FileExistsError:
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                raise (path_conflict_error if stat.S_ISDIR(found.st_mode) else duplicate_path_error)(path) from None
            try:
                _write_body(file, body, moment)
            except BaseException:
                os.unlink(name, dir_fd=folder)
                raise
            finally:
                os.close(file)


def _open_subfolder(name: str, folder: int, path: str) -> int:
    """Return a folder in a folder, open; it is made if it is not there. A link in its place is not followed."""
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


def _write_body(file: int, body: BinaryIO, moment: int) -> None:
    for piece in iter_pieces(body):
        view = memoryview(piece)
        while view:
            view = view[os.write(file, view) :]
    os.utime(file, (moment, moment))


# Not `.ar`, `.br` or `.cab`, which names of hosts end in, and a folder may well be called after its host.
_UNSUPPORTED_EXTENSIONS = (
    ".7z", ".bz2", ".cpio", ".dmg", ".gz", ".iso", ".lz", ".lz4", ".lzma", ".rar", ".tar", ".tbz", ".tbz2", ".txz",
    ".tzst", ".wacz", ".warc", ".xz", ".zst",
)  # fmt: skip


def open_target(path: Path) -> ExportTarget:
    """Return the target for a path: a zip file, a gzipped tar file (`.tar.gz`, `.tgz`), else a folder.

    Nothing is made before it is entered. Raises UsageError for the ending of a packed file that is not written here, so
    that nobody finds a folder called `site.rar`.
    """
    name = path.name.lower()
    if name.endswith(".zip"):
        from unlost.export.packed_targets import ZipTarget  # noqa: PLC0415  start-up

        return ZipTarget(path)
    if name.endswith((".tar.gz", ".tgz")):
        from unlost.export.packed_targets import TarTarget  # noqa: PLC0415  start-up

        return TarTarget(path)
    if name.endswith(_UNSUPPORTED_EXTENSIONS):
        raise UsageError(f"{path}: expected a folder, or a name that ends in .zip, .tar.gz, .tgz, .wacz or .warc.gz")

    return FolderTarget(path)
