"""Paths of files in an export: checked, whoever made them, since addresses of strangers are in them."""

import re

from unlost.errors import UsageError

MAX_PATH_BYTES = 4096
"""The longest path: no system opens a longer one."""

_DRIVE = re.compile(r"[A-Za-z]:")


def split_path(path: str) -> list[str]:
    r"""Return the names in a path: those of its folders, then that of the file.

    Raises UsageError for a path that could lead out of a target on any system: an absolute one, with `..`, with a
    backslash or a drive in it; and for one that no file can have.

    >>> segments_of("a/b.html")
    ['a', 'b.html']
    >>> segments_of("a/../../b.html")
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
