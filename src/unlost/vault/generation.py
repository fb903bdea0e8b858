"""One complete version of all files: its segments, and which page carries which of their blocks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unlost.vault.block import MANIFEST, Label
from unlost.vault.coding import stripe_of
from unlost.vault.shape import Shape

Entry = tuple[str, str, int, int, int]
"""A file in a manifest: its name, kind, size in bytes, mode, and time of change in nanoseconds."""


@dataclass(frozen=True, slots=True)
class Segment:
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
    shape: Shape
    wrap: str
    entries: tuple[Entry, ...] = ()

    @property
    def blocks_name(self) -> str:
        """The name of the file with its blocks: all that tells where in it a block is."""
        shape = self.shape
        numbers = f"{shape.needed}-{shape.count}-{shape.block}-{stripe_of(shape)}"
        return f"{self.id}-{self.version[:24]}-{numbers}.blocks"

    def label(self, index: int, sha256: str) -> Label:
        """Return what one of its blocks says of itself."""
        return Label(self.kind, self.id, self.version, self.shape, self.wrap, index, sha256)

    @property
    def group(self) -> tuple[str, str, str, int, int, int]:
        """What its blocks share, as `Label.group` has it."""
        return self.label(0, "").group


Placement = Mapping[str, tuple[tuple[str, int], ...]]
"""By the key of a page, the blocks that it carries: the id of a segment, and a number."""


@dataclass(frozen=True, slots=True)
class Generation:
    """Segments and where their blocks go. number: from 1 on."""

    number: int
    segments: tuple[Segment, ...]
    placement: Placement

    def segment(self, name: str) -> Segment:
        """Return the segment with an id. Raises KeyError."""
        return next(each for each in self.segments if each.id == name)

    @property
    def files(self) -> tuple[Segment, ...]:
        """All segments but the manifest."""
        return tuple(each for each in self.segments if each.kind != MANIFEST)

    def pages_of(self, segment: Segment) -> dict[int, str]:
        """Return which page carries which block of a segment."""
        places = ((page, place) for page, places in self.placement.items() for place in places)
        return {index: page for page, (name, index) in places if name == segment.id}


def generation_object(generation: Generation) -> dict[str, Any]:
    """Return it as JSON has it."""
    return {
        "number": generation.number,
        "segments": [segment_object(each) for each in generation.segments],
        "placement": {page: [list(place) for place in places] for page, places in generation.placement.items()},
    }


def segment_object(each: Segment) -> dict[str, Any]:
    """Return it as JSON has it."""
    shape = each.shape
    return {
        "name": each.name, "id": each.id, "kind": each.kind, "source": each.source, "version": each.version,
        "size": shape.size, "block": shape.block, "needed": shape.needed, "count": shape.count, "wrap": each.wrap,
        "files": [list(entry) for entry in each.entries],
    }  # fmt: skip


def segment_of(value: Mapping[str, Any]) -> Segment:
    """Return what `segment_object` made. Raises KeyError, TypeError or ValueError for anything else."""
    shape = Shape(int(value["size"]), int(value["block"]), int(value["needed"]), int(value["count"]))
    entries = tuple((str(e[0]), str(e[1]), int(e[2]), int(e[3]), int(e[4])) for e in value["files"])
    name, number, kind, source, version = (str(value[each]) for each in ("name", "id", "kind", "source", "version"))
    return Segment(name, number, kind, source, version, shape, str(value["wrap"]), entries)


def generation_of(value: Mapping[str, Any]) -> Generation:
    """Return what `generation_object` made. Raises as `segment_of`."""
    placement = {
        str(page): tuple((str(name), int(index)) for name, index in places)
        for page, places in value["placement"].items()
    }
    return Generation(int(value["number"]), tuple(segment_of(each) for each in value["segments"]), placement)
