"""Packing: files into segments, segments into blocks, blocks onto pages; what did not change stays where it is."""

import hashlib
import os
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from unlost.errors import UsageError
from unlost.formats.output import naming, whole_path
from unlost.vault import coding, staging
from unlost.vault.block import FILES, MANIFEST
from unlost.vault.extra_pages import extra_pages
from unlost.vault.generation import Entry, Generation, Placement, Segment
from unlost.vault.manifest import NAME, manifest_bytes
from unlost.vault.packing import ServerFile, pack
from unlost.vault.placing import Place, place
from unlost.vault.planning import MAY_BE_LOST, Page, Plan, cost_of, plan, with_room
from unlost.vault.sealing import Seal, sealed
from unlost.vault.segments import divide, division_of, segment_id
from unlost.vault.shape import Shape, shape_of
from unlost.vault.state import BLOCKS, KEY, Settings, Vault, at_work, save, with_live

_MANIFEST_PAGES = 32  # copies of the manifest, or blocks of it: enough, and few to change


@dataclass(frozen=True, slots=True)
class Wish:
    """What to pack, and how.

    may_be_lost: as `planning.plan` takes it. block: the largest block, in bytes.
    at_once: whether the old version may go.
    """

    files: Sequence[ServerFile]
    pages: Sequence[Page]
    settings: Settings
    seal: Seal
    may_be_lost: float | None
    block: int | None = None
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class Made:
    """What came of packing. changed: the names of segments that are new or other than before."""

    vault: Vault
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Packed:
    """A segment that has been packed, in a file of its own, but not coded."""

    name: str
    source: str
    content: Path
    entries: tuple[Entry, ...]


def packed_sizes(files: Sequence[ServerFile], segments: str, *, is_sealed: bool) -> dict[str, int]:
    """Return how many bytes each segment has when it is packed: they are packed for that."""
    with tempfile.TemporaryDirectory() as folder:
        packed = _pack(files, segments, Path(folder), None)
        return {each.name: each.content.stat().st_size + (400 if is_sealed else 0) for each in packed}


def make(vault: Vault, wish: Wish, now: str) -> Made:
    """Pack files into a vault, and save it. now: 14 digits.

    Segments that did not change keep their version, blocks and pages. Raises UsageError if pages do not suffice,
    InputError if another process packs into it. Whatever ends it, the vault is what it was before, or the new one.
    """
    (vault.folder / BLOCKS).mkdir(parents=True, exist_ok=True)
    with naming(vault.folder), at_work(vault.folder) as folder:
        return _make(vault, wish, now, folder)


def _make(vault: Vault, wish: Wish, now: str, folder: Path) -> Made:
    """Pack files. folder: for what is packed and not sealed yet."""
    _make_key(vault.folder, wish.settings)
    # While an update is under way, the older generation is the one that archives are known to hold.
    old = vault.generations[0] if vault.generations else None
    packed = _pack(wish.files, wish.settings.segments, folder, vault)
    new, changed = _generation(vault, old, packed, wish, folder)
    if not changed and old is not None and _same_pages(vault, new):
        made = replace(vault, settings=wish.settings, pages=tuple(_all_pages(wish)))
        save(made)
        return Made(made, ())
    made = replace(vault, settings=wish.settings, pages=tuple(_all_pages(wish)), generations=(*vault.generations, new))
    if old is None or wish.at_once or _is_unplaced(vault):
        made = with_live(made, staging.live_of(new), now)
        made = replace(made, generations=(new,))
    else:
        live = staging.both(old, new, made.pages, wish.settings.limit, signed=wish.settings.signed)
        made = replace(with_live(made, live, now), generations=(old, new))
    save(made)
    return Made(made, tuple(changed))


def advance(vault: Vault, now: str) -> Vault:
    """Let pages carry the newest generation alone, and save that. Whether it is safe is for the caller to know."""
    with at_work(vault.folder):
        made = with_live(vault, staging.live_of(vault.newest), now)
        made = replace(made, generations=(vault.newest,))
        save(made)
        return made


def _is_unplaced(vault: Vault) -> bool:
    return not vault.live


def _same_pages(vault: Vault, new: Generation) -> bool:
    return bool(vault.generations) and dict(vault.newest.placement) == dict(new.placement)


def _make_key(folder: Path, settings: Settings) -> None:
    file = folder / KEY
    if settings.signed and not file.exists():
        with whole_path(file) as aside:
            aside.chmod(0o600)
            aside.write_text(secrets.token_bytes(32).hex() + "\n", "ascii")


def _pack(files: Sequence[ServerFile], segments: str, folder: Path, vault: Vault | None) -> list[_Packed]:
    packed = []
    for number, (name, members) in enumerate(divide(files, division_of(segments), _before(files, vault)).items()):
        content = folder / f"{number}.tar.gz"
        with content.open("w+b") as target:
            source = pack(members, target)
        entries = tuple((each.name, each.kind, each.size, each.mode, each.mtime) for each in members)
        packed.append(_Packed(name, source, content, entries))
    return packed


def _before(files: Sequence[ServerFile], vault: Vault | None) -> dict[str, str]:
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


def _all_pages(wish: Wish) -> list[Page]:
    return [*wish.pages, *extra_pages(wish.settings.extra_pages)]


def _generation(
    vault: Vault, old: Generation | None, packed: Sequence[_Packed], wish: Wish, folder: Path
) -> tuple[Generation, list[str]]:
    known = {each.id: each for generation in vault.generations for each in generation.files}
    keys = {page.key for page in _all_pages(wish)}
    kept: dict[str, Segment] = {}
    for each in packed:
        segment = known.get(segment_id(each.name))
        if segment is not None and segment.source == each.source and _is_kept(vault, segment, keys, wish):
            kept[each.name] = segment
    before = _places(vault)
    taken = {page for page, (name, _) in before.items() if name in {each.id for each in kept.values()}}
    free = [page for page in _all_pages(wish) if page.key not in taken]
    changed = [each for each in packed if each.name not in kept]
    placed: dict[str, Place] = {page: place for page, place in before.items() if page in taken and page in keys}
    segments = list(kept.values())
    if changed:
        contents = {each.name: _sealed(each.content, wish.seal) for each in changed}
        made = _plan({name: file.stat().st_size for name, file in contents.items()}, free, old, wish)
        sources = {each.name: each for each in changed}
        coded = [_code(vault, sources[name], contents[name], made.shapes[name], wish) for name in contents]
        usable = {page.key for page in made.pages}
        counts = {each.id: each.shape.count for each in coded}
        placed |= place(counts, usable, {page: spot for page, spot in before.items() if page in usable})
        segments += coded
    number = max((each.number for each in vault.generations), default=0) + 1
    placement: Placement = {page: (spot,) for page, spot in sorted(placed.items())}
    bare = Generation(number, tuple(sorted(segments, key=lambda each: each.name)), placement)
    if not changed and vault.generations and dict(placement) == _files_only(vault.newest):
        return vault.newest, []
    return _with_manifest(vault, bare, old, wish, folder), [each.name for each in changed]


def _files_only(generation: Generation) -> dict[str, tuple[Place, ...]]:
    manifests = {each.id for each in generation.segments if each.kind == MANIFEST}
    found = {
        page: tuple(spot for spot in places if spot[0] not in manifests)
        for page, places in generation.placement.items()
    }
    return {page: places for page, places in found.items() if places}


def _is_kept(vault: Vault, segment: Segment, keys: set[str], wish: Wish) -> bool:
    """Return whether a segment can stay: sealed as is wanted, its blocks there, and enough of its pages."""
    if not (vault.folder / BLOCKS / segment.blocks_name).is_file():
        return False
    if (vault.settings.sealed, vault.settings.recipients) != (wish.settings.sealed, wish.settings.recipients):
        return False
    generation = next(each for each in reversed(vault.generations) if segment in each.files)
    there = sum(page in keys for page in generation.pages_of(segment).values())
    # As many as before, within a tenth: else it would bear fewer losses than was wanted.
    return there >= max(segment.shape.needed, segment.shape.count * 9 // 10)


def _places(vault: Vault) -> dict[str, Place]:
    if not vault.generations:
        return {}
    return {page: places[0] for page, places in _files_only(vault.newest).items()}


def _sealed(content: Path, seal: Seal) -> Path:
    if seal.is_open:
        return content
    made = content.with_suffix(".gz.age")
    made.write_bytes(sealed(content.read_bytes(), seal))
    return made


def _plan(sizes: Mapping[str, int], pages: Sequence[Page], old: Generation | None, wish: Wish) -> Plan:
    """Return a plan that leaves room for what pages carry already, if one such bears as much as is wanted."""
    signed = wish.settings.signed

    def planned(room: Sequence[Page]) -> Plan:
        return plan(
            sizes, room, limit=wish.settings.limit, block=wish.block, may_be_lost=wish.may_be_lost, signed=signed
        )

    if old is not None and not wish.at_once:
        try:
            beside = planned([replace(page, size=page.size + _carries(old, page.key, signed=signed)) for page in pages])
        except UsageError:
            return planned(pages)
        wanted = MAY_BE_LOST if wish.may_be_lost is None else wish.may_be_lost
        if min(shape.may_be_lost for shape in beside.shapes.values()) >= wanted - 0.1:
            return beside
    return planned(pages)


def _carries(generation: Generation, key: str, *, signed: bool) -> int:
    places = generation.placement.get(key, ())
    return sum(cost_of(generation.segment(name).shape.block, signed=signed) for name, _ in places)


def _code(vault: Vault, packed: _Packed, content: Path, shape: Shape, wish: Wish) -> Segment:
    wrap = "tar.gz" if wish.seal.is_open else "tar.gz.age"
    version = _hash(content)
    name = segment_id(packed.name)
    segment = Segment(packed.name, name, FILES, packed.source, version, shape, wrap, packed.entries)
    _write_blocks(vault, segment, content)
    return segment


def _hash(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _write_blocks(vault: Vault, segment: Segment, content: Path) -> None:
    target = vault.folder / BLOCKS / segment.blocks_name
    aside = target.with_suffix(".new")
    with content.open("rb") as source, aside.open("w+b") as blocks:
        coding.encode(source, segment.shape, blocks)
        os.fsync(blocks.fileno())
    aside.replace(target)


def _with_manifest(vault: Vault, bare: Generation, old: Generation | None, wish: Wish, folder: Path) -> Generation:
    content, source = manifest_bytes(bare)
    wrap = "json.gz"
    if not wish.seal.is_open:
        content, wrap = sealed(content, wish.seal), "json.gz.age"
    # Beside the blocks of both versions, or if need be of the new one alone; without room, files do without.
    room = _manifest_shape(len(content), bare, old, wish) or _manifest_shape(len(content), bare, None, wish)
    if room is None:
        return bare
    shape, pages = room
    version = hashlib.sha256(content).hexdigest()
    segment = Segment(NAME, segment_id(f"/{NAME}"), MANIFEST, source, version, shape, wrap)
    file = folder / NAME
    file.write_bytes(content)
    _write_blocks(vault, segment, file)
    placement = dict(bare.placement)
    for index, page in enumerate(pages):
        placement[page] = (*placement.get(page, ()), (segment.id, index))
    return Generation(bare.number, (*bare.segments, segment), placement)


def _manifest_shape(size: int, bare: Generation, old: Generation | None, wish: Wish) -> tuple[Shape, list[str]] | None:
    """Return how the manifest is coded, and its pages: the root, those one link away, or more; None for no room."""
    signed = wish.settings.signed
    others = {
        page.key: replace(
            page,
            size=page.size
            + _carries(bare, page.key, signed=signed)
            + (0 if old is None or wish.at_once else _carries(old, page.key, signed=signed)),
        )
        for page in _all_pages(wish)
    }
    near = sorted(others.values(), key=lambda page: (9 if page.hops is None else page.hops, page.key))
    first = max(1, sum(page.hops is not None for page in near))
    doubled = (first << times for times in range(1, len(near).bit_length()))
    for count in (min(first, _MANIFEST_PAGES), *(count for count in doubled if count < len(near)), len(near)):
        for needed in (1, max(1, count // 4), max(1, count // 2)):
            shape = shape_of(size, needed, count)
            usable = with_room(near[:count], wish.settings.limit, shape.block, signed=signed)
            if len(usable) >= max(1, shape.needed * 2 if shape.needed > 1 else 1) and near[0] in usable:
                keys = [page.key for page in usable][: _MANIFEST_PAGES * max(1, shape.needed)]
                return shape_of(size, shape.needed, len(keys)), keys
    return None
