"""Recovery of server files from collected blocks: selection of versions, decoding, decryption and extraction."""

import hashlib
import io
import itertools
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from unlost.errors import InputError
from unlost.report.format import format_count
from unlost.vault import erasure_code
from unlost.vault.block import KIND_FILES, KIND_MANIFEST, BlockHeader
from unlost.vault.collector import BlockCollector, BlockGroup, CollectedBlock
from unlost.vault.encryption import DecryptionKeys, decrypt
from unlost.vault.state import VaultManifest, parse_manifest
from unlost.vault.tar_archive import Unpacker, UnpackResult, atomic_new_folder

_MAX_ATTEMPTS = 400  # selections of blocks that are tried where some are forged: each costs one decoding


@dataclass(frozen=True, slots=True)
class IncompleteSegment:
    """A version that there are too few blocks of. missing: how many more are needed.

    pages: the pages that carried the others, as far as the manifest says; any `missing` of them suffice.
    """

    segment: str
    name: str
    version: str
    found: int
    needed: int
    pages: tuple[str, ...] = ()

    @property
    def missing(self) -> int:
        """How many more blocks are needed."""
        return self.needed - self.found


@dataclass(frozen=True, slots=True)
class CompleteSegment:
    """A version of a segment that can be had. newest: when it was last seen, 14 digits or empty."""

    segment: str
    version: str
    header: BlockHeader | None
    wrap: str
    last_seen: str


@dataclass(slots=True)
class VaultRecovery:
    """What came back. whole: by segment, the version that was taken. short: segments of which none could be.

    older: segments of which a newer version than the one taken was seen in part.
    """

    complete: dict[str, CompleteSegment] = field(default_factory=dict)
    incomplete: list[IncompleteSegment] = field(default_factory=list)
    newer_incomplete: list[IncompleteSegment] = field(default_factory=list)
    forged: int = 0
    unpacked: UnpackResult = field(default_factory=UnpackResult)
    manifest: VaultManifest | None = None


def is_complete(recovery: VaultRecovery) -> bool:
    """Return whether every segment that is known came back."""
    known = {each.id for each in recovery.manifest.segments} if recovery.manifest else set()
    return not recovery.incomplete and known <= recovery.complete.keys() and bool(recovery.complete)


def recover_files(
    collector: BlockCollector, target: Path | None, keys: DecryptionKeys, max_bytes: int | None = None
) -> VaultRecovery:
    """Decode all segments, the newest whole version of each, and unpack them into a new folder.

    target: None only to see what could be. most: bytes that a segment may unpack to; None for what is usual.
    Raises InputError if no blocks were found, or keys do not open them.
    """
    if not collector.groups and not collector.raw:
        raise InputError(
            f"no blocks in {format_count(collector.pages, 'page')}: are these pages of a site with a vault?"
        )
    done = VaultRecovery()
    with tempfile.TemporaryDirectory() as folder:
        contents = _DecodedSegments(collector, Path(folder))
        done.manifest = _latest_manifest(contents, collector, keys)
        chosen = _choose_versions(contents, done)
        _list_incomplete(collector, contents, done)
        done.forged = contents.forged
        if target is not None and chosen:
            with atomic_new_folder(target) as aside:
                unpacking = Unpacker(aside, max_bytes)
                for whole, file in chosen:
                    _unpack_segment(file, whole, keys, unpacking)
                done.unpacked = unpacking.finish()
    return done


def _unpack_segment(file: Path, segment: CompleteSegment, keys: DecryptionKeys, unpacker: Unpacker) -> None:
    with file.open("rb") as packed:
        if not segment.wrap.endswith(".age"):
            unpacker.add(packed, file.stat().st_size)
            return
        content = decrypt(packed.read(), keys)
    unpacker.add(io.BytesIO(content), len(content))


SegmentVersion = tuple[str, str, str]
"""A version: its kind, its segment, and its hash."""


class _DecodedSegments:
    """The versions that there are enough blocks of; each is decoded when it is asked for, into a file of its own."""

    def __init__(self, collector: BlockCollector, folder: Path) -> None:
        self.forged = 0
        self._collector, self._folder = collector, folder
        self._groups: dict[SegmentVersion, list[tuple[BlockGroup, BlockHeader]]] = {}
        self._raw: dict[SegmentVersion, tuple[str, int, int]] = {}
        self._decoded_files: dict[SegmentVersion, tuple[CompleteSegment, Path] | None] = {}
        for group, label in collector.shapes():
            if len(collector.groups[group]) >= label.shape.needed:
                self._groups.setdefault((label.kind, label.segment, label.version), []).append((group, label))
        for (segment, version, wrap), (offset, size) in collector.raw.items():
            self._raw[KIND_FILES, segment, version] = (wrap, offset, size)

    def versions(self, kind: str) -> list[SegmentVersion]:
        """Return the versions of a kind that could be had if no block of them is forged, those seen last first."""
        found = [name for name in {**self._groups, **self._raw} if name[0] == kind]
        return sorted(found, key=lambda name: (self._last_seen(name), name), reverse=True)

    def get(self, name: SegmentVersion) -> tuple[CompleteSegment, Path] | None:
        """Return a version and the file with its content; None if it cannot be had."""
        if name not in self._decoded_files:
            self._decoded_files[name] = self._decode(name)
        return self._decoded_files[name]

    def __contains__(self, name: SegmentVersion) -> bool:
        """Return whether a version can be had."""
        return self.get(name) is not None

    def may_be_decodable(self, name: SegmentVersion) -> bool:
        """Return whether a version can be had, as far as it was tried: nothing is decoded for that."""
        return (
            self._decoded_files[name] is not None
            if name in self._decoded_files
            else name in self._groups or name in self._raw
        )

    def _last_seen(self, name: SegmentVersion) -> str:
        return max((self._collector.last_seen.get(group, "") for group, _ in self._groups.get(name, ())), default="")

    def _decode(self, name: SegmentVersion) -> tuple[CompleteSegment, Path] | None:
        file = self._folder / f"{len(self._decoded_files)}"
        gathering = self._collector
        if name in self._raw:
            wrap, offset, size = self._raw[name]
            gathering.file.seek(offset)
            file.write_bytes(gathering.file.read(size))
            return CompleteSegment(name[1], name[2], None, wrap, self._last_seen(name)), file
        for group, label in self._groups.get(name, ()):
            with file.open("w+b") as target:
                if decode_group(gathering, group, label, target):
                    return _complete_segment(label, gathering, group), file
            self.forged += 1
        file.unlink(missing_ok=True)
        return None


def _complete_segment(header: BlockHeader, collector: BlockCollector, group: BlockGroup) -> CompleteSegment:
    return CompleteSegment(header.segment, header.version, header, header.wrap, collector.last_seen.get(group, ""))


def decode_group(collector: BlockCollector, group: BlockGroup, header: BlockHeader, target: BinaryIO) -> bool:
    """Write what a version's blocks code, and return whether it is that: its hash is the version.

    Blocks may be forged, with hashes of their own that are right. Then others are left out, one by one, as far as there
    are more than needed.
    """
    for places in itertools.islice(_block_selections(collector.groups[group], header.shape.needed), _MAX_ATTEMPTS):
        shape = replace(header.shape, count=max(header.shape.count, max(places) + 1))
        erasure_code.decode_blocks(collector.file, places, shape, target)
        target.seek(0)
        if _hash_file(target) == header.version:
            return True
    return False


def _hash_file(file: BinaryIO) -> str:
    hashed = hashlib.sha256()
    while piece := file.read(1 << 20):
        hashed.update(piece)
    return hashed.hexdigest()


def _block_selections(blocks: Mapping[int, list[CollectedBlock]], needed: int) -> Iterator[dict[int, int]]:
    """Yield sets of blocks to decode: first all, then all but one, or with another of the same number."""
    first = {index: kept[0].offset for index, kept in sorted(blocks.items())}
    yield first
    for index, kept in blocks.items():
        for other in kept[1:]:
            yield {**first, index: other.offset}
    if len(first) == needed:
        return
    indices = sorted(first)
    for gone in indices:
        yield {index: first[index] for index in indices if index != gone}
    # Forgers have pages of their own, next to each other in no order that is known: leave out runs of them.
    spare = len(indices) - needed
    for start in range(0, len(indices), max(1, spare // 2)):
        gone_run = set(indices[start : start + spare])
        yield {index: first[index] for index in indices if index not in gone_run}


def _latest_manifest(
    segments: _DecodedSegments, collector: BlockCollector, keys: DecryptionKeys
) -> VaultManifest | None:
    """Return the last manifest of which all segments are whole, else the last one; None if none can be opened."""
    found: list[tuple[str, VaultManifest]] = []
    for name in segments.versions(KIND_MANIFEST):
        content = segments.get(name)
        if content is None:
            continue
        try:
            found.append((content[0].last_seen, _read_manifest(*content, keys)))
        except InputError:
            collector.problems["manifest-not-opened"] += 1
    # A page may carry two of them during an update: then both were seen last.
    found.sort(key=lambda each: (each[0], each[1].number), reverse=True)
    settled = (each for _, each in found if _is_fully_decodable(each, segments))
    return next(settled, found[0][1] if found else None)


def _read_manifest(segment: CompleteSegment, file: Path, keys: DecryptionKeys) -> VaultManifest:
    content = file.read_bytes()
    return parse_manifest(decrypt(content, keys) if segment.wrap.endswith(".age") else content)


def _is_fully_decodable(manifest: VaultManifest, segments: _DecodedSegments) -> bool:
    """Return whether all that a manifest names can be had; one that names nothing was made by nobody who packs."""
    return bool(manifest.segments) and all(
        (KIND_FILES, each.id, each.version) in segments for each in manifest.segments
    )


def _choose_versions(segments: _DecodedSegments, recovery: VaultRecovery) -> list[tuple[CompleteSegment, Path]]:
    """Return for each segment the version that the manifest names, else the one seen last.

    Segments that the manifest does not know are of another version of the files: they count only if it is not whole.
    """
    manifest = recovery.manifest
    wanted = {each.id: each.version for each in manifest.segments} if manifest else {}
    is_settled = manifest is not None and _is_fully_decodable(manifest, segments)
    by_segment: dict[str, list[SegmentVersion]] = {}
    for name in segments.versions(KIND_FILES):
        if not is_settled or name[1] in wanted:
            by_segment.setdefault(name[1], []).append(name)
    chosen = []
    for segment, versions in sorted(by_segment.items()):
        # The order in which they were seen stays among all others.
        versions.sort(key=lambda name: name[2] != wanted.get(name[1]))
        best = next((found for name in versions if (found := segments.get(name)) is not None), None)
        if best is not None:
            recovery.complete[segment] = best[0]
            chosen.append(best)
    return chosen


def _list_incomplete(collector: BlockCollector, segments: _DecodedSegments, recovery: VaultRecovery) -> None:
    names = {each.id: each.name for each in recovery.manifest.segments} if recovery.manifest else {}
    is_settled = recovery.manifest is not None and _is_fully_decodable(recovery.manifest, segments)
    seen: set[str] = set()
    for group, label in collector.shapes():
        name = (label.kind, label.segment, label.version)
        if label.kind == KIND_MANIFEST or segments.may_be_decodable(name):
            continue
        there = collector.groups[group]
        carriers = (recovery.manifest.pages.get(label.segment, {}) if recovery.manifest else {}).items()
        pages = tuple(page for index, page in sorted(carriers) if index not in there)
        # What has enough and is not whole has forged ones among them: one true one more, at least.
        found = min(len(there), label.shape.needed - 1)
        short = IncompleteSegment(
            label.segment, names.get(label.segment, ""), label.version, found, label.shape.needed, pages
        )
        taken = recovery.complete.get(label.segment)
        if taken is None and (not is_settled or label.segment in names):
            recovery.incomplete.append(short)
            seen.add(label.segment)
        elif taken is None or collector.last_seen.get(group, "") > taken.last_seen:
            recovery.newer_incomplete.append(short)
    for each in recovery.manifest.segments if recovery.manifest else ():
        if each.id not in recovery.complete and each.id not in seen:
            pages = tuple(recovery.manifest.pages.get(each.id, {}).values()) if recovery.manifest else ()
            recovery.incomplete.append(IncompleteSegment(each.id, each.name, each.version, 0, each.shape.needed, pages))
