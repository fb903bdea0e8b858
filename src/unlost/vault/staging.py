"""What pages carry while one generation takes the place of another, so that one of them can always be recovered."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from unlost.errors import UsageError
from unlost.vault.generation import Generation
from unlost.vault.planning import CarrierPage, page_overhead
from unlost.vault.state import LiveBlock

LiveBlocks = dict[str, tuple[LiveBlock, ...]]


def live_blocks(generation: Generation) -> LiveBlocks:
    """Return what pages carry of one generation alone."""
    return {
        page: tuple((name, generation.number, index) for name, index in places)
        for page, places in generation.placement.items()
    }


def stage_update(
    old: Generation,
    new: Generation,
    pages: Collection[CarrierPage],
    limit: int,
    *,
    signed: bool,
    unarchived: Collection[str] = (),
) -> LiveBlocks:
    """Return what pages carry so that the old generation stays whole until the new one is.

    Pages that have room carry the blocks of both. Where there is none, a page carries either: the new ones as long as
    enough old ones stay, first those pages that no archive holds (`not_held`). Raises UsageError if that leaves too few
    of the new.
    """
    sizes = {page.key: page.size for page in pages}
    live: LiveBlocks = {}
    crowded: list[str] = []
    for key in sorted({*old.placement, *new.placement} & sizes.keys()):
        blocks = _merge_blocks(old, new, key)
        cost = sum(page_overhead(_block_size(old, new, each), signed=signed) for each in blocks)
        if sizes[key] + cost <= limit or not (old.placement.get(key) and new.placement.get(key)):
            live[key] = blocks
        else:
            crowded.append(key)
    _assign_crowded_pages(old, new, sorted(crowded, key=lambda key: (key not in unarchived, key)), live)
    short = _count_missing_blocks(new, live)
    if short:
        raise UsageError(
            f"{short} pages have no room for the blocks of both versions, and too few are left for one each: "
            "give a higher --page-limit, --extra-pages, or --at-once to do without a version that can be recovered "
            "until archives have the new one"
        )
    return live


def _merge_blocks(old: Generation, new: Generation, key: str) -> tuple[LiveBlock, ...]:
    """Return the blocks of both on a page; those of segments that did not change once."""
    found: dict[tuple[object, ...], LiveBlock] = {}
    for generation in (new, old):
        for name, index in generation.placement.get(key, ()):
            found.setdefault((*generation.segment(name).group, index), (name, generation.number, index))
    return tuple(found.values())


def _block_size(old: Generation, new: Generation, block: LiveBlock) -> int:
    generation = old if block[1] == old.number else new
    return generation.segment(block[0]).shape.block


def _assign_crowded_pages(old: Generation, new: Generation, crowded: list[str], live: LiveBlocks) -> None:
    left = Counter(name for places in old.placement.values() for name, _ in places)
    for key in crowded:
        is_spare = all(left[name] > old.segment(name).shape.needed for name, _ in old.placement[key])
        chosen = new if is_spare else old
        live[key] = tuple((name, chosen.number, index) for name, index in chosen.placement[key])
        if is_spare:
            left.subtract(name for name, _ in old.placement[key])


def _count_missing_blocks(new: Generation, live: LiveBlocks) -> int:
    """Return how many blocks of the new generation are missing in pages, of those that are needed."""
    groups = {(segment.id, new.number): segment for segment in new.segments}
    seen = Counter((name, number) for blocks in live.values() for name, number, _ in blocks)
    return sum(max(0, segment.shape.needed - seen[each]) for each, segment in groups.items())


@dataclass(frozen=True, slots=True)
class SegmentHoldings:
    """Of a segment, how many different blocks of its version are held, and how many are needed."""

    name: str
    version: str
    archived: int
    needed: int

    @property
    def is_recoverable(self) -> bool:
        """Whether it can be recovered."""
        return self.archived >= self.needed


def segment_holdings(
    generation: Generation, indices: Mapping[tuple[object, ...], Collection[int]]
) -> list[SegmentHoldings]:
    """Return what is held of a generation's files. indices: numbers of the blocks that are held, by their group."""
    return [
        SegmentHoldings(segment.name, segment.version, len(set(indices.get(segment.group, ()))), segment.shape.needed)
        for segment in generation.files
    ]
