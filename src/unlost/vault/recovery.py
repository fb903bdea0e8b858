"""Recovery of server files from collected blocks: choosing versions, decoding, decryption and extraction."""

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

_MAX_ATTEMPTS = 400  # selections of blocks to decode if some are forged

SegmentVersion = tuple[str, str, str]
"""Kind, segment id and hash of a version."""


@dataclass(frozen=True, slots=True)
class IncompleteSegment:
    """A version with too few blocks.

    Attributes:
        segment: Id of the segment.
        name: Its name according to the manifest; empty if unknown.
        version: Hash of the version.
        found: Number of usable blocks.
        needed: Number of blocks needed.
        pages: Pages with the missing blocks according to the manifest; any `missing` of them suffice.
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
    """A decoded version of a segment.

    Attributes:
        segment: Id of the segment.
        version: Hash of the version.
        header: Header of one of its blocks; None for a segment served as a plain file.
        wrap: Type of the content, as a file extension.
        last_seen: Date of its latest capture: 14 digits, or empty if unknown.
    """

    segment: str
    version: str
    header: BlockHeader | None
    wrap: str
    last_seen: str


@dataclass(slots=True)
class VaultRecovery:
    """Result of a recovery.

    Attributes:
        complete: The recovered version of each segment, by segment id.
        incomplete: Segments of which no version was recovered.
        newer_incomplete: Incomplete versions that are newer than the recovered ones.
        forged: Number of versions that could not be decoded although there were enough blocks.
        unpacked: Result of unpacking.
        manifest: The manifest used; None if none could be read.
    """

    complete: dict[str, CompleteSegment] = field(default_factory=dict)
    incomplete: list[IncompleteSegment] = field(default_factory=list)
    newer_incomplete: list[IncompleteSegment] = field(default_factory=list)
    forged: int = 0
    unpacked: UnpackResult = field(default_factory=UnpackResult)
    manifest: VaultManifest | None = None


def is_complete(recovery: VaultRecovery) -> bool:
    """Return whether all known segments were recovered."""
    known = {each.id for each in recovery.manifest.segments} if recovery.manifest else set()
    return not recovery.incomplete and known <= recovery.complete.keys() and bool(recovery.complete)


def recover_files(
    collector: BlockCollector, target: Path | None, keys: DecryptionKeys, max_bytes: int | None = None
) -> VaultRecovery:
    """Decode the newest complete version of each segment and unpack it into a new folder.

    Args:
        collector: The collected blocks.
        target: The folder; None to decode without unpacking.
        keys: Keys for decryption.
        max_bytes: Maximum unpacked size of a segment; None for the default limits of `tar_archive`.

    Raises:
        InputError: There are no blocks, or the keys do not fit.
    """
    if not collector.groups and not collector.raw:
        raise InputError(
            f"no blocks in {format_count(collector.pages, 'page')}: are these pages of a site with a vault?"
        )
    recovery = VaultRecovery()
    with tempfile.TemporaryDirectory() as folder:
        contents = _DecodedSegments(collector, Path(folder))
        recovery.manifest = _latest_manifest(contents, collector, keys)
        chosen = _choose_versions(contents, recovery)
        _list_incomplete(collector, contents, recovery)
        recovery.forged = contents.forged
        if target is not None and chosen:
            with atomic_new_folder(target) as temporary:
                unpacker = Unpacker(temporary, max_bytes)
                for segment, file in chosen:
                    _unpack_segment(file, segment, keys, unpacker)
                recovery.unpacked = unpacker.finish()
    return recovery


def _unpack_segment(file: Path, segment: CompleteSegment, keys: DecryptionKeys, unpacker: Unpacker) -> None:
    with file.open("rb") as packed:
        if not segment.wrap.endswith(".age"):
            unpacker.add(packed, file.stat().st_size)
            return
        content = decrypt(packed.read(), keys)
    unpacker.add(io.BytesIO(content), len(content))


class _DecodedSegments:
    """Versions with enough blocks. Each is decoded on first use, into a temporary file."""

    def __init__(self, collector: BlockCollector, folder: Path) -> None:
        self.forged = 0
        self._collector, self._folder = collector, folder
        self._groups: dict[SegmentVersion, list[tuple[BlockGroup, BlockHeader]]] = {}
        self._raw: dict[SegmentVersion, tuple[str, int, int]] = {}
        self._decoded_files: dict[SegmentVersion, tuple[CompleteSegment, Path] | None] = {}
        for group, header in collector.shapes():
            if len(collector.groups[group]) >= header.shape.needed:
                self._groups.setdefault((header.kind, header.segment, header.version), []).append((group, header))
        for (segment, version, wrap), (offset, size) in collector.raw.items():
            self._raw[KIND_FILES, segment, version] = (wrap, offset, size)

    def versions(self, kind: str) -> list[SegmentVersion]:
        """Return the versions of a kind that have enough blocks, the last seen first."""
        names = [name for name in {**self._groups, **self._raw} if name[0] == kind]
        return sorted(names, key=lambda name: (self._last_seen(name), name), reverse=True)

    def get(self, name: SegmentVersion) -> tuple[CompleteSegment, Path] | None:
        """Return a version and the file with its content; None if it cannot be decoded."""
        if name not in self._decoded_files:
            self._decoded_files[name] = self._decode(name)
        return self._decoded_files[name]

    def __contains__(self, name: SegmentVersion) -> bool:
        """Return whether a version can be decoded."""
        return self.get(name) is not None

    def may_be_decodable(self, name: SegmentVersion) -> bool:
        """Return whether a version can be decoded, as far as known, without decoding it."""
        return (
            self._decoded_files[name] is not None
            if name in self._decoded_files
            else name in self._groups or name in self._raw
        )

    def _last_seen(self, name: SegmentVersion) -> str:
        return max((self._collector.last_seen.get(group, "") for group, _ in self._groups.get(name, ())), default="")

    def _decode(self, name: SegmentVersion) -> tuple[CompleteSegment, Path] | None:
        file = self._folder / f"{len(self._decoded_files)}"
        collector = self._collector
        if name in self._raw:
            wrap, offset, size = self._raw[name]
            collector.file.seek(offset)
            file.write_bytes(collector.file.read(size))
            return CompleteSegment(name[1], name[2], None, wrap, self._last_seen(name)), file
        for group, header in self._groups.get(name, ()):
            with file.open("w+b") as target:
                if decode_group(collector, group, header, target):
                    return _complete_segment(header, collector, group), file
            self.forged += 1
        file.unlink(missing_ok=True)
        return None


def _complete_segment(header: BlockHeader, collector: BlockCollector, group: BlockGroup) -> CompleteSegment:
    return CompleteSegment(header.segment, header.version, header, header.wrap, collector.last_seen.get(group, ""))


def decode_group(collector: BlockCollector, group: BlockGroup, header: BlockHeader, target: BinaryIO) -> bool:
    """Decode a version and return whether the result has the right hash.

    Blocks may be forged, with correct hashes of their own. If decoding fails, other selections of blocks are tried.
    """
    for offsets in itertools.islice(_block_selections(collector.groups[group], header.shape.needed), _MAX_ATTEMPTS):
        shape = replace(header.shape, count=max(header.shape.count, max(offsets) + 1))
        erasure_code.decode_blocks(collector.file, offsets, shape, target)
        target.seek(0)
        if _hash_file(target) == header.version:
            return True
    return False


def _hash_file(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(1 << 20):
        digest.update(chunk)
    return digest.hexdigest()


def _block_selections(blocks: Mapping[int, list[CollectedBlock]], needed: int) -> Iterator[dict[int, int]]:
    """Yield selections of blocks to decode: all, then all but one or with a variant, then all but a run of blocks."""
    first = {index: variants[0].offset for index, variants in sorted(blocks.items())}
    yield first
    for index, variants in blocks.items():
        for other in variants[1:]:
            yield {**first, index: other.offset}
    if len(first) == needed:
        return
    indices = sorted(first)
    for excluded in indices:
        yield {index: first[index] for index in indices if index != excluded}
    # If several blocks are forged, runs of consecutive indices are excluded.
    spare = len(indices) - needed
    for start in range(0, len(indices), max(1, spare // 2)):
        excluded_run = set(indices[start : start + spare])
        yield {index: first[index] for index in indices if index not in excluded_run}


def _latest_manifest(
    segments: _DecodedSegments, collector: BlockCollector, keys: DecryptionKeys
) -> VaultManifest | None:
    """Return the latest manifest whose segments can all be decoded, else the latest one; None if none can be read."""
    manifests: list[tuple[str, VaultManifest]] = []
    for name in segments.versions(KIND_MANIFEST):
        content = segments.get(name)
        if content is None:
            continue
        try:
            manifests.append((content[0].last_seen, _read_manifest(*content, keys)))
        except InputError:
            collector.problems["manifest-not-opened"] += 1
    # During a staged update a page carries two manifests with the same date; the generation number decides.
    manifests.sort(key=lambda each: (each[0], each[1].number), reverse=True)
    decodable = (each for _, each in manifests if _is_fully_decodable(each, segments))
    return next(decodable, manifests[0][1] if manifests else None)


def _read_manifest(segment: CompleteSegment, file: Path, keys: DecryptionKeys) -> VaultManifest:
    content = file.read_bytes()
    return parse_manifest(decrypt(content, keys) if segment.wrap.endswith(".age") else content)


def _is_fully_decodable(manifest: VaultManifest, segments: _DecodedSegments) -> bool:
    """Return whether all segments of a manifest can be decoded. An empty one is forged, since none is ever written."""
    return bool(manifest.segments) and all(
        (KIND_FILES, each.id, each.version) in segments for each in manifest.segments
    )


def _choose_versions(segments: _DecodedSegments, recovery: VaultRecovery) -> list[tuple[CompleteSegment, Path]]:
    """Return for each segment the version named by the manifest, else the one seen last.

    If all segments of the manifest can be decoded, other segments are ignored: they belong to another generation.
    """
    manifest = recovery.manifest
    manifest_versions = {each.id: each.version for each in manifest.segments} if manifest else {}
    is_settled = manifest is not None and _is_fully_decodable(manifest, segments)
    by_segment: dict[str, list[SegmentVersion]] = {}
    for name in segments.versions(KIND_FILES):
        if not is_settled or name[1] in manifest_versions:
            by_segment.setdefault(name[1], []).append(name)
    chosen = []
    for segment, versions in sorted(by_segment.items()):
        # The sort is stable, so other versions remain in the order in which they were last seen.
        versions.sort(key=lambda name: name[2] != manifest_versions.get(name[1]))
        best = next((decoded for name in versions if (decoded := segments.get(name)) is not None), None)
        if best is not None:
            recovery.complete[segment] = best[0]
            chosen.append(best)
    return chosen


def _list_incomplete(collector: BlockCollector, segments: _DecodedSegments, recovery: VaultRecovery) -> None:
    names = {each.id: each.name for each in recovery.manifest.segments} if recovery.manifest else {}
    is_settled = recovery.manifest is not None and _is_fully_decodable(recovery.manifest, segments)
    seen: set[str] = set()
    for group, header in collector.shapes():
        name = (header.kind, header.segment, header.version)
        if header.kind == KIND_MANIFEST or segments.may_be_decodable(name):
            continue
        blocks = collector.groups[group]
        carriers = (recovery.manifest.pages.get(header.segment, {}) if recovery.manifest else {}).items()
        pages = tuple(page for index, page in sorted(carriers) if index not in blocks)
        # If a version has enough blocks but cannot be decoded, some are forged, and at least one more is needed.
        found = min(len(blocks), header.shape.needed - 1)
        incomplete = IncompleteSegment(
            header.segment, names.get(header.segment, ""), header.version, found, header.shape.needed, pages
        )
        recovered = recovery.complete.get(header.segment)
        if recovered is None and (not is_settled or header.segment in names):
            recovery.incomplete.append(incomplete)
            seen.add(header.segment)
        elif recovered is None or collector.last_seen.get(group, "") > recovered.last_seen:
            recovery.newer_incomplete.append(incomplete)
    for each in recovery.manifest.segments if recovery.manifest else ():
        if each.id not in recovery.complete and each.id not in seen:
            pages = tuple(recovery.manifest.pages.get(each.id, {}).values()) if recovery.manifest else ()
            recovery.incomplete.append(IncompleteSegment(each.id, each.name, each.version, 0, each.shape.needed, pages))
