"""How many blocks of which size go into which number of pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unlost.errors import UsageError
from unlost.vault.block import text_bytes
from unlost.vault.carriers import MAX_AROUND
from unlost.vault.quantities import shown_bytes
from unlost.vault.shape import MAX_BLOCKS, UNIT, Shape, blocks_needed, shape_of

PAGE_LIMIT = 214 << 10
"""Bytes of a page that every repository keeps: the least of those that the dissertation measured (Yahoo's cache)."""

MAY_BE_LOST = 0.5
"""The share of pages that may be lost: two weeks after it began, the dissertation's archives held 60 % of its pages."""

_LEAST_SPARE = 6  # blocks beside the needed ones: if every other page is lost, all of so many are once in 64 times
_STEP = 1.04  # between two sizes of blocks that are tried: what is found is at most so much larger than it need be


@dataclass(frozen=True, slots=True)
class Page:
    """A page that can carry blocks. key: its path with query. size: bytes without blocks. hops: links from the root."""

    key: str
    size: int
    hops: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What goes where. shapes: of each segment, by name. pages: those with room, by key. limit: bytes of a page.

    block: the largest block, in bytes. wanted: the share of pages that was to be expendable.
    """

    shapes: Mapping[str, Shape]
    pages: tuple[Page, ...]
    limit: int
    block: int
    wanted: float

    @property
    def may_be_lost(self) -> float:
        """The share of pages that may be lost, of the segment that bears least."""
        return min(shape.may_be_lost for shape in self.shapes.values())

    @property
    def needed(self) -> int:
        """Pages that are needed for all segments."""
        return sum(shape.needed for shape in self.shapes.values())


def cost_of(block: int, *, signed: bool) -> int:
    """Return how many bytes a block of so many adds to a page, with base64 and carrier."""
    return text_bytes(block, signed=signed) + MAX_AROUND


def plan(
    sizes: Mapping[str, int],
    pages: Sequence[Page],
    *,
    limit: int = PAGE_LIMIT,
    block: int | None = None,
    may_be_lost: float = MAY_BE_LOST,
    signed: bool = False,
) -> Plan:
    """Return how segments of these sizes, in bytes, go into pages.

    block: the largest block, in bytes; without it, the smallest with which that share of the pages may be lost, or if
        that cannot be had, as large a share as can be.
    Raises UsageError if there are too few pages; it says how many are missing.
    """
    chosen = block // UNIT * UNIT if block is not None else _block(sizes, pages, limit, may_be_lost, signed=signed)
    if chosen < UNIT:
        raise UsageError(f"no page has room for a block below the limit of {shown_bytes(limit)}: raise --page-limit")
    usable = with_room(pages, limit, chosen, signed=signed)[:MAX_BLOCKS]
    needs = {name: blocks_needed(size, chosen) for name, size in sizes.items()}
    total = sum(needs.values())
    if total > MAX_BLOCKS:
        raise UsageError(f"{total:,} blocks are needed, and {MAX_BLOCKS:,} can be made: give a larger --block")
    if total > len(usable):
        raise UsageError(
            f"{total:,} pages with room for {shown_bytes(chosen)} are needed, and {len(usable):,} are there: "
            f"give --extra-pages {total - len(usable)}, a larger --block or --page-limit, or fewer files"
        )
    counts = share_out(needs, len(usable))
    shapes = {name: shape_of(sizes[name], needs[name], counts[name]) for name in sizes}
    return Plan(shapes, tuple(usable), limit, max(shape.block for shape in shapes.values()), may_be_lost)


def with_room(pages: Sequence[Page], limit: int, block: int, *, signed: bool) -> list[Page]:
    """Return the pages that can carry a block of so many bytes."""
    cost = cost_of(block, signed=signed)
    return [page for page in pages if page.size + cost <= limit]


def share_out(needs: Mapping[str, int], pages: int) -> dict[str, int]:
    """Return how many pages each segment gets: what it needs, a few to spare, and of the others in proportion.

    Of two pages, both are lost sooner than half of a hundred are: so small segments get some more than their share.

    >>> share_out({"large": 6, "small": 2}, 20)
    {'large': 14, 'small': 6}
    """
    total = sum(needs.values())
    reserve = min(_LEAST_SPARE, (pages - total) // (2 * len(needs)))
    left = pages - total - reserve * len(needs)
    exact = {name: need + reserve + left * need / total for name, need in needs.items()}
    counts = {name: int(value) for name, value in exact.items()}
    by_rest = sorted(needs, key=lambda name: (counts[name] - exact[name], name))
    for name in by_rest[: pages - sum(counts.values())]:
        counts[name] += 1
    return counts


def _block(sizes: Mapping[str, int], pages: Sequence[Page], limit: int, may_be_lost: float, *, signed: bool) -> int:
    """Return the smallest block that bears the loss, else the one that bears most; 0 if there is no room at all."""
    best, most = 0, float("-inf")
    block = float(UNIT)
    largest = max(limit, UNIT)
    while block <= largest:
        size = int(block) // UNIT * UNIT
        count = min(len(with_room(pages, limit, size, signed=signed)), MAX_BLOCKS)
        if count == 0:
            break
        bears = _bears({name: blocks_needed(each, size) for name, each in sizes.items()}, count)
        if bears >= may_be_lost:
            return size
        if bears > most:
            best, most = size, bears
        block = max(block * _STEP, block + UNIT)
    return best


def _bears(needs: Mapping[str, int], pages: int) -> float:
    """Return the share of pages that may be lost; below 0 if there are too few."""
    total = sum(needs.values())
    if total > pages:
        return 1 - total / pages
    counts = share_out(needs, pages)
    return min(1 - needs[name] / counts[name] for name in needs)
