"""Dividing files into segments, which change and are recovered one by one."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from unlost.errors import UsageError
from unlost.vault.packing import ServerFile
from unlost.vault.quantities import parse_byte_size

_DAY = 86_400 * 10**9
# Relative to the newest file, so that the same files are divided in the same way on every day.
_AGE_CLASSES = (("changes-often", 14 * _DAY), ("changes-sometimes", 180 * _DAY))
_OLDEST_CLASS = "changes-rarely"
WHOLE_SEGMENT = "all"


@dataclass(frozen=True, slots=True)
class SegmentDivision:
    """How files are divided. kind: `one`, `directory`, `size` or `changed`. size: bytes, for the third."""

    kind: str = "one"
    size: int = 0

    def __str__(self) -> str:
        """Return it as it is written."""
        return f"size:{self.size}" if self.kind == "size" else self.kind


def parse_division(text: str) -> SegmentDivision:
    """Return what `--segments` says. Raises UsageError.

    >>> division_of("size:1MB")
    Division(kind='size', size=1048576)
    """
    kind, _, size = text.partition(":")
    if kind in {"one", "directory", "changed"} and not size:
        return SegmentDivision(kind)
    if kind == "size" and size and (count := parse_byte_size(size)) > 0:
        return SegmentDivision(kind, count)
    raise UsageError(f"--segments {ascii(text)[:40]}: expected one, directory, size:1MB or changed")


def divide_into_segments(
    files: Iterable[ServerFile], division: SegmentDivision, previous: Mapping[str, str] | None = None
) -> dict[str, list[ServerFile]]:
    """Return files by the names of their segments.

    before: where each file was last time, by its name: with `changed` it stays there if it has not changed.
    """
    every = sorted(files, key=lambda file: file.name.encode("utf-8", "surrogateescape"))
    if division.kind == "one":
        return {WHOLE_SEGMENT: every}
    if division.kind == "size":
        return _divide_by_size(every, division.size)
    newest = max(file.mtime for file in every)
    found: dict[str, list[ServerFile]] = {}
    for file in every:
        name = (
            _directory_name(file)
            if division.kind == "directory"
            else (previous or {}).get(file.name) or _age_class(file, newest)
        )
        found.setdefault(name, []).append(file)
    return found


def _directory_name(file: ServerFile) -> str:
    """Return the folder below the first one: `site/lib` of `site/lib/a/b.py`; of what is directly in it, that one."""
    parts = file.name.split("/")
    depth = len(parts) if file.kind == "folder" else len(parts) - 1
    return "/".join(parts[: min(depth, 2)]) or "."


def _age_class(file: ServerFile, newest: int) -> str:
    return next((name for name, age in _AGE_CLASSES if newest - file.mtime <= age), _OLDEST_CLASS)


def _divide_by_size(files: list[ServerFile], size: int) -> dict[str, list[ServerFile]]:
    """Fill segments in the order of names; one that is longer is alone. A segment is named by its first."""
    found: dict[str, list[ServerFile]] = {}
    name, total = "", 0
    for file in files:
        if not name or total + file.size > size:
            name, total = f"from {file.name}", 0
            found[name] = []
        found[name].append(file)
        total += file.size
    return found


def segment_id(name: str) -> str:
    """Return what a segment is called in pages: nothing of its name is told there.

    >>> segment_id("all")
    '9b48bb5ad0d1c100'
    """
    return hashlib.sha256(f"unlost-vault-1 segment {name}".encode("utf-8", "surrogateescape")).hexdigest()[:16]
