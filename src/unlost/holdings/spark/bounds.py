"""Where a result is cut into parts, so that each can be made by itself and all can be put behind each other.

Roll-ups of hosts never cross a second-level domain, and those of paths never cross a host. What is cut finer is shared
more evenly: a map without roll-ups is cut between any two pages.
"""

import re
from collections.abc import Collection, Sequence
from typing import Literal

CutLevel = Literal["page", "host", "domain"]

_HOST = re.compile(rb"([a-z0-9._:,-]+)\)")
_DOMAIN = re.compile(rb"[a-z0-9-]+,[a-z0-9._:-]+(?=[,)])")

PART_BYTES = 64 << 20
"""Of counted lines, for each part: some seconds of work, and what has to be done again if a machine is lost."""

MAX_PARTS = 20_000


def choose_part_count(size: int, at_least: int) -> int:
    """Return how many parts so many bytes are cut into: enough for all processors, unless there is next to nothing.

    >>> parts_for(100, 8), parts_for(10_000_000, 8), parts_for(1 << 40, 8)
    (1, 8, 16384)
    """
    if size < 1 << 20:
        return 1
    return min(max(size // PART_BYTES, at_least), MAX_PARTS)


def choose_bounds(
    samples: Sequence[tuple[bytes, int]], parts: int, level: CutLevel, whole: Collection[bytes] = ()
) -> list[bytes]:
    r"""Return keys at which parts begin, in order: at most one fewer than parts are wanted.

    samples: keys, and the bytes that each stands for. level: what must not be cut.
    whole: top-level domains that must not be cut either.

    >>> keys = [(b"com,a)/", 1), (b"com,b)/x", 1), (b"com,b,c)/", 1), (b"org,d)/", 1)]
    >>> choose_bounds(keys, 4, "page")
    [b'com,b)/x', b'com,b,c)/', b'org,d)/']
    >>> choose_bounds(keys, 4, "domain")
    [b'com,b', b'org,d']
    >>> choose_bounds(keys, 4, "domain", {b"com"})
    [b'org,d']
    """
    total = sum(weight for _, weight in samples)
    bounds: list[bytes] = []
    done = 0
    for key, weight in sorted(samples):
        if done * parts >= (len(bounds) + 1) * total:
            bound = _unit_start(key, level)
            is_new = bound is not None and (not bounds or bound > bounds[-1])
            if bound is not None and is_new and bound.partition(b",")[0] not in whole:
                bounds.append(bound)
        done += weight
    return bounds[: max(parts - 1, 0)]


def _unit_start(key: bytes, level: CutLevel) -> bytes | None:
    """Return where the page, host or domain of a key begins.

    None where that is not sure: of names with other bytes, what lies below may stand apart.
    """
    if level == "page":
        return re.split(rb"[? ]", key, maxsplit=1)[0]
    if level == "host":
        host = _HOST.match(key)
        return host[1] if host else None
    domain = _DOMAIN.match(key)
    return domain[0] if domain else None
