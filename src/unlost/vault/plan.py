"""The block plan: number and size of blocks, how many pages may be lost, and which page carries which block.

Pages keep their block from one version to the next wherever possible.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from unlost.errors import UsageError
from unlost.report.format import format_byte_size
from unlost.vault.block import MAX_CARRIER_BYTES, serialized_size
from unlost.vault.erasure_code import BLOCK_UNIT, MAX_BLOCKS, CodeShape, count_needed_blocks, smallest_shape

PAGE_LIMIT = 214 << 10
"""Bytes of a page that every repository preserves: the lowest limit that the dissertation measured (Yahoo's cache)."""
DEFAULT_LOSS_TOLERANCE = 0.5
"""Fraction of pages that may be lost: after two weeks, the archives of the dissertation had 60 % of its pages."""
_MIN_SPARE_BLOCKS = 6  # if each page is lost with probability 1/2, all six are lost with probability 1/64
_BLOCK_SIZE_STEP = 1.04  # ratio of block sizes tried; the chosen one is at most 4 % larger than necessary

BlockLocation = tuple[str, int]
"""Id of a segment, and index of a block in it."""


@dataclass(frozen=True, slots=True)
class CarrierPage:
    """A page that can carry blocks.

    Attributes:
        key: Its path with query.
        size: Bytes without blocks.
        hops: Number of links from the root; None if unknown.
    """

    key: str
    size: int
    hops: int | None = None


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """How each segment is coded, and the pages for its blocks.

    Each page carries a block of one segment. Any `expendable_pages` pages may be lost. The loss of more may affect too
    many blocks of one segment, although others still have more than they need.

    Attributes:
        shapes: Code of each segment, by name.
        pages: Pages with room for a block.
        limit: Maximum size of a page in bytes.
        block_size: Size of the largest block in bytes.
        target_tolerance: The loss tolerance that was requested.
    """

    shapes: Mapping[str, CodeShape]
    pages: tuple[CarrierPage, ...]
    limit: int
    block_size: int
    target_tolerance: float

    @property
    def expendable_pages(self) -> int:
        """How many pages may be lost in the worst case over all segments."""
        return min(shape.count - shape.needed for shape in self.shapes.values())

    @property
    def loss_tolerance(self) -> float:
        """The fraction of pages that may be lost in the worst case."""
        return self.expendable_pages / len(self.pages)

    @property
    def sufficient_pages(self) -> int:
        """How many pages suffice in the worst case."""
        return len(self.pages) - self.expendable_pages

    @property
    def needed_pages(self) -> int:
        """How many pages suffice at best: those that carry exactly the needed blocks of each segment."""
        return sum(shape.needed for shape in self.shapes.values())


def page_overhead(block_size: int, *, signed: bool) -> int:
    """Return how many bytes a block adds to a page, including base64 and carrier."""
    return serialized_size(block_size, signed=signed) + MAX_CARRIER_BYTES


def plan_blocks(
    sizes: Mapping[str, int],
    pages: Sequence[CarrierPage],
    *,
    limit: int = PAGE_LIMIT,
    block_size: int | None = None,
    loss_tolerance: float | None = None,
    signed: bool = False,
) -> BlockPlan:
    """Plan how segments are coded and which pages can carry their blocks.

    Args:
        sizes: Packed size of each segment in bytes.
        pages: Pages of the site.
        limit: Maximum size of a page in bytes.
        block_size: Maximum size of a block in bytes. None for the smallest one that reaches the loss tolerance, or if
            none does, the one with the highest loss tolerance.
        loss_tolerance: Fraction of all pages that may be lost, whichever they are. None for `DEFAULT_LOSS_TOLERANCE` of
            the pages of each segment: with several segments, fewer may be lost if they all carry the same segment.
        signed: Whether blocks are signed.

    Raises:
        UsageError: There are too few pages, or several segments cannot reach the loss tolerance.
    """
    max_block = (
        block_size // BLOCK_UNIT * BLOCK_UNIT
        if block_size is not None
        else _choose_block_size(sizes, pages, limit, loss_tolerance, signed=signed)
    )
    if max_block < BLOCK_UNIT:
        raise UsageError(
            f"no page has room for a block below the limit of {format_byte_size(limit)}: raise --page-limit"
        )
    usable = pages_with_room(pages, limit, max_block, signed=signed)[:MAX_BLOCKS]
    needs = {name: count_needed_blocks(size, max_block) for name, size in sizes.items()}
    total = sum(needs.values())
    if total > MAX_BLOCKS:
        raise UsageError(f"{total:,} blocks are needed, and {MAX_BLOCKS:,} can be made: give a larger --block")
    if total > len(usable):
        raise UsageError(
            f"{total:,} pages with room for {format_byte_size(max_block)} are needed, and {len(usable):,} are there: "
            f"give --extra-pages {total - len(usable)}, a larger --block or --page-limit, or fewer files"
        )
    counts = allocate_pages(needs, len(usable), loss_tolerance)
    shapes = {name: smallest_shape(sizes[name], needs[name], counts[name]) for name in sizes}
    largest = max(shape.block for shape in shapes.values())
    plan = BlockPlan(
        shapes, tuple(usable), limit, largest, DEFAULT_LOSS_TOLERANCE if loss_tolerance is None else loss_tolerance
    )
    if (
        loss_tolerance is not None
        and len(sizes) > 1
        and plan.expendable_pages < math.floor(loss_tolerance * len(usable))
    ):
        raise UsageError(
            f"with {len(sizes)} segments, any {plan.expendable_pages:,} of {len(usable):,} pages may be lost "
            f"({plan.loss_tolerance:.0%}), not {loss_tolerance:.0%}: "
            "give --segments one, a lower --may-be-lost, or more pages"
        )
    return plan


def pages_with_room(pages: Sequence[CarrierPage], limit: int, block_size: int, *, signed: bool) -> list[CarrierPage]:
    """Return the pages that can carry a block of this size."""
    cost = page_overhead(block_size, signed=signed)
    return [page for page in pages if page.size + cost <= limit]


def allocate_pages(needs: Mapping[str, int], pages: int, loss_tolerance: float | None = None) -> dict[str, int]:
    """Return the number of pages for each segment: needed ones, a reserve, and a proportional part of the others.

    The reserve favours small segments: losing both of two pages is likelier than losing half of a hundred.

    Args:
        needs: Number of needed blocks of each segment.
        pages: Number of pages.
        loss_tolerance: Fraction of all pages that each segment must be able to lose. The reserve is then that many
            pages, or an equal part of those available.

    >>> allocate_pages({"large": 6, "small": 2}, 20)
    {'large': 14, 'small': 6}
    >>> allocate_pages({"large": 6, "small": 2}, 20, 0.3)
    {'large': 12, 'small': 8}
    """
    total = sum(needs.values())
    if loss_tolerance is None:
        reserve = min(_MIN_SPARE_BLOCKS, (pages - total) // (2 * len(needs)))
    else:
        reserve = min(math.ceil(loss_tolerance * pages), (pages - total) // len(needs))
    remaining = pages - total - reserve * len(needs)
    exact = {name: need + reserve + remaining * need / total for name, need in needs.items()}
    counts = {name: int(value) for name, value in exact.items()}
    by_remainder = sorted(needs, key=lambda name: (counts[name] - exact[name], name))
    for name in by_remainder[: pages - sum(counts.values())]:
        counts[name] += 1
    return counts


def _choose_block_size(
    sizes: Mapping[str, int], pages: Sequence[CarrierPage], limit: int, loss_tolerance: float | None, *, signed: bool
) -> int:
    """Return the smallest block size that reaches the loss tolerance, else the best one; 0 if no page has room."""
    target = DEFAULT_LOSS_TOLERANCE if loss_tolerance is None else loss_tolerance
    best_size, best_tolerance = 0, float("-inf")
    block = float(BLOCK_UNIT)
    largest = max(limit, BLOCK_UNIT)
    while block <= largest:
        size = int(block) // BLOCK_UNIT * BLOCK_UNIT
        count = min(len(pages_with_room(pages, limit, size, signed=signed)), MAX_BLOCKS)
        if count == 0:
            break
        tolerance = _tolerance(
            {name: count_needed_blocks(each, size) for name, each in sizes.items()}, count, loss_tolerance
        )
        if tolerance >= target:
            return size
        if tolerance > best_tolerance:
            best_size, best_tolerance = size, tolerance
        block = max(block * _BLOCK_SIZE_STEP, block + BLOCK_UNIT)
    return best_size


def _tolerance(needs: Mapping[str, int], pages: int, loss_tolerance: float | None) -> float:
    """Return the loss tolerance as in `plan_blocks`; negative if there are too few pages."""
    total = sum(needs.values())
    if total > pages:
        return 1 - total / pages
    counts = allocate_pages(needs, pages, loss_tolerance)
    if loss_tolerance is not None:
        return min(counts[name] - needs[name] for name in needs) / pages
    return min(1 - needs[name] / counts[name] for name in needs)


def sort_pages_by_hash(keys: Iterable[str]) -> list[str]:
    """Sort pages by hash, which separates neighbours on the site: archives tend to miss whole folders."""
    return sorted(keys, key=lambda key: hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest())


def assign_blocks(
    counts: Mapping[str, int], pages: Iterable[str], previous: Mapping[str, BlockLocation] | None = None
) -> dict[str, BlockLocation]:
    """Assign a block to each page.

    Args:
        counts: Number of pages for each segment.
        pages: Keys of the pages.
        previous: Previous assignment; a page keeps its block if it still exists.
    """
    usable = set(pages)
    assigned: dict[str, BlockLocation] = {}
    free = {name: set(range(count)) for name, count in counts.items()}
    for page, (name, index) in (previous or {}).items():
        if page in usable and index in free.get(name, ()):
            assigned[page] = (name, index)
            free[name].remove(index)
    unassigned = iter([page for page in sort_pages_by_hash(usable) if page not in assigned])
    for name in sorted(free):
        for index, page in zip(sorted(free[name]), unassigned, strict=False):
            assigned[page] = (name, index)
    return assigned


def locate_unlisted_block(key: str, counts: Mapping[str, int]) -> BlockLocation | None:
    """Return the block of a page without an assignment. It depends on the key alone, so all processes agree."""
    total = sum(counts.values())
    if total == 0:
        return None
    number = int.from_bytes(hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()[:8], "big") % total
    for name in sorted(counts):
        if number < counts[name]:
            return name, number
        number -= counts[name]
    return None
