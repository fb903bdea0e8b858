"""Packing: files into segments, segments into blocks, blocks onto pages; what did not change stays where it is."""

import hashlib
import os
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from unlost.errors import UsageError
from unlost.formats.output import name_os_errors, atomic_path
from unlost.vault import coding, staging
from unlost.vault.block import KIND_FILES, KIND_MANIFEST
from unlost.vault.extra_pages import make_extra_pages
from unlost.vault.generation import ManifestEntry, Generation, BlockPlacement, VaultSegment
from unlost.vault.manifest import MANIFEST_NAME, serialize_manifest
from unlost.vault.packing import ServerFile, write_tar_gz
from unlost.vault.placing import BlockLocation, assign_blocks
from unlost.vault.planning import (
    DEFAULT_LOSS_TOLERANCE,
    CarrierPage,
    BlockPlan,
    page_overhead,
    plan_blocks,
    pages_with_room,
)
from unlost.vault.sealing import EncryptionOptions, encrypt
from unlost.vault.segments import divide_into_segments, parse_division, segment_id
from unlost.vault.shape import CodeShape, smallest_shape
from unlost.vault.state import (
    BLOCKS_FOLDER,
    SIGNING_KEY_NAME,
    VaultSettings,
    Vault,
    lock_vault,
    save_vault,
    set_live_blocks,
)

_MANIFEST_PAGES = 32  # copies of the manifest, or blocks of it: enough, and few to change


@dataclass(frozen=True, slots=True)
class PackOptions:
    """What to pack, and how.

    may_be_lost: as `planning.plan` takes it. block: the largest block, in bytes.
    at_once: whether the old version may go.
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
    """What came of packing. changed: the names of segments that are new or other than before."""

    vault: Vault
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _PackedSegment:
    """A segment that has been packed, in a file of its own, but not coded."""

    name: str
    source: str
    content: Path
    entries: tuple[ManifestEntry, ...]


def measure_packed_sizes(files: Sequence[ServerFile], segments: str, *, is_encrypted: bool) -> dict[str, int]:
    """Return how many bytes each segment has when it is packed: they are packed for that."""
    with tempfile.TemporaryDirectory() as folder:
        packed = _pack_segments(files, segments, Path(folder), None)
        return {each.name: each.content.stat().st_size + (400 if is_encrypted else 0) for each in packed}


def pack_vault(vault: Vault, options: PackOptions, now: str) -> PackResult:
    """Pack files into a vault, and save it. now: 14 digits.

    Segments that did not change keep their version, blocks and pages. Raises UsageError if pages do not suffice,
    InputError if another process packs into it. Whatever ends it, the vault is what it was before, or the new one.
    """
    (vault.folder / BLOCKS_FOLDER).mkdir(parents=True, exist_ok=True)
    with name_os_errors(vault.folder), lock_vault(vault.folder) as folder:
        return _pack_vault(vault, options, now, folder)


def _pack_vault(vault: Vault, options: PackOptions, now: str, folder: Path) -> PackResult:
    """Pack files. folder: for what is packed and not sealed yet."""
    _ensure_signing_key(vault.folder, options.settings)
    # While an update is under way, the older generation is the one that archives are known to hold.
    old = vault.generations[0] if vault.generations else None
    packed = _pack_segments(options.files, options.settings.segments, folder, vault)
    new, changed = _build_generation(vault, old, packed, options, folder)
    if not changed and old is not None and _has_same_placement(vault, new):
        made = replace(vault, settings=options.settings, pages=tuple(_all_pages(options)))
        save_vault(made)
        return PackResult(made, ())
    made = replace(
        vault, settings=options.settings, pages=tuple(_all_pages(options)), generations=(*vault.generations, new)
    )
    if old is None or options.skips_staging or _has_no_live_blocks(vault):
        made = set_live_blocks(made, staging.live_blocks(new), now)
        made = replace(made, generations=(new,))
    else:
        live = staging.stage_update(old, new, made.pages, options.settings.limit, signed=options.settings.signed)
        made = replace(set_live_blocks(made, live, now), generations=(old, new))
    save_vault(made)
    return PackResult(made, tuple(changed))


def finish_update(vault: Vault, now: str) -> Vault:
    """Let pages carry the newest generation alone, and save that. Whether it is safe is for the caller to know."""
    with lock_vault(vault.folder):
        made = set_live_blocks(vault, staging.live_blocks(vault.newest), now)
        made = replace(made, generations=(vault.newest,))
        save_vault(made)
        return made


def _has_no_live_blocks(vault: Vault) -> bool:
    return not vault.live


def _has_same_placement(vault: Vault, new: Generation) -> bool:
    return bool(vault.generations) and dict(vault.newest.placement) == dict(new.placement)


def _ensure_signing_key(folder: Path, settings: VaultSettings) -> None:
    file = folder / SIGNING_KEY_NAME
    if settings.signed and not file.exists():
        with atomic_path(file) as aside:
            aside.chmod(0o600)
            aside.write_text(secrets.token_bytes(32).hex() + "\n", "ascii")


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
    """Return which segment each file was in, of those that did not change; those that did go where changes are."""
    if vault is None or not vault.generations:
        return {}
    known = {entry[0]: (entry, each.name) for each in vault.newest.files for entry in each.entries}
    found = {}
    for file in files:
        if file.name in known:
            entry, name = known[file.name]
            is_same = (file.kind, file.size, file.mtime) == (entry[1], entry[2], entry[4])
            found[file.name] = name if is_same else "changes-often"
    return found


def _all_pages(options: PackOptions) -> list[CarrierPage]:
    return [*options.pages, *make_extra_pages(options.settings.extra_pages)]


def _build_generation(
    vault: Vault, old: Generation | None, packed: Sequence[_PackedSegment], options: PackOptions, folder: Path
) -> tuple[Generation, list[str]]:
    known = {each.id: each for generation in vault.generations for each in generation.files}
    keys = {page.key for page in _all_pages(options)}
    kept: dict[str, VaultSegment] = {}
    for each in packed:
        segment = known.get(segment_id(each.name))
        if segment is not None and segment.source == each.source and _is_reusable(vault, segment, keys, options):
            kept[each.name] = segment
    before = _previous_locations(vault)
    taken = {page for page, (name, _) in before.items() if name in {each.id for each in kept.values()}}
    free = [page for page in _all_pages(options) if page.key not in taken]
    changed = [each for each in packed if each.name not in kept]
    placed: dict[str, BlockLocation] = {page: place for page, place in before.items() if page in taken and page in keys}
    segments = list(kept.values())
    if changed:
        contents = {each.name: _encrypt_file(each.content, options.encryption) for each in changed}
        made = _plan_update({name: file.stat().st_size for name, file in contents.items()}, free, old, options)
        sources = {each.name: each for each in changed}
        coded = [_encode_segment(vault, sources[name], contents[name], made.shapes[name], options) for name in contents]
        usable = {page.key for page in made.pages}
        counts = {each.id: each.shape.count for each in coded}
        placed |= assign_blocks(counts, usable, {page: spot for page, spot in before.items() if page in usable})
        segments += coded
    number = max((each.number for each in vault.generations), default=0) + 1
    placement: BlockPlacement = {page: (spot,) for page, spot in sorted(placed.items())}
    bare = Generation(number, tuple(sorted(segments, key=lambda each: each.name)), placement)
    if not changed and vault.generations and dict(placement) == _files_placement(vault.newest):
        return vault.newest, []
    return _add_manifest(vault, bare, old, options, folder), [each.name for each in changed]


def _files_placement(generation: Generation) -> dict[str, tuple[BlockLocation, ...]]:
    manifests = {each.id for each in generation.segments if each.kind == KIND_MANIFEST}
    found = {
        page: tuple(spot for spot in places if spot[0] not in manifests)
        for page, places in generation.placement.items()
    }
    return {page: places for page, places in found.items() if places}


def _is_reusable(vault: Vault, segment: VaultSegment, keys: set[str], options: PackOptions) -> bool:
    """Return whether a segment can stay: sealed as is wanted, its blocks there, and enough of its pages."""
    if not (vault.folder / BLOCKS_FOLDER / segment.blocks_name).is_file():
        return False
    if (vault.settings.sealed, vault.settings.recipients) != (options.settings.sealed, options.settings.recipients):
        return False
    generation = next(each for each in reversed(vault.generations) if segment in each.files)
    there = sum(page in keys for page in generation.pages_of(segment).values())
    # As many as before, within a tenth: else it would bear fewer losses than was wanted.
    return there >= max(segment.shape.needed, segment.shape.count * 9 // 10)


def _previous_locations(vault: Vault) -> dict[str, BlockLocation]:
    if not vault.generations:
        return {}
    return {page: places[0] for page, places in _files_placement(vault.newest).items()}


def _encrypt_file(content: Path, encryption: EncryptionOptions) -> Path:
    if encryption.is_unencrypted:
        return content
    made = content.with_suffix(".gz.age")
    made.write_bytes(encrypt(content.read_bytes(), encryption))
    return made


def _plan_update(
    sizes: Mapping[str, int], pages: Sequence[CarrierPage], old: Generation | None, options: PackOptions
) -> BlockPlan:
    """Return a plan that leaves room for what pages carry already, if one such bears as much as is wanted."""
    signed = options.settings.signed

    def planned(room: Sequence[CarrierPage]) -> BlockPlan:
        return plan_blocks(
            sizes,
            room,
            limit=options.settings.limit,
            block_size=options.block_size,
            loss_tolerance=options.loss_tolerance,
            signed=signed,
        )

    if old is not None and not options.skips_staging:
        try:
            beside = planned(
                [replace(page, size=page.size + _carried_bytes(old, page.key, signed=signed)) for page in pages]
            )
        except UsageError:
            return planned(pages)
        wanted = DEFAULT_LOSS_TOLERANCE if options.loss_tolerance is None else options.loss_tolerance
        if min(shape.loss_tolerance for shape in beside.shapes.values()) >= wanted - 0.1:
            return beside
    return planned(pages)


def _carried_bytes(generation: Generation, key: str, *, signed: bool) -> int:
    places = generation.placement.get(key, ())
    return sum(page_overhead(generation.segment(name).shape.block, signed=signed) for name, _ in places)


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
    aside = target.with_suffix(".new")
    with content.open("rb") as source, aside.open("w+b") as blocks:
        coding.encode_blocks(source, segment.shape, blocks)
        os.fsync(blocks.fileno())
    aside.replace(target)


def _add_manifest(
    vault: Vault, bare: Generation, old: Generation | None, options: PackOptions, folder: Path
) -> Generation:
    content, source = serialize_manifest(bare)
    wrap = "json.gz"
    if not options.encryption.is_unencrypted:
        content, wrap = encrypt(content, options.encryption), "json.gz.age"
    # Beside the blocks of both versions, or if need be of the new one alone; without room, files do without.
    room = _plan_manifest(len(content), bare, old, options) or _plan_manifest(len(content), bare, None, options)
    if room is None:
        return bare
    shape, pages = room
    version = hashlib.sha256(content).hexdigest()
    segment = VaultSegment(MANIFEST_NAME, segment_id(f"/{MANIFEST_NAME}"), KIND_MANIFEST, source, version, shape, wrap)
    file = folder / MANIFEST_NAME
    file.write_bytes(content)
    _write_blocks(vault, segment, file)
    placement = dict(bare.placement)
    for index, page in enumerate(pages):
        placement[page] = (*placement.get(page, ()), (segment.id, index))
    return Generation(bare.number, (*bare.segments, segment), placement)


def _plan_manifest(
    size: int, bare: Generation, old: Generation | None, options: PackOptions
) -> tuple[CodeShape, list[str]] | None:
    """Return how the manifest is coded, and its pages: the root, those one link away, or more; None for no room."""
    signed = options.settings.signed
    others = {
        page.key: replace(
            page,
            size=page.size
            + _carried_bytes(bare, page.key, signed=signed)
            + (0 if old is None or options.skips_staging else _carried_bytes(old, page.key, signed=signed)),
        )
        for page in _all_pages(options)
    }
    near = sorted(others.values(), key=lambda page: (9 if page.hops is None else page.hops, page.key))
    first = max(1, sum(page.hops is not None for page in near))
    doubled = (first << times for times in range(1, len(near).bit_length()))
    for count in (min(first, _MANIFEST_PAGES), *(count for count in doubled if count < len(near)), len(near)):
        for needed in (1, max(1, count // 4), max(1, count // 2)):
            shape = smallest_shape(size, needed, count)
            usable = pages_with_room(near[:count], options.settings.limit, shape.block, signed=signed)
            if len(usable) >= max(1, shape.needed * 2 if shape.needed > 1 else 1) and near[0] in usable:
                keys = [page.key for page in usable][: _MANIFEST_PAGES * max(1, shape.needed)]
                return smallest_shape(size, shape.needed, len(keys)), keys
    return None
