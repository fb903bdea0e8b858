"""One complete version of all files: its segments, and which page carries which of their blocks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unlost.vault.block import KIND_MANIFEST, BlockHeader
from unlost.vault.coding import stripe_width
from unlost.vault.shape import CodeShape

ManifestEntry = tuple[str, str, int, int, int]
"""A file in a manifest: its name, kind, size in bytes, mode, and time of change in nanoseconds."""


@dataclass(frozen=True, slots=True)
class VaultSegment:
    """A part of the files, coded.

    name: what it is called; id: what it is called in pages. kind: files, or the manifest of all of them.
    source: the SHA-256 of what was packed, before it was compressed and sealed: tells whether it changed.
    version: the SHA-256 of what was coded. wrap: what that is. entries: the files in it.
    """

    name: str
    id: str
    kind: str
    source: str
    version: str
    shape: CodeShape
    wrap: str
    entries: tuple[ManifestEntry, ...] = ()

    @property
    def blocks_name(self) -> str:
        """The name of the file with its blocks: all that tells where in it a block is."""
        shape = self.shape
        numbers = f"{shape.needed}-{shape.count}-{shape.block}-{stripe_width(shape)}"
        return f"{self.id}-{self.version[:24]}-{numbers}.blocks"

    def block_header(self, index: int, sha256: str) -> BlockHeader:
        """Return what one of its blocks says of itself."""
        return BlockHeader(self.kind, self.id, self.version, self.shape, self.wrap, index, sha256)

    @property
    def group(self) -> tuple[str, str, str, int, int, int]:
        """What its blocks share, as `Label.group` has it."""
        return self.block_header(0, "").group


BlockPlacement = Mapping[str, tuple[tuple[str, int], ...]]
"""By the key of a page, the blocks that it carries: the id of a segment, and a number."""


@dataclass(frozen=True, slots=True)
class Generation:
    """Segments and where their blocks go. number: from 1 on."""

    number: int
    segments: tuple[VaultSegment, ...]
    placement: BlockPlacement

    def segment(self, name: str) -> VaultSegment:
        """Return the segment with an id. Raises KeyError."""
        return next(each for each in self.segments if each.id == name)

    @property
    def files(self) -> tuple[VaultSegment, ...]:
        """All segments but the manifest."""
        return tuple(each for each in self.segments if each.kind != KIND_MANIFEST)

    def pages_of(self, segment: VaultSegment) -> dict[int, str]:
        """Return which page carries which block of a segment."""
        places = ((page, place) for page, places in self.placement.items() for place in places)
        return {index: page for page, (name, index) in places if name == segment.id}


def generation_to_json(generation: Generation) -> dict[str, Any]:
    """Return it as JSON has it."""
    return {
        "number": generation.number,
        "segments": [segment_to_json(each) for each in generation.segments],
        "placement": {page: [list(place) for place in places] for page, places in generation.placement.items()},
    }


def segment_to_json(segment: VaultSegment) -> dict[str, Any]:
    """Return it as JSON has it."""
    shape = segment.shape
    return {
        "name": segment.name, "id": segment.id, "kind": segment.kind, "source": segment.source, "version": segment.version,
        "size": shape.size, "block": shape.block, "needed": shape.needed, "count": shape.count, "wrap": segment.wrap,
        "files": [list(entry) for entry in segment.entries],
    }  # fmt: skip


def segment_from_json(value: Mapping[str, Any]) -> VaultSegment:
    """Return what `segment_object` made. Raises KeyError, TypeError or ValueError for anything else."""
    shape = CodeShape(int(value["size"]), int(value["block"]), int(value["needed"]), int(value["count"]))
    entries = tuple((str(e[0]), str(e[1]), int(e[2]), int(e[3]), int(e[4])) for e in value["files"])
    name, number, kind, source, version = (str(value[each]) for each in ("name", "id", "kind", "source", "version"))
    return VaultSegment(name, number, kind, source, version, shape, str(value["wrap"]), entries)


def generation_from_json(value: Mapping[str, Any]) -> Generation:
    """Return what `generation_object` made. Raises as `segment_of`."""
    placement = {
        str(page): tuple((str(name), int(index)) for name, index in places)
        for page, places in value["placement"].items()
    }
    return Generation(int(value["number"]), tuple(segment_from_json(each) for each in value["segments"]), placement)
