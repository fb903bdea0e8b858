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
"""Bytes of a page that every repository keeps: the least of those that the dissertation measured (Yahoo's cache)."""
DEFAULT_LOSS_TOLERANCE = 0.5
"""The share of pages that may be lost: two weeks after it began, the dissertation's archives held 60 % of its pages."""
_MIN_SPARE_BLOCKS = 6  # blocks beside the needed ones: if every other page is lost, all of so many are once in 64 times
_BLOCK_SIZE_STEP = (
    1.04  # between two sizes of blocks that are tried: what is found is at most so much larger than it need be
)


@dataclass(frozen=True, slots=True)
class CarrierPage:
    """A page that can carry blocks. key: its path with query. size: bytes without blocks. hops: links from the root."""

    key: str
    size: int
    hops: int | None = None


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """What goes where. shapes: of each segment, by name. pages: those with room, by key. limit: bytes of a page.

    block: the largest block, in bytes. wanted: the share of pages that was to be expendable.

    Each page carries a block of one segment. Any `spare` pages may be lost: a larger loss may take too many blocks of
    one segment, although the others still have more than they need.
    """

    shapes: Mapping[str, CodeShape]
    pages: tuple[CarrierPage, ...]
    limit: int
    block_size: int
    target_tolerance: float

    @property
    def expendable_pages(self) -> int:
        """How many pages may be lost, whichever they are: the worst case over all segments."""
        return min(shape.count - shape.needed for shape in self.shapes.values())

    @property
    def loss_tolerance(self) -> float:
        """The share of pages that may be lost, whichever they are."""
        return self.expendable_pages / len(self.pages)

    @property
    def sufficient_pages(self) -> int:
        """How many pages always suffice, whichever they are."""
        return len(self.pages) - self.expendable_pages

    @property
    def needed_pages(self) -> int:
        """How many pages suffice at best: those that carry just the needed blocks of each segment."""
        return sum(shape.needed for shape in self.shapes.values())


def page_overhead(block_size: int, *, signed: bool) -> int:
    """Return how many bytes a block of so many adds to a page, with base64 and carrier."""
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
    """Return how segments of these sizes, in bytes, go into pages.

    block: the largest block, in bytes; without it, the smallest with which the share of pages may be lost, or if that
        cannot be had, as large a share as can be.
    may_be_lost: the share of pages that may be lost, whichever they are. None for `MAY_BE_LOST` of the pages of each
        segment: with several segments, fewer than that may be lost if all lost ones are of one segment.
    Raises UsageError if there are too few pages, or if several segments cannot bear the loss; it says what is missing.
    """
    chosen = (
        block_size // BLOCK_UNIT * BLOCK_UNIT
        if block_size is not None
        else _choose_block_size(sizes, pages, limit, loss_tolerance, signed=signed)
    )
    if chosen < BLOCK_UNIT:
        raise UsageError(
            f"no page has room for a block below the limit of {format_byte_size(limit)}: raise --page-limit"
        )
    usable = pages_with_room(pages, limit, chosen, signed=signed)[:MAX_BLOCKS]
    needs = {name: count_needed_blocks(size, chosen) for name, size in sizes.items()}
    total = sum(needs.values())
    if total > MAX_BLOCKS:
        raise UsageError(f"{total:,} blocks are needed, and {MAX_BLOCKS:,} can be made: give a larger --block")
    if total > len(usable):
        raise UsageError(
            f"{total:,} pages with room for {format_byte_size(chosen)} are needed, and {len(usable):,} are there: "
            f"give --extra-pages {total - len(usable)}, a larger --block or --page-limit, or fewer files"
        )
    counts = allocate_pages(needs, len(usable), loss_tolerance)
    shapes = {name: smallest_shape(sizes[name], needs[name], counts[name]) for name in sizes}
    largest = max(shape.block for shape in shapes.values())
    made = BlockPlan(
        shapes, tuple(usable), limit, largest, DEFAULT_LOSS_TOLERANCE if loss_tolerance is None else loss_tolerance
    )
    if (
        loss_tolerance is not None
        and len(sizes) > 1
        and made.expendable_pages < math.floor(loss_tolerance * len(usable))
    ):
        raise UsageError(
            f"with {len(sizes)} segments, any {made.expendable_pages:,} of {len(usable):,} pages may be lost "
            f"({made.loss_tolerance:.0%}), not {loss_tolerance:.0%}: "
            "give --segments one, a lower --may-be-lost, or more pages"
        )
    return made


def pages_with_room(pages: Sequence[CarrierPage], limit: int, block_size: int, *, signed: bool) -> list[CarrierPage]:
    """Return the pages that can carry a block of so many bytes."""
    cost = page_overhead(block_size, signed=signed)
    return [page for page in pages if page.size + cost <= limit]


def allocate_pages(needs: Mapping[str, int], pages: int, loss_tolerance: float | None = None) -> dict[str, int]:
    """Return how many pages each segment gets: what it needs, a few to spare, and of the others in proportion.

    Of two pages, both are lost sooner than half of a hundred are: so small segments get some more than their share.
    may_be_lost: the share of all pages that each segment must be able to lose. It then gets as many to spare, or as
        many as there are for each.

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
    left = pages - total - reserve * len(needs)
    exact = {name: need + reserve + left * need / total for name, need in needs.items()}
    counts = {name: int(value) for name, value in exact.items()}
    by_rest = sorted(needs, key=lambda name: (counts[name] - exact[name], name))
    for name in by_rest[: pages - sum(counts.values())]:
        counts[name] += 1
    return counts


def _choose_block_size(
    sizes: Mapping[str, int], pages: Sequence[CarrierPage], limit: int, loss_tolerance: float | None, *, signed: bool
) -> int:
    """Return the smallest block that bears the loss, else the one that bears most; 0 if there is no room at all."""
    wanted = DEFAULT_LOSS_TOLERANCE if loss_tolerance is None else loss_tolerance
    best, most = 0, float("-inf")
    block = float(BLOCK_UNIT)
    largest = max(limit, BLOCK_UNIT)
    while block <= largest:
        size = int(block) // BLOCK_UNIT * BLOCK_UNIT
        count = min(len(pages_with_room(pages, limit, size, signed=signed)), MAX_BLOCKS)
        if count == 0:
            break
        bears = _tolerance(
            {name: count_needed_blocks(each, size) for name, each in sizes.items()}, count, loss_tolerance
        )
        if bears >= wanted:
            return size
        if bears > most:
            best, most = size, bears
        block = max(block * _BLOCK_SIZE_STEP, block + BLOCK_UNIT)
    return best


def _tolerance(needs: Mapping[str, int], pages: int, loss_tolerance: float | None) -> float:
    """Return the share of pages that may be lost, as `plan` means it; below 0 if there are too few."""
    total = sum(needs.values())
    if total > pages:
        return 1 - total / pages
    counts = allocate_pages(needs, pages, loss_tolerance)
    if loss_tolerance is not None:
        return min(counts[name] - needs[name] for name in needs) / pages
    return min(1 - needs[name] / counts[name] for name in needs)


BlockLocation = tuple[str, int]
"""A segment and the number of a block in it."""


def sort_pages_by_hash(keys: Iterable[str]) -> list[str]:
    """Return pages in an order in which neighbours are none on the site: what archives miss, they miss by folders."""
    return sorted(keys, key=lambda key: hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest())


def assign_blocks(
    counts: Mapping[str, int], pages: Iterable[str], previous: Mapping[str, BlockLocation] | None = None
) -> dict[str, BlockLocation]:
    """Return which block each page carries: as many pages for each segment as `counts` says.

    before: what pages carried; a page keeps its segment and number if there is still one such.
    """
    usable = set(pages)
    placed: dict[str, BlockLocation] = {}
    free = {name: set(range(count)) for name, count in counts.items()}
    for page, (name, index) in (previous or {}).items():
        if page in usable and index in free.get(name, ()):
            placed[page] = (name, index)
            free[name].remove(index)
    waiting = iter([page for page in sort_pages_by_hash(usable) if page not in placed])
    for name in sorted(free):
        for index, page in zip(sorted(free[name]), waiting, strict=False):
            placed[page] = (name, index)
    return placed


def locate_unlisted_block(key: str, counts: Mapping[str, int]) -> BlockLocation | None:
    """Return the block of a page that nobody placed, by its name alone: the same for every process and client."""
    total = sum(counts.values())
    if total == 0:
        return None
    number = int.from_bytes(hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()[:8], "big") % total
    for name in sorted(counts):
        if number < counts[name]:
            return name, number
        number -= counts[name]
    return None
