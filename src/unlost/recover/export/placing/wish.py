"""Where a resource would like to be."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PathCandidates:
    """The paths that a resource would take, the best first, as if it were alone.

    key: what it is known by; no two resources have the same.
    paths: relative, with slashes.
    inside: the name of its file in a folder that has the name of the best path.
    reasons: why the best path is not what the address says; none if it is.
    """

    key: str
    paths: tuple[str, ...]
    index_name: str
    reasons: tuple[str, ...] = ()
