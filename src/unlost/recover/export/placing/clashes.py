"""Gives every resource a path of its own, where some want the same, or one wants a file where others want a folder."""

import unicodedata
from collections import Counter
from collections.abc import Iterable

from unlost.recover.export.placing.segments import digest_of, marked
from unlost.recover.export.placing.wish import Wish

SAME, CASE, FOLDER = "same-path", "letter-case", "folder-of-that-name"


def folded(path: str) -> str:
    """Return a path as file systems compare it that know neither letter case nor how accents are put together.

    Too many rather than too few are equal by it.

    >>> folded("A/É") == folded("a/e\u0301"), folded("ß") == folded("SS"), folded("a") == folded("b")
    (True, True, False)
    """
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", path).upper().casefold())


class Places:
    """Paths that are given away: no two are one on any file system, and none is a folder of another.

    paths: by the keys of the wishes. renamed: how many did not get what they wished for, by the reason.

    It does not matter in which order the wishes come: those go first that are called what their address says, then
    the alphabet decides.
    """

    def __init__(self, wishes: Iterable[Wish]) -> None:
        ordered = sorted(wishes, key=lambda wish: (bool(wish.reasons), wish.key))
        # No file takes a name that anybody wants for a folder; so every folder can be made.
        self._folders = {folder for wish in ordered for path in wish.paths for folder in _folders(folded(path))}
        self._taken: dict[str, str] = {}
        self.paths: dict[str, str] = {}
        self.renamed: Counter[str] = Counter()
        del wishes
        ordered.reverse()
        while ordered:
            wish = ordered.pop()
            path, reason = self._free(wish)
            key = folded(path)
            self._taken[path if key == path else key] = path  # one text rather than two
            self.paths[wish.key] = path
            if reason is not None:
                self.renamed[reason] += 1

    def would_be(self, wish: Wish) -> str:
        """Return the path that one more would get: never that of another. It is not given away."""
        return self._free(wish)[0]

    def _free(self, wish: Wish) -> tuple[str, str | None]:
        """Return the first path that is free, and why it is not the best one; None if it is."""
        reason = None
        for path in wish.paths:
            why = self._against(path)
            if why is None:
                return path, reason
            reason = reason or why
            if why == FOLDER and self._against(inside := f"{path}/{wish.inside}") is None:
                return inside, reason
        folder, slash, name = wish.paths[-1].rpartition("/")
        count = 0
        while True:
            mark = digest_of(f"{wish.key}\n{count}" if count else wish.key)
            path = f"{folder}{slash}{marked(name, mark)}"
            if self._against(path) is None:
                return path, reason
            count += 1

    def _against(self, path: str) -> str | None:
        key = folded(path)
        if key in self._folders:
            return FOLDER
        if key in self._taken:
            return SAME if self._taken[key] == path else CASE
        return None


def _folders(path: str) -> Iterable[str]:
    """Yield the folders that a path is in."""
    end = path.find("/")
    while end >= 0:
        yield path[:end]
        end = path.find("/", end + 1)
