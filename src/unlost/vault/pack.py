"""Packs server files into a vault: segments, blocks, the manifest, and staged updates.

Unchanged segments keep their version, blocks and pages. During a staged update, pages carry the blocks of two
generations, so that one of them can always be recovered. Without it, an update replaces all blocks at once, and until
archives have captured enough pages again, nothing can be recovered: in the dissertation, this happened in week 16.
"""

import hashlib
import os
import secrets
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from unlost.atomic import atomic_path, name_os_errors
from unlost.errors import UsageError
from unlost.vault import erasure_code
from unlost.vault.block import KIND_FILES, KIND_MANIFEST
from unlost.vault.encryption import EncryptionOptions, encrypt
from unlost.vault.erasure_code import CodeShape, smallest_shape
from unlost.vault.pages import make_extra_pages
from unlost.vault.plan import (
    DEFAULT_LOSS_TOLERANCE,
    BlockLocation,
    BlockPlan,
    CarrierPage,
    assign_blocks,
    page_overhead,
    pages_with_room,
    plan_blocks,
)
from unlost.vault.server_files import ServerFile, divide_into_segments, parse_division, segment_id
from unlost.vault.state import (
    BLOCKS_FOLDER,
    MANIFEST_NAME,
    SIGNING_KEY_NAME,
    BlockPlacement,
    Generation,
    LiveBlock,
    ManifestEntry,
    Vault,
    VaultSegment,
    VaultSettings,
    lock_vault,
    save_vault,
    serialize_manifest,
    set_live_blocks,
)
from unlost.vault.tar_archive import write_tar_gz

LiveBlocks = dict[str, tuple[LiveBlock, ...]]

_MANIFEST_PAGES = 32  # maximum number of pages per needed block of the manifest; each pack changes all of them


def live_blocks(generation: Generation) -> LiveBlocks:
    """Return the blocks that each page carries of one generation alone."""
    return {
        page: tuple((name, generation.number, index) for name, index in locations)
        for page, locations in generation.placement.items()
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
    """Return the blocks that each page carries while archives replace an old generation by a new one.

    Pages with enough room carry the blocks of both generations. The others carry those of one: the new one as long as
    enough blocks of the old one remain, beginning with pages that no archive has.

    Args:
        old: The generation that archives have.
        new: The generation that replaces it.
        pages: Pages of the site.
        limit: Maximum size of a page in bytes.
        signed: Whether blocks are signed.
        unarchived: Keys of pages that no archive has.

    Raises:
        UsageError: Too few blocks of the new generation fit.
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
    missing_count = _count_missing_blocks(new, live)
    if missing_count:
        raise UsageError(
            f"{missing_count} pages have no room for the blocks of both versions, and too few are left for one each: "
            "give a higher --page-limit, --extra-pages, or --at-once to do without a version that can be recovered "
            "until archives have the new one"
        )
    return live


def _merge_blocks(old: Generation, new: Generation, key: str) -> tuple[LiveBlock, ...]:
    """Return the blocks of both generations on a page, without duplicates of unchanged segments."""
    blocks: dict[tuple[object, ...], LiveBlock] = {}
    for generation in (new, old):
        for name, index in generation.placement.get(key, ()):
            blocks.setdefault((*generation.segment(name).group, index), (name, generation.number, index))
    return tuple(blocks.values())


def _block_size(old: Generation, new: Generation, block: LiveBlock) -> int:
    generation = old if block[1] == old.number else new
    return generation.segment(block[0]).shape.block


def _assign_crowded_pages(old: Generation, new: Generation, crowded: list[str], live: LiveBlocks) -> None:
    old_block_counts = Counter(name for locations in old.placement.values() for name, _ in locations)
    for key in crowded:
        is_spare = all(old_block_counts[name] > old.segment(name).shape.needed for name, _ in old.placement[key])
        chosen = new if is_spare else old
        live[key] = tuple((name, chosen.number, index) for name, index in chosen.placement[key])
        if is_spare:
            old_block_counts.subtract(name for name, _ in old.placement[key])


def _count_missing_blocks(new: Generation, live: LiveBlocks) -> int:
    """Return how many of the needed blocks of the new generation no page carries."""
    groups = {(segment.id, new.number): segment for segment in new.segments}
    seen = Counter((name, number) for blocks in live.values() for name, number, _ in blocks)
    return sum(max(0, segment.shape.needed - seen[each]) for each, segment in groups.items())


@dataclass(frozen=True, slots=True)
class SegmentHoldings:
    """How many blocks of a segment archives have.

    Attributes:
        name: Name of the segment.
        version: Its version.
        archived: Number of distinct blocks of this version that archives have.
        needed: Number of blocks needed.
    """

    name: str
    version: str
    archived: int
    needed: int

    @property
    def is_recoverable(self) -> bool:
        """Whether archives have enough blocks."""
        return self.archived >= self.needed


def segment_holdings(
    generation: Generation, indices: Mapping[tuple[object, ...], Collection[int]]
) -> list[SegmentHoldings]:
    """Return the holdings of each segment of files.

    Args:
        generation: The generation.
        indices: Indices of the blocks that archives have, by `BlockHeader.group`.
    """
    return [
        SegmentHoldings(segment.name, segment.version, len(set(indices.get(segment.group, ()))), segment.shape.needed)
        for segment in generation.files
    ]


@dataclass(frozen=True, slots=True)
class PackOptions:
    """What to pack, and how.

    Attributes:
        files: Files to pack.
        pages: Pages of the site.
        settings: Settings stored in the vault.
        encryption: Whether and how to encrypt.
        loss_tolerance: As in `plan.plan_blocks`.
        block_size: Maximum size of a block in bytes; None to choose it.
        skips_staging: Whether to replace the old generation at once, without a staged update.
    """

    files: Sequence[ServerFile]
    pages: Sequence[CarrierPage]
    settings: VaultSettings
    encryption: EncryptionOptions
    loss_tolerance: float | None
    block_size: int | None = None
    skips_staging: bool = False


@dataclass(frozen=True, slots=True)
class PackResult:
    """Result of packing.

    Attributes:
        vault: The new vault.
        changed: Names of new and changed segments.
    """

    vault: Vault
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _PackedSegment:
    """A packed segment, before encryption and coding."""

    name: str
    source: str
    content: Path
    entries: tuple[ManifestEntry, ...]


def measure_packed_sizes(files: Sequence[ServerFile], segments: str, *, is_encrypted: bool) -> dict[str, int]:
    """Return the packed size of each segment in bytes, by packing it into a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        packed = _pack_segments(files, segments, Path(folder), None)
        return {each.name: each.content.stat().st_size + (400 if is_encrypted else 0) for each in packed}


def pack_vault(vault: Vault, options: PackOptions, now: str) -> PackResult:
    """Pack files into a vault and save it.

    Segments that did not change keep their version, blocks and pages. If the process is interrupted, the vault is
    either unchanged or completely updated.

    Args:
        vault: The vault, which may be empty.
        options: What to pack, and how.
        now: The current time, 14 digits, UTC.

    Raises:
        UsageError: There are too few pages.
        InputError: Another process is using the vault.
    """
    (vault.folder / BLOCKS_FOLDER).mkdir(parents=True, exist_ok=True)
    with name_os_errors(vault.folder), lock_vault(vault.folder) as folder:
        return _pack_vault(vault, options, now, folder)


def _pack_vault(vault: Vault, options: PackOptions, now: str, folder: Path) -> PackResult:
    """Pack files; `folder` is for unencrypted temporary files."""
    _ensure_signing_key(vault.folder, options.settings)
    # During a staged update, the older generation is the one that archives are known to have.
    old = vault.generations[0] if vault.generations else None
    packed = _pack_segments(options.files, options.settings.segments, folder, vault)
    new, changed = _build_generation(vault, old, packed, options, folder)
    if not changed and old is not None and _has_same_placement(vault, new):
        updated = replace(vault, settings=options.settings, pages=tuple(_all_pages(options)))
        save_vault(updated)
        return PackResult(updated, ())
    updated = replace(
        vault, settings=options.settings, pages=tuple(_all_pages(options)), generations=(*vault.generations, new)
    )
    if old is None or options.skips_staging or _has_no_live_blocks(vault):
        updated = set_live_blocks(updated, live_blocks(new), now)
        updated = replace(updated, generations=(new,))
    else:
        live = stage_update(old, new, updated.pages, options.settings.limit, signed=options.settings.signed)
        updated = replace(set_live_blocks(updated, live, now), generations=(old, new))
    save_vault(updated)
    return PackResult(updated, tuple(changed))


def finish_update(vault: Vault, now: str) -> Vault:
    """End a staged update: let pages carry only the newest generation, and save the vault.

    The caller must know that archives have enough blocks of the newest generation.
    """
    with lock_vault(vault.folder):
        updated = set_live_blocks(vault, live_blocks(vault.newest), now)
        updated = replace(updated, generations=(vault.newest,))
        save_vault(updated)
        return updated


def _has_no_live_blocks(vault: Vault) -> bool:
    return not vault.live


def _has_same_placement(vault: Vault, new: Generation) -> bool:
    return bool(vault.generations) and dict(vault.newest.placement) == dict(new.placement)


def _ensure_signing_key(folder: Path, settings: VaultSettings) -> None:
    file = folder / SIGNING_KEY_NAME
    if settings.signed and not file.exists():
        with atomic_path(file) as temporary:
            temporary.chmod(0o600)
            temporary.write_text(secrets.token_bytes(32).hex() + "\n", "ascii")


def _pack_segments(
    files: Sequence[ServerFile], segments: str, folder: Path, vault: Vault | None
) -> list[_PackedSegment]:
    packed = []
    for number, (name, members) in enumerate(
        divide_into_segments(files, parse_division(segments), _previous_segments(files, vault)).items()
    ):
        content = folder / f"{number}.tar.gz"
        with content.open("w+b") as target:
            source = write_tar_gz(members, target)
        entries = tuple((each.name, each.kind, each.size, each.mode, each.mtime) for each in members)
        packed.append(_PackedSegment(name, source, content, entries))
    return packed


def _previous_segments(files: Sequence[ServerFile], vault: Vault | None) -> dict[str, str]:
    """Return the previous segment of each unchanged file; changed files map to `changes-often`."""
    if vault is None or not vault.generations:
        return {}
    entries = {entry[0]: (entry, each.name) for each in vault.newest.files for entry in each.entries}
    segments_by_file = {}
    for file in files:
        if file.name in entries:
            entry, name = entries[file.name]
            is_same = (file.kind, file.size, file.mtime) == (entry[1], entry[2], entry[4])
            segments_by_file[file.name] = name if is_same else "changes-often"
    return segments_by_file


def _all_pages(options: PackOptions) -> list[CarrierPage]:
    return [*options.pages, *make_extra_pages(options.settings.extra_pages)]


def _build_generation(
    vault: Vault, old: Generation | None, packed: Sequence[_PackedSegment], options: PackOptions, folder: Path
) -> tuple[Generation, list[str]]:
    known = {each.id: each for generation in vault.generations for each in generation.files}
    keys = {page.key for page in _all_pages(options)}
    reused: dict[str, VaultSegment] = {}
    for each in packed:
        # Encryption gives other bytes each time, so the hash of the unencrypted content shows whether it changed.
        segment = known.get(segment_id(each.name))
        if segment is not None and segment.source == each.source and _is_reusable(vault, segment, keys, options):
            reused[each.name] = segment
    previous = _previous_locations(vault)
    used_pages = {page for page, (name, _) in previous.items() if name in {each.id for each in reused.values()}}
    free = [page for page in _all_pages(options) if page.key not in used_pages]
    changed = [each for each in packed if each.name not in reused]
    locations: dict[str, BlockLocation] = {
        page: location for page, location in previous.items() if page in used_pages and page in keys
    }
    segments = list(reused.values())
    if changed:
        contents = {each.name: _encrypt_file(each.content, options.encryption) for each in changed}
        plan = _plan_update({name: file.stat().st_size for name, file in contents.items()}, free, old, options)
        sources = {each.name: each for each in changed}
        coded = [_encode_segment(vault, sources[name], contents[name], plan.shapes[name], options) for name in contents]
        usable = {page.key for page in plan.pages}
        counts = {each.id: each.shape.count for each in coded}
        locations |= assign_blocks(
            counts, usable, {page: location for page, location in previous.items() if page in usable}
        )
        segments += coded
    number = max((each.number for each in vault.generations), default=0) + 1
    placement: BlockPlacement = {page: (location,) for page, location in sorted(locations.items())}
    files_only = Generation(number, tuple(sorted(segments, key=lambda each: each.name)), placement)
    if not changed and vault.generations and dict(placement) == _files_placement(vault.newest):
        return vault.newest, []
    return _add_manifest(vault, files_only, old, options, folder), [each.name for each in changed]


def _files_placement(generation: Generation) -> dict[str, tuple[BlockLocation, ...]]:
    manifests = {each.id for each in generation.segments if each.kind == KIND_MANIFEST}
    placement = {
        page: tuple(location for location in locations if location[0] not in manifests)
        for page, locations in generation.placement.items()
    }
    return {page: locations for page, locations in placement.items() if locations}


def _is_reusable(vault: Vault, segment: VaultSegment, keys: set[str], options: PackOptions) -> bool:
    """Return whether a segment can stay unchanged: same encryption, blocks present, and enough of its pages left."""
    if not (vault.folder / BLOCKS_FOLDER / segment.blocks_name).is_file():
        return False
    if (vault.settings.sealed, vault.settings.recipients) != (options.settings.sealed, options.settings.recipients):
        return False
    generation = next(each for each in reversed(vault.generations) if segment in each.files)
    remaining = sum(page in keys for page in generation.pages_of(segment).values())
    # Without more than a tenth of its pages, the loss tolerance would be too low.
    return remaining >= max(segment.shape.needed, segment.shape.count * 9 // 10)


def _previous_locations(vault: Vault) -> dict[str, BlockLocation]:
    if not vault.generations:
        return {}
    return {page: locations[0] for page, locations in _files_placement(vault.newest).items()}


def _encrypt_file(content: Path, encryption: EncryptionOptions) -> Path:
    if encryption.is_unencrypted:
        return content
    encrypted = content.with_suffix(".gz.age")
    encrypted.write_bytes(encrypt(content.read_bytes(), encryption))
    return encrypted


def _plan_update(
    sizes: Mapping[str, int], pages: Sequence[CarrierPage], old: Generation | None, options: PackOptions
) -> BlockPlan:
    """Return a plan with room for the blocks that pages carry already, if its loss tolerance suffices."""
    signed = options.settings.signed

    def make_plan(candidates: Sequence[CarrierPage]) -> BlockPlan:
        return plan_blocks(
            sizes,
            candidates,
            limit=options.settings.limit,
            block_size=options.block_size,
            loss_tolerance=options.loss_tolerance,
            signed=signed,
        )

    if old is not None and not options.skips_staging:
        try:
            staged_plan = make_plan(
                [replace(page, size=page.size + _carried_bytes(old, page.key, signed=signed)) for page in pages]
            )
        except UsageError:
            return make_plan(pages)
        target_tolerance = DEFAULT_LOSS_TOLERANCE if options.loss_tolerance is None else options.loss_tolerance
        if min(shape.loss_tolerance for shape in staged_plan.shapes.values()) >= target_tolerance - 0.1:
            return staged_plan
    return make_plan(pages)


def _carried_bytes(generation: Generation, key: str, *, signed: bool) -> int:
    locations = generation.placement.get(key, ())
    return sum(page_overhead(generation.segment(name).shape.block, signed=signed) for name, _ in locations)


def _encode_segment(
    vault: Vault, packed: _PackedSegment, content: Path, shape: CodeShape, options: PackOptions
) -> VaultSegment:
    wrap = "tar.gz" if options.encryption.is_unencrypted else "tar.gz.age"
    version = _hash_file(content)
    name = segment_id(packed.name)
    segment = VaultSegment(packed.name, name, KIND_FILES, packed.source, version, shape, wrap, packed.entries)
    _write_blocks(vault, segment, content)
    return segment


def _hash_file(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _write_blocks(vault: Vault, segment: VaultSegment, content: Path) -> None:
    target = vault.folder / BLOCKS_FOLDER / segment.blocks_name
    temporary = target.with_suffix(".new")
    with content.open("rb") as source, temporary.open("w+b") as blocks:
        erasure_code.encode_blocks(source, segment.shape, blocks)
        os.fsync(blocks.fileno())
    temporary.replace(target)


def _add_manifest(
    vault: Vault, files_only: Generation, old: Generation | None, options: PackOptions, folder: Path
) -> Generation:
    content, source = serialize_manifest(files_only)
    wrap = "json.gz"
    if not options.encryption.is_unencrypted:
        content, wrap = encrypt(content, options.encryption), "json.gz.age"
    # Pages with room in addition to the blocks of both generations are preferred, then to the new ones. The manifest is
    # optional: each segment is a tar file that contains its own names.
    manifest_plan = _plan_manifest(len(content), files_only, old, options) or _plan_manifest(
        len(content), files_only, None, options
    )
    if manifest_plan is None:
        return files_only
    shape, pages = manifest_plan
    version = hashlib.sha256(content).hexdigest()
    segment = VaultSegment(MANIFEST_NAME, segment_id(f"/{MANIFEST_NAME}"), KIND_MANIFEST, source, version, shape, wrap)
    file = folder / MANIFEST_NAME
    file.write_bytes(content)
    _write_blocks(vault, segment, file)
    placement = dict(files_only.placement)
    for index, page in enumerate(pages):
        placement[page] = (*placement.get(page, ()), (segment.id, index))
    return Generation(files_only.number, (*files_only.segments, segment), placement)


def _plan_manifest(
    size: int, files_only: Generation, old: Generation | None, options: PackOptions
) -> tuple[CodeShape, list[str]] | None:
    """Return the code and the pages of the manifest: the root, pages one link away, or more; None without room."""
    signed = options.settings.signed
    pages = {
        page.key: replace(
            page,
            size=page.size
            + _carried_bytes(files_only, page.key, signed=signed)
            + (0 if old is None or options.skips_staging else _carried_bytes(old, page.key, signed=signed)),
        )
        for page in _all_pages(options)
    }
    sorted_pages = sorted(pages.values(), key=lambda page: (9 if page.hops is None else page.hops, page.key))
    near_count = max(1, sum(page.hops is not None for page in sorted_pages))
    doubled_counts = (near_count << times for times in range(1, len(sorted_pages).bit_length()))
    for count in (
        min(near_count, _MANIFEST_PAGES),
        *(count for count in doubled_counts if count < len(sorted_pages)),
        len(sorted_pages),
    ):
        for needed in (1, max(1, count // 4), max(1, count // 2)):
            shape = smallest_shape(size, needed, count)
            usable = pages_with_room(sorted_pages[:count], options.settings.limit, shape.block, signed=signed)
            if len(usable) >= max(1, shape.needed * 2 if shape.needed > 1 else 1) and sorted_pages[0] in usable:
                keys = [page.key for page in usable][: _MANIFEST_PAGES * max(1, shape.needed)]
                return smallest_shape(size, shape.needed, len(keys)), keys
    return None
