"""Gives every resource a path of its own, where some want the same, or one wants a file where others want a folder."""

import unicodedata
from collections import Counter
from collections.abc import Iterable

from unlost.recover.export.placing.segments import short_digest, add_suffix
from unlost.recover.export.placing.wish import PathCandidates

SAME_PATH, LETTER_CASE, FOLDER_OF_SAME_NAME = "same-path", "letter-case", "folder-of-that-name"


def fold_path(path: str) -> str:
    """Return a path as file systems compare it that know neither letter case nor how accents are put together.

    Too many rather than too few are equal by it.

    >>> folded("A/É") == folded("a/e\u0301"), folded("ß") == folded("SS"), folded("a") == folded("b")
    (True, True, False)
    """
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", path).upper().casefold())


class PathAllocator:
    """Paths that are given away: no two are one on any file system, and none is a folder of another.

    paths: by the keys of the wishes. renamed: how many did not get what they wished for, by the reason.

    It does not matter in which order the wishes come: those go first that are called what their address says, then
    the alphabet decides.
    """

    def __init__(self, wishes: Iterable[PathCandidates]) -> None:
        ordered = sorted(wishes, key=lambda wish: (bool(wish.reasons), wish.key))
        # No file takes a name that anybody wants for a folder; so every folder can be made.
        self._folders = {
            folder for wish in ordered for path in wish.paths for folder in _parent_folders(fold_path(path))
        }
        self._taken: dict[str, str] = {}
        self.paths: dict[str, str] = {}
        self.renamed: Counter[str] = Counter()
        del wishes
        ordered.reverse()
        while ordered:
            wish = ordered.pop()
            path, reason = self._find_free(wish)
            key = fold_path(path)
            self._taken[path if key == path else key] = path  # one text rather than two
            self.paths[wish.key] = path
            if reason is not None:
                self.renamed[reason] += 1

    def free_path(self, candidates: PathCandidates) -> str:
        """Return the path that one more would get: never that of another. It is not given away."""
        return self._find_free(candidates)[0]

    def _find_free(self, candidates: PathCandidates) -> tuple[str, str | None]:
        """Return the first path that is free, and why it is not the best one; None if it is."""
        reason = None
        for path in candidates.paths:
            why = self._conflict(path)
            if why is None:
                return path, reason
            reason = reason or why
            if why == FOLDER_OF_SAME_NAME and self._conflict(inside := f"{path}/{candidates.index_name}") is None:
                return inside, reason
        folder, slash, name = candidates.paths[-1].rpartition("/")
        count = 0
        while True:
            mark = short_digest(f"{candidates.key}\n{count}" if count else candidates.key)
            path = f"{folder}{slash}{add_suffix(name, mark)}"
            if self._conflict(path) is None:
                return path, reason
            count += 1

    def _conflict(self, path: str) -> str | None:
        key = fold_path(path)
        if key in self._folders:
            return FOLDER_OF_SAME_NAME
        if key in self._taken:
            return SAME_PATH if self._taken[key] == path else LETTER_CASE
        return None


def _parent_folders(path: str) -> Iterable[str]:
    """Yield the folders that a path is in."""
    end = path.find("/")
    while end >= 0:
        yield path[:end]
        end = path.find("/", end + 1)
